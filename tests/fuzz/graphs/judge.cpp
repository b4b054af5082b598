#include "judge.hpp"

#include <tenon/abi/exporter.h>
#include <tenon/sdk/dtype.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>

#include "../fuzz_support.hpp"
#include "core/base/text.hpp"
#include "core/graph/text_form.hpp"
#include "draw.hpp"
#include "shake.hpp"

namespace tenon::fuzz {

namespace {

constexpr int shakes = 6;
constexpr double shake_factor = 24;  // times what roundings move
constexpr double near_units = 64;    // of the element, or a hundredth of the largest: no need to ask
constexpr double floor_units = 8;

Manifest manifest_of(const char* precision) {
  Diagnostics findings;
  ManifestOptions options;
  options.set = {"precision.mode=" + std::string(precision), "runtime.threads=1"};
  Manifest manifest = default_manifest(options, findings);
  findings.throw_if_errors(exit_bad_input);
  manifest.model_path = scratch_folder() / "written.onnx";
  return manifest;
}

EngineOptions engine_options() {
  EngineOptions options;
  options.verify_graph = true;
  options.scan.use_child = false;
  return options;
}

RuntimeOptions runtime_options(bool reference, const char* precision) {
  RuntimeOptions options;
  options.threads = 1;
  options.random_seed = 1;
  options.kernels.prefer_reference = reference;
  if (reference) options.kernels.deny = {"tenon.cpu.*"};  // fused nodes as their bodies
  options.precision_mode = precision;
  return options;
}

// The tensors of a value in order: a sequence's items, or itself.
void flatten(tn_any* any, std::vector<tn_any*>& out) {
  if (any->kind == TN_KIND_TENSOR) {
    out.push_back(any);
    return;
  }
  for (tn_any* item : any->items) {
    if (item->kind == TN_KIND_TENSOR) {
      out.push_back(item);
    } else {
      for (tn_any* inner : item->items) out.push_back(inner);
    }
  }
}

std::string type_of(const tn_any& any) { return dtype_name(any.dtype) + dims_text(any.dims); }

std::string bytes_text(const tn_tensor& t, uint64_t i) {
  double value = 0;
  if (number_at(t, i, &value)) return fmt::format("{:.9g}", value);
  if (t.dtype == TN_STRING) return quoted(view(static_cast<const tn_str*>(t.data)[i]));
  return "(bits)";
}

// Without the bits behind the last element of a packed type, which mean nothing.
bool bytes_equal(const tn_tensor& a, const tn_tensor& b) {
  if (a.bytes == 0) return true;
  uint64_t elements = 0;
  element_count({a.dims, static_cast<size_t>(a.rank)}, &elements);
  const uint64_t used = elements * TN_DTYPE_BITS(a.dtype) % 8;
  const auto *x = static_cast<const uint8_t*>(a.data), *y = static_cast<const uint8_t*>(b.data);
  const uint64_t whole = used == 0 ? a.bytes : a.bytes - 1;
  return std::memcmp(x, y, whole) == 0 && (used == 0 || ((x[whole] ^ y[whole]) & ((1u << used) - 1)) == 0);
}

bool texts_equal(const tn_tensor& a, const tn_tensor& b) {
  const uint64_t count = a.bytes / sizeof(tn_str);
  for (uint64_t i = 0; i < count; ++i)
    if (view(static_cast<const tn_str*>(a.data)[i]) != view(static_cast<const tn_str*>(b.data)[i]))
      return false;
  return true;
}

uint64_t count_of(const tn_tensor& t) {
  const uint32_t bits = TN_DTYPE_BITS(t.dtype);
  return bits < 8 ? t.bytes : t.bytes / (bits / 8);
}

// Floats whose elements can be compared as numbers; complex ones are pairs.
bool as_floats(const tn_tensor& t, tn_tensor& out) {
  out = t;
  if (t.dtype == TN_COMPLEX64) out.dtype = TN_FLOAT32;
  if (t.dtype == TN_COMPLEX128) out.dtype = TN_FLOAT64;
  return spacing(out.dtype) != 0;
}

}  // namespace

Workshop::Workshop(const char* precision)
    : engine(manifest_of(precision), engine_options()),
      evaluator(engine.host(), engine.registries(), runtime_options(false, precision)) {}

struct Judge::Inputs {
  std::deque<Tensor> tensors;
  std::deque<std::string> names;
  std::vector<NamedTensor> named;
};

struct Judge::Run {
  std::vector<NamedOutput> outputs;
  std::string error;  // empty: it ran
  bool no_kernel = false;
};

Judge::Judge()
    : default_(std::make_unique<Workshop>("faithful")), strict_(std::make_unique<Workshop>("strict")) {}
Judge::~Judge() = default;

namespace {

std::vector<NamedOutput> run_session(std::unique_ptr<Graph> graph, const Registries& registries,
                                     RuntimeOptions options, const std::vector<NamedTensor>& inputs,
                                     std::string& error, bool& no_kernel) {
  no_kernel = true;
  try {
    const Session session(std::move(graph), registries, std::move(options));
    no_kernel = false;
    return session.run(inputs);
  } catch (const Error& failure) {
    error = failure.what();
    if (error.empty()) error = "an error that says nothing";
    no_kernel = no_kernel || error.find("kernel") != std::string::npos;
  }
  return {};
}

}  // namespace

Judge::Run Judge::optimized(const Graph& graph, const Inputs& inputs, Workshop& workshop,
                            Judgement& judgement) {
  Run run;
  const std::unique_ptr<Graph> copy = graph.clone();
  OptimizeReport report;
  workshop.engine.diagnostics().clear();
  try {
    workshop.engine.optimize(*copy, report);
  } catch (const Error& failure) {
    judgement = {Verdict::broken, "optimising fails", failure.what()};
    return run;
  }
  rewrites_ += report.edits;
  for (const auto& [rule, count] : report.rules)
    if (count.applied != 0) rules_[rule] += count.applied;
  for (const PassReport& pass : report.passes)
    if (pass.outcome == PassReport::Outcome::rolled_back)
      judgement = {Verdict::broken, "pass " + pass.id + " rolled back", pass.reason};
  const std::string mode = workshop.engine.manifest().precision.mode;
  // With infinities about, kernels that sum in another order or pad with zeros rightly differ: the rewrites
  // alone are looked at then.
  const bool reference = &workshop == strict_.get();
  run.outputs = run_session(copy->clone(), workshop.engine.registries(),
                            runtime_options(reference, mode.c_str()), inputs.named, run.error, run.no_kernel);
  return run;
}

namespace {

// Where two runs differ by more than they may at a glance.
struct Difference {
  std::string kind, text;
};

bool near_enough(double want, double got, double largest, double unit) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (want == got) return true;
  if (std::isinf(want) || std::isinf(got)) return false;
  // Inside a node numbers are about 1, whatever its result is: tanh(x) + 1 far to the left.
  return std::fabs(want - got) <=
         std::max(near_units * unit * std::max(std::fabs(want), 0.01 * largest), floor_units * unit);
}

double largest_of(const tn_tensor& t) {
  double largest = 0;
  const uint64_t count = count_of(t);
  for (uint64_t i = 0; i < count; ++i) {
    double x = 0;
    number_at(t, i, &x);
    if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  }
  return largest;
}

// Everything but the values of floats: numbers, types, shapes, exact contents.
std::optional<Difference> structure_difference(const std::vector<NamedOutput>& want,
                                               const std::vector<NamedOutput>& got) {
  if (want.size() != got.size())
    return Difference{"outputs", fmt::format("{} outputs and {}", want.size(), got.size())};
  for (size_t o = 0; o < want.size(); ++o) {
    if (want[o].name != got[o].name) return Difference{"output names", want[o].name + " and " + got[o].name};
    std::vector<tn_any*> a, b;
    flatten(want[o].value.get(), a);
    flatten(got[o].value.get(), b);
    if (want[o].value->kind != got[o].value->kind || a.size() != b.size())
      return Difference{"kind", want[o].name + ": another kind or number of tensors"};
    for (size_t k = 0; k < a.size(); ++k) {
      if (type_of(*a[k]) != type_of(*b[k]))
        return Difference{"shape",
                          fmt::format("{}: {} and {}", want[o].name, type_of(*a[k]), type_of(*b[k]))};
      const tn_tensor x = a[k]->tensor(), y = b[k]->tensor();
      tn_tensor floats;
      if (as_floats(x, floats)) continue;
      if (x.dtype == TN_STRING ? texts_equal(x, y) : bytes_equal(x, y)) continue;
      for (uint64_t i = 0; i < count_of(x); ++i)
        if (bytes_text(x, i) != bytes_text(y, i))
          return Difference{"values", fmt::format("{} element {} of {}: {} and {}", want[o].name, i,
                                                  type_of(*a[k]), bytes_text(x, i), bytes_text(y, i))};
      return Difference{"values", want[o].name + ": other bits in " + type_of(*a[k])};
    }
  }
  return std::nullopt;
}

// The first float that is not near enough; `allowed` (may be null) gives more room for element i of tensor n.
template <class Allowed>
std::optional<Difference> float_difference(const std::vector<NamedOutput>& want,
                                           const std::vector<NamedOutput>& got, Allowed&& allowed) {
  size_t number = 0;
  for (size_t o = 0; o < want.size(); ++o) {
    std::vector<tn_any*> a, b;
    flatten(want[o].value.get(), a);
    flatten(got[o].value.get(), b);
    for (size_t k = 0; k < a.size(); ++k, ++number) {
      tn_tensor x, y;
      if (!as_floats(a[k]->tensor(), x) || !as_floats(b[k]->tensor(), y)) continue;
      const double largest = largest_of(x), unit = spacing(x.dtype);
      for (uint64_t i = 0; i < count_of(x); ++i) {
        double p = 0, q = 0;
        number_at(x, i, &p);
        number_at(y, i, &q);
        if (near_enough(p, q, largest, unit) || allowed(number, i, p, q)) continue;
        return Difference{"values",
                          fmt::format("{} element {} of {}: {:.9g} and {:.9g}, the largest is {:.6g}",
                                      want[o].name, i, type_of(*a[k]), p, q, largest)};
      }
    }
  }
  return std::nullopt;
}

bool always_wrong(size_t, uint64_t, double, double) { return false; }

}  // namespace

Judgement Judge::compare(const Graph& graph, const Inputs& inputs, const Run& want, const Run& got,
                         uint64_t seed) {
  Judgement judgement;
  std::optional<Difference> structure = structure_difference(want.outputs, got.outputs);
  if (!structure && !float_difference(want.outputs, got.outputs, always_wrong)) return judgement;

  // What roundings make of the graph.
  judgement.was_close = true;
  std::vector<const Tensor*> tensors;
  for (const Tensor& tensor : inputs.tensors) tensors.push_back(&tensor);
  std::vector<Run> runs;
  for (int i = 0; i < shakes; ++i) {
    std::unique_ptr<Graph> copy = shaken(graph, tensors, seed + static_cast<uint64_t>(i) + 1, i % 3 == 2);
    Run run;
    if (copy == nullptr) continue;
    run.outputs = run_session(std::move(copy), registries(), runtime_options(true, "faithful"), inputs.named,
                              run.error, run.no_kernel);
    // Where roundings alone make it an error, nothing can be said.
    if (!run.error.empty() && !run.no_kernel) return judgement;
    if (run.error.empty()) runs.push_back(std::move(run));
  }
  const auto is_fragile = [&] {
    return std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
      return structure_difference(want.outputs, run.outputs).has_value();
    });
  };
  if (structure) {
    if (is_fragile()) return judgement;
    judgement.verdict = Verdict::broken;
    judgement.kind = structure->kind;
    judgement.text = structure->text;
    return judgement;
  }
  std::vector<std::vector<std::vector<double>>> moved;  // run, tensor, element
  for (const Run& run : runs) {
    if (structure_difference(want.outputs, run.outputs)) return judgement;
    auto& parts_of_run = moved.emplace_back();
    for (const NamedOutput& output : run.outputs) {
      std::vector<tn_any*> parts;
      flatten(output.value.get(), parts);
      for (const tn_any* part : parts) {
        tn_tensor t;
        auto& numbers = parts_of_run.emplace_back();
        if (!as_floats(part->tensor(), t)) continue;
        numbers.resize(count_of(t));
        for (uint64_t i = 0; i < numbers.size(); ++i) number_at(t, i, &numbers[i]);
      }
    }
  }
  std::map<size_t, double> spread_of_tensor;
  const auto allowed = [&](size_t tensor, uint64_t i, double p, double q) {
    double spread = 0;
    for (const auto& run : moved) {
      const double x = run[tensor][i];
      // NaN and infinity that come and go with roundings say nothing.
      if (std::isfinite(x) != std::isfinite(p)) return true;
      if (std::isfinite(p)) spread = std::max(spread, std::fabs(x - p));
    }
    // Nor does a number that roundings move by as much as it is: 1 / (a - a), the inverse of a singular
    // matrix.
    if (std::isfinite(p) && !std::isfinite(q) && spread > 0 && spread >= std::fabs(p)) return true;
    return std::isfinite(p) && std::isfinite(q) && std::fabs(p - q) <= shake_factor * spread;
  };
  if (const auto difference = float_difference(want.outputs, got.outputs, allowed)) {
    judgement.verdict = Verdict::broken;
    judgement.kind = difference->kind;
    judgement.text = difference->text;
  }
  return judgement;
}

Judge::Inputs Judge::inputs_of(const Graph& graph, uint64_t seed, bool wild) {
  Inputs inputs;
  for (const tn_value id : graph.region(Graph::main_region).inputs) {
    const tn_type& type = graph.type(id);
    Dims dims;
    for (int32_t i = 0; i < type.rank; ++i)
      dims.push_back(graph.symbols().evaluate(type.dims[i], symbol_size).value_or(1));
    Random random(seed, graph.name(id));
    inputs.names.emplace_back(graph.name(id));
    inputs.tensors.push_back(random_tensor(type.dtype, dims, random, wild ? Fill::wild : Fill::tame));
    NamedTensor named;
    named.name = inputs.names.back();
    named.tensor = inputs.tensors.back().view();
    inputs.named.push_back(named);
  }
  return inputs;
}

Judgement Judge::judge(const Graph& graph, uint64_t seed, bool wild) {
  Judgement judgement;
  const Inputs inputs = inputs_of(graph, seed, wild);
  const char* const mode = wild ? "strict" : "faithful";
  const auto run_plain = [&](bool reference) {
    Run run;
    run.outputs = run_session(graph.clone(), registries(), runtime_options(reference, mode), inputs.named,
                              run.error, run.no_kernel);
    return run;
  };
  const Run want = run_plain(true);
  if (!want.error.empty()) {
    judgement.verdict = want.no_kernel ? Verdict::unfit : Verdict::refused;
    judgement.text = want.error;
    return judgement;
  }
  const Run got = optimized(graph, inputs, wild ? *strict_ : *default_, judgement);
  if (judgement.verdict == Verdict::broken) return judgement;
  if (!got.error.empty()) return {Verdict::broken, "only the optimised graph fails", got.error};
  judgement = compare(graph, inputs, want, got, seed);
  if (judgement.verdict != Verdict::broken || wild) return judgement;
  // Whose fault: the rewrites', or the kernels'?
  const Run plain = run_plain(false);
  judgement.by_kernels =
      plain.error.empty() && compare(graph, inputs, want, plain, seed).verdict == Verdict::broken;
  return judgement;
}

namespace {

// Every value that a node of the graph itself gives is an output.
std::unique_ptr<Graph> with_all_outputs(const Graph& graph) {
  std::unique_ptr<Graph> opened = graph.clone();
  std::vector<tn_value> values;
  for (tn_node id = opened->first_node(Graph::main_region); id != TN_NONE; id = opened->node(id).next)
    for (const tn_value value : opened->node(id).outputs())
      if (value != TN_NONE) values.push_back(value);
  Transaction edit(*opened, "outputs");
  edit_api()->region_outputs(edit.get(), Graph::main_region, nullptr, 0);  // names stay with places
  edit_api()->region_outputs(edit.get(), Graph::main_region, values.data(),
                             static_cast<uint32_t>(values.size()));
  Diagnostics ignored;
  edit.commit(ignored);
  return opened;
}

}  // namespace

bool Judge::dump(const Graph& graph, uint64_t seed, const std::string& folder) {
  const Inputs inputs = inputs_of(graph, seed, false);
  const std::unique_ptr<Graph> opened = with_all_outputs(graph);
  std::string error;
  bool no_kernel = false;
  const std::vector<NamedOutput> outputs = run_session(
      opened->clone(), registries(), runtime_options(true, "faithful"), inputs.named, error, no_kernel);
  const ExporterEntry* const exporter = registries().exporter("onnx");
  const TensorFileEntry* const npz = registries().tensor_file_for("x.npz");
  if (!error.empty() || exporter == nullptr || npz == nullptr) return false;
  const tn_host* const host = default_->engine.host().abi();
  const std::string base = folder + "/" + std::to_string(seed);
  Diagnostics said;
  const auto write = [&](const std::string& path, const std::vector<tn_named_tensor>& tensors) {
    return npz->record->write(npz->instance, host, to_abi(path), tensors.data(),
                              static_cast<uint32_t>(tensors.size()), said.abi()) == TN_OK;
  };
  std::vector<tn_named_tensor> given, made;
  for (const NamedTensor& input : inputs.named)
    given.push_back({to_abi(input.name), -1, input.tensor, TN_KIND_TENSOR, 0});
  for (const NamedOutput& output : outputs)
    if (output.value->kind == TN_KIND_TENSOR)
      made.push_back({to_abi(output.name), -1, output.tensor(), TN_KIND_TENSOR, 0});
  const std::string model = base + ".onnx";
  return exporter->record->write(exporter->instance, host, opened.get(), to_abi(model), nullptr, 0,
                                 said.abi()) == TN_OK &&
         write(base + ".inputs.npz", given) && write(base + ".outputs.npz", made);
}

std::string Judge::optimized_text(const Graph& graph, bool wild) {
  const std::unique_ptr<Graph> copy = graph.clone();
  OptimizeReport report;
  (wild ? *strict_ : *default_).engine.optimize(*copy, report);
  return print(*copy);
}

Judgement Judge::judge_written(const Graph& graph, uint64_t seed) {
  const ExporterEntry* exporter = registries().exporter("onnx");
  if (exporter == nullptr) return {};
  const Inputs inputs = inputs_of(graph, seed, false);
  Run want, got;
  want.outputs = run_session(graph.clone(), registries(), runtime_options(true, "faithful"), inputs.named,
                             want.error, want.no_kernel);
  if (!want.error.empty()) return {Verdict::refused, {}, want.error};
  const std::unique_ptr<Graph> optimised = graph.clone();
  OptimizeReport report;
  Engine& engine = default_->engine;
  engine.diagnostics().clear();
  const std::string path = engine.manifest().model_path.string();
  try {
    engine.optimize(*optimised, report);
    Diagnostics said;
    if (exporter->record->write(exporter->instance, engine.host().abi(), optimised.get(), to_abi(path),
                                nullptr, 0, said.abi()) != TN_OK)
      return {Verdict::broken, "the exporter refuses", said.first_error()};
    std::unique_ptr<Graph> read = engine.load_model();
    got.outputs = run_session(std::move(read), registries(), runtime_options(false, "faithful"), inputs.named,
                              got.error, got.no_kernel);
  } catch (const Error& failure) {
    return {Verdict::broken, "what was written is refused", failure.what()};
  }
  if (!got.error.empty()) return {Verdict::broken, "what was written does not run", got.error};
  Judgement judgement = compare(graph, inputs, want, got, seed);
  if (judgement.verdict == Verdict::broken) judgement.kind += " after writing";
  return judgement;
}

}  // namespace tenon::fuzz
