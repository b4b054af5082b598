#include "core/cli/sample_profile.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/graph/graph.hpp"
#include "core/runtime/session_inputs.hpp"

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t most_bytes_at_once = uint64_t{512} << 20;  // of the values that one run hands over

std::vector<fs::path> sample_files(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".npz" || entry.is_directory()) files.push_back(entry.path());
  if (error)
    throw Error(exit_bad_input, "--samples " + folder.string(), "cannot be read: " + error.message());
  if (files.size() < 2)
    throw Error(
        exit_bad_input, "--samples " + folder.string(),
        fmt::format(
            "holds {} samples (.npz files, or folders with input_0.pb ...); what never changes shows in "
            "two at least",
            files.size()));
  std::sort(files.begin(), files.end());
  return files;
}

bool same(const tn_tensor& a, const tn_tensor& b) {
  return a.dtype == b.dtype && a.dtype != TN_STRING && a.rank == b.rank &&
         std::equal(a.dims, a.dims + a.rank, b.dims) && a.bytes == b.bytes &&
         (a.bytes == 0 || std::memcmp(a.data, b.data, a.bytes) == 0);
}

// Type, shape and bytes as one number; it decides what is proposed, the guard decides what is right.
uint64_t digest(const tn_tensor& t) {
  uint64_t h = 1469598103934665603u;
  const auto eat = [&](const void* data, uint64_t bytes) {
    const auto* p = static_cast<const uint8_t*>(data);
    for (uint64_t i = 0; i < bytes; ++i) h = (h ^ p[i]) * 1099511628211u;
  };
  eat(&t.dtype, sizeof t.dtype);
  eat(t.dims, static_cast<uint64_t>(t.rank) * sizeof(int64_t));
  eat(t.data, t.bytes);
  return h;
}

uint64_t least_bytes(const Graph& graph, tn_value value) {
  const tn_type& type = graph.type(value);
  double n = TN_DTYPE_BITS(type.dtype) / 8.0;
  for (int32_t i = 0; type.rank > 0 && i < type.rank; ++i)
    n *= static_cast<double>(std::max<int64_t>(type.dims[i], 1));
  return static_cast<uint64_t>(std::min(n, 1e15)) + 1;
}

struct Dependence {
  std::set<uint32_t> inputs;
  uint64_t nodes = 0;
  bool pure = true;
};

}  // namespace

SampleProfile profile_samples(const PipelineOptions& given, const fs::path& folder) {
  const std::vector<fs::path> files = sample_files(folder);
  PipelineOptions options = given;
  options.quiet = true;
  Pipeline p = open_pipeline(options, read_target(options));
  p.graph = p.engine->load_model();
  p.engine->require_supported(*p.graph);
  Graph& graph = *p.graph;
  const Registries& registries = p.engine->registries();
  const InputChecker checker(graph);
  const size_t input_count = checker.inputs().size();

  // What each value depends on, in one walk along the order; a value whose inputs are many is no candidate,
  // so sets stay small: they are cut at eight.
  constexpr size_t most_inputs = 8;
  std::map<tn_value, Dependence> depends;
  std::vector<tn_value> candidates;
  for (const tn_node n : graph.nodes(Graph::main_region)) {
    const OpEntry* op = registries.find(graph.node(n).op);
    Dependence own;
    own.pure = op != nullptr && graph.node(n).region_count == 0 &&
               (op->def->flags & (TN_OP_NONDETERMINISTIC | TN_OP_SIDE_EFFECT | TN_OP_CONTROL_FLOW)) == 0;
    for (const tn_value v : graph.node(n).inputs()) {
      if (v == TN_NONE) continue;
      const Value& value = graph.value(v);
      if (value.kind == TN_VALUE_REGION_INPUT) own.inputs.insert(value.index);
      const auto from = depends.find(v);
      if (from == depends.end()) continue;
      own.inputs.insert(from->second.inputs.begin(), from->second.inputs.end());
      own.pure = own.pure && from->second.pure;
    }
    if (own.inputs.size() > most_inputs) own.pure = false;
    for (const tn_value v : graph.node(n).outputs()) {
      if (v == TN_NONE) continue;
      depends[v] = own;
      const tn_type& type = graph.type(v);
      if (type.kind == TN_KIND_TENSOR && type.dtype != TN_STRING && type.dtype != TN_DTYPE_NONE &&
          !own.inputs.empty())
        candidates.push_back(v);
    }
  }

  SampleProfile profile;
  profile.samples = files.size();
  std::vector<bool> steady_input(input_count, true);
  std::map<tn_value, uint64_t> digests;
  std::set<tn_value> changing;
  for (size_t s = 0; s < files.size(); ++s) {
    InputSet sample;
    read_inputs(files[s], registries, p.engine->host(), checker.inputs(), sample);
    std::vector<int> order;
    checker.check(sample.tensors, &order);
    std::vector<tn_tensor> tensors(input_count);
    for (size_t i = 0; i < input_count; ++i) {
      if (order[i] >= 0) tensors[i] = tensor_of(sample, static_cast<size_t>(order[i]));
      if (tensors[i].dtype == TN_DTYPE_NONE)
        throw Error(exit_bad_input, files[s].string(),
                    "gives no tensor for input '" + checker.inputs()[i].name + "'; samples give all inputs");
      if (s > 0 && !same(tensors[i], profile.tensors[i])) steady_input[i] = false;
    }
    for (size_t from = 0; from < candidates.size();) {
      std::vector<tn_value> wanted;
      uint64_t bytes = 0;
      for (; from < candidates.size() && (wanted.empty() || bytes < most_bytes_at_once); ++from) {
        if (changing.count(candidates[from]) != 0) continue;
        wanted.push_back(candidates[from]);
        bytes += least_bytes(graph, candidates[from]);
      }
      if (wanted.empty()) break;
      struct Sink {
        const std::vector<tn_value>* wanted;
        std::map<tn_value, uint64_t>* digests;
        std::set<tn_value>* changing;
        bool first;
      } sink{&wanted, &digests, &changing, s == 0};
      Diagnostics said;
      const tn_status status = Evaluator::api()->values(
          p.engine->host().abi(), &graph, tensors.data(), static_cast<uint32_t>(tensors.size()),
          wanted.data(), static_cast<uint32_t>(wanted.size()),
          [](void* context, uint32_t index, const tn_tensor* t) {
            auto& to = *static_cast<Sink*>(context);
            const tn_value value = (*to.wanted)[index];
            const uint64_t now = digest(*t);
            if (to.first)
              (*to.digests)[value] = now;
            else if (const auto at = to.digests->find(value); at == to.digests->end() || at->second != now)
              to.changing->insert(value);
          },
          &sink, said.abi());
      if (status != TN_OK)
        throw Error(exit_job_failed, files[s].string(),
                    "the model does not run on this sample: " +
                        (said.has_errors() ? said.first_error() : fmt::format("status {}", status)));
    }
    if (s == 0) {
      profile.first = std::move(sample);
      profile.tensors = tensors;
    }
  }

  for (size_t i = 0; i < input_count; ++i)
    if (steady_input[i]) profile.steady_inputs.push_back(checker.inputs()[i].name);
  const auto is_steady = [&](tn_value v) { return digests.count(v) != 0 && changing.count(v) == 0; };
  const auto is_foldable = [&](tn_value v) {
    const auto d = depends.find(v);
    return d != depends.end() && is_steady(v) && d->second.pure &&
           std::all_of(d->second.inputs.begin(), d->second.inputs.end(),
                       [&](uint32_t i) { return steady_input[i]; });
  };
  for (const tn_value v : candidates) {
    if (!is_steady(v)) continue;
    const bool foldable = is_foldable(v);
    // Only where steadiness ends: what leads there goes with it.
    const auto users = graph.users(v);
    const bool ends = std::any_of(users.begin(), users.end(), [&](const tn_use& use) {
      if (use.node == TN_NONE || graph.node(use.node).region_id != Graph::main_region) return true;
      const auto outputs = graph.node(use.node).outputs();
      return !std::all_of(outputs.begin(), outputs.end(), [&](tn_value o) {
        return o == TN_NONE || (foldable ? is_foldable(o) : is_steady(o));
      });
    });
    if (!ends) continue;
    const Dependence& d = depends.at(v);
    SteadyValue value;
    value.name = std::string(graph.name(v));
    value.foldable = foldable;
    const tn_type& type = graph.type(v);
    value.type = dtype_name(type.dtype) + "[";
    for (int32_t i = 0; i < type.rank; ++i)
      value.type += (i ? "," : "") + (type.dims[i] < 0 ? std::string("?") : std::to_string(type.dims[i]));
    value.type += "]";
    for (const uint32_t i : d.inputs) value.reads.push_back(checker.inputs()[i].name);
    if (!foldable) {
      std::vector<std::string> change;
      for (const uint32_t i : d.inputs)
        if (!steady_input[i]) change.push_back(checker.inputs()[i].name);
      value.why_not =
          !d.pure
              ? "what computes it may give another result each time, has a body, or reads many inputs"
              : "it depends on " + join(change, ", ") + ", which changes; no guard cheaper than computing it";
    }
    std::set<tn_node> cone;
    std::vector<tn_value> open{v};
    while (!open.empty()) {
      const tn_value at = open.back();
      open.pop_back();
      if (at == TN_NONE || graph.value(at).kind != TN_VALUE_RESULT ||
          !cone.insert(graph.value(at).producer).second)
        continue;
      for (const tn_value operand : graph.node(graph.value(at).producer).inputs()) open.push_back(operand);
    }
    value.nodes = cone.size();
    profile.values.push_back(std::move(value));
  }
  std::stable_sort(profile.values.begin(), profile.values.end(),
                   [](const SteadyValue& a, const SteadyValue& b) {
                     return a.foldable != b.foldable ? a.foldable : a.nodes > b.nodes;
                   });
  return profile;
}

Json profile_json(const SampleProfile& profile) {
  Json values = Json::array();
  for (const SteadyValue& v : profile.values) {
    values.push_back({{"value", v.name},
                      {"type", v.type},
                      {"depends_on", v.reads},
                      {"nodes", v.nodes},
                      {"foldable", v.foldable}});
    if (!v.foldable) values.back()["why_not"] = v.why_not;
  }
  return {{"samples", profile.samples}, {"steady_inputs", profile.steady_inputs}, {"values", values}};
}

std::string profile_text(const SampleProfile& profile, bool folded) {
  std::string s = fmt::format("{} samples; inputs that never change: {}\n", profile.samples,
                              profile.steady_inputs.empty() ? "none" : join(profile.steady_inputs, ", "));
  size_t foldable = 0;
  for (const SteadyValue& v : profile.values) {
    foldable += v.foldable;
    s += fmt::format("  {:<9} {} {}: {} nodes compute it from {}{}\n", v.foldable ? "foldable" : "steady",
                     v.name, v.type, v.nodes, join(v.reads, ", "),
                     v.foldable ? "" : "; not folded: " + v.why_not);
  }
  if (foldable != 0 && !folded)
    s += "--fold-profiled makes the foldable ones constants behind a check that these inputs are the "
         "samples'\n";
  return s;
}

void fold_profiled(const SampleProfile& profile, Manifest& manifest) {
  std::string names;
  for (const SteadyValue& v : profile.values)
    if (v.foldable) names += (names.empty() ? "" : "\n") + v.name;
  if (names.empty()) return;
  PassRequest request;
  request.pass = "fold_profiled";
  request.options = {{"values", names}};
  request.where = "--fold-profiled";
  manifest.pipeline.insert(manifest.pipeline.begin(), std::move(request));
  manifest.pipeline_is_default = false;
}

}  // namespace tenon::cli
