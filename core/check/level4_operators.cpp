// Level 4: operators: what inference says is what comes out, and decompositions compute the same.
#include <algorithm>

#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/draw.hpp"
#include "core/check/kernel_cases.hpp"
#include "core/check/levels.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/interner.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/plugin/decompose.hpp"

namespace tenon::check {

namespace {

// The engine's entries of operators that this plugin defines.
template <class Look>
void each_own_op(Checker& checker, Look&& look) {
  const Registries& registries = checker.engine().registries();
  for (const tn_sym op : checker.records().op_symbols()) {
    const OpEntry* const entry = registries.find(op);
    if (entry != nullptr && entry->def == checker.records().find(op)->def) look(registries, op, *entry);
  }
}

std::string name_of(const tn_op_def& def) {
  return (def.domain.size == 0 ? std::string() : string(def.domain) + "::") + string(def.name);
}

bool is_random(const tn_op_def& def) { return (def.flags & TN_OP_NONDETERMINISTIC) != 0; }

}  // namespace

void check_inference_equals_run(Checker& checker) {
  std::unique_ptr<CaseLibrary> library;
  each_own_op(checker, [&](const Registries& registries, tn_sym op, const OpEntry& entry) {
    if (library == nullptr) library = std::make_unique<CaseLibrary>(checker);
    const std::string name = name_of(*entry.def);
    if (!checker.begin(fmt::format("operator {}: inference of nodes drawn", name)) && checker.ended_here())
      return;
    for (NodeCase& node : library->any(op, {}, name, 10)) {
      if (!checker.begin(fmt::format("operator {} on {}", name, node.name))) continue;
      const RunResult run = run_graph(*node.graph, registries, graph_inputs(node), {});
      if (!run.error.empty()) continue;  // no kernel, or values that are an error
      for (size_t i = 0; i < run.outputs.size(); ++i) {
        const tn_type& type = node.graph->type(node.graph->region(Graph::main_region).outputs[i]);
        const tn_any& value = *run.outputs[i].value.get();
        if (type.kind != TN_KIND_NONE && type.kind != value.kind) {
          checker.finding(fmt::format("result {} is of another kind than inferred", i));
          continue;
        }
        if (value.kind != TN_KIND_TENSOR) continue;
        const tn_tensor tensor = value.tensor();
        if (type.dtype != TN_DTYPE_NONE && type.dtype != tensor.dtype)
          checker.finding(fmt::format("result {} is {}, inferred was {}", i, dtype_name(tensor.dtype),
                                      dtype_name(type.dtype)));
        bool fits = type.rank < 0 || type.rank == tensor.rank;
        for (int32_t d = 0; d < type.rank && fits; ++d) {
          int64_t low = 0, high = 0;
          if (type.dims[d] >= 0) {
            fits = type.dims[d] == tensor.dims[d];
          } else {
            node.graph->symbols().range(type.dims[d], &low, &high);
            fits = low <= tensor.dims[d] && tensor.dims[d] <= high;
          }
        }
        if (!fits)
          checker.finding(fmt::format("result {} is {}, inferred was {}", i, type_of(tensor),
                                      type_text(*node.graph, type)));
      }
    }
  });
}

void check_decompositions(Checker& checker) {
  std::unique_ptr<CaseLibrary> library;
  each_own_op(checker, [&](const Registries& registries, tn_sym op, const OpEntry& entry) {
    if (entry.def->decompose == nullptr || is_random(*entry.def)) return;
    if (library == nullptr) library = std::make_unique<CaseLibrary>(checker);
    const std::string name = name_of(*entry.def);
    if (!checker.begin(fmt::format("operator {}: inference of nodes drawn", name)) && checker.ended_here())
      return;
    for (NodeCase& node : library->any(op, {}, name, 8)) {
      if (!checker.begin(fmt::format("operator {} on {}", name, node.name))) continue;
      // Reshapes cannot say every shape of nothing; kernels are for those.
      if (std::any_of(node.inputs.begin(), node.inputs.end(),
                      [](const auto& tensor) { return tensor != nullptr && tensor->count() == 0; }))
        continue;
      // A node that nobody can run says nothing: its operands may be wrong in a way that inference need not
      // see.
      const std::vector<Tensor> inputs = graph_inputs(node);
      const RunResult want = run_graph(*node.graph, registries, inputs, {});
      if (!want.error.empty()) continue;
      const std::unique_ptr<Graph> simpler = node.graph->clone();
      {
        Transaction edit(*simpler, "decompose");
        Diagnostics said;
        const tn_status status = decompose(registries, *simpler, edit.get(), node.node, said.abi());
        if (status == TN_DECLINED) continue;
        if (status != TN_OK) {
          checker.finding(fmt::format("decompose answers status {}: {}", status, said.first_error()));
          continue;
        }
        if (!edit.commit(said)) {
          checker.finding("what it makes is refused: " + said.first_error());
          continue;
        }
      }
      const RunResult got = run_graph(*simpler, registries, inputs, {});
      if (!got.error.empty())
        checker.finding("what it makes does not run: " + got.error);
      else if (auto text = difference(want.outputs, got.outputs))
        checker.finding("what it makes computes otherwise: " + *text);
    }
  });
}

// Nodes that a file may well have: any operands at all. Inference answers types, or why not.
void check_inference_of_odd_nodes(Checker& checker) {
  const Registries& registries = checker.engine().registries();
  each_own_op(checker, [&](const Registries&, tn_sym op, const OpEntry& entry) {
    const std::string name = name_of(*entry.def);
    if ((entry.def->flags & TN_OP_CONTROL_FLOW) != 0 || entry.def->infer == nullptr) return;
    for (int i = 0; i < 25; ++i) {
      if (!checker.begin(fmt::format("operator {} with operands {}", name, i))) continue;
      Random random = checker.random(fmt::format("{} {}", name, i));
      Graph graph;
      graph.set_registry(&registries);
      Transaction edit(graph, "odd", TN_EDIT_BUILD);
      std::vector<tn_value> inputs;
      const size_t count = random.below(entry.def->input_count + 2);
      for (size_t k = 0; k < count; ++k) {
        tn_value value = TN_NONE;
        std::vector<int64_t> dims(random.below(6));
        for (int64_t& dim : dims) dim = random.of({0, 1, 1, 2, 3, 4, 1 << 20});
        const std::vector<tn_dtype> allowed = allowed_dtypes(*entry.def, static_cast<uint32_t>(k));
        const tn_dtype dtype = allowed.empty() || random.chance(0.2)
                                   ? random.of({TN_FLOAT32, TN_INT64, TN_STRING, TN_BOOL})
                                   : random.of(allowed);
        const std::string input = "in" + std::to_string(k);
        int64_t elements = 1;
        for (const int64_t dim : dims) elements *= std::min<int64_t>(dim, 4096);
        if (random.chance(0.4) && elements <= 4096 &&
            std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d < 5; })) {
          Tensor tensor(dtype, dims);
          fill(tensor, random, Fill::tame);
          const tn_tensor bytes = tensor.view();
          edit_api()->constant_copy(edit.get(), to_abi(input), &bytes, &value);
        } else if (random.chance(0.9)) {
          if (random.chance(0.2))
            for (int64_t& dim : dims) dim = graph.symbols().named("N");
          const tn_type type{TN_KIND_TENSOR, random.chance(0.1) ? TN_DTYPE_NONE : dtype,
                             random.chance(0.1) ? -1 : static_cast<int32_t>(dims.size()), 0, dims.data()};
          edit_api()->region_input(edit.get(), Graph::main_region, to_abi(input), &type, &value);
        }
        inputs.push_back(value);
      }
      std::vector<tn_attr> attrs;
      for (uint32_t a = 0; a < entry.def->attr_count; ++a) {
        if (random.chance(0.4)) continue;
        tn_attr attr{};
        attr.name = intern(view(entry.def->attrs[a].name));
        attr.kind = random.chance(0.8) ? entry.def->attrs[a].kind : static_cast<uint32_t>(TN_ATTR_INT);
        static const int64_t numbers[] = {-7, 0, 3, INT64_MAX, INT64_MIN, 1};
        static const double floats[] = {0.5, -1e30};
        attr.count = 1;
        if (attr.kind == TN_ATTR_INT)
          attr.u.i = numbers[random.below(6)];
        else if (attr.kind == TN_ATTR_FLOAT)
          attr.u.f = floats[random.below(2)];
        else if (attr.kind == TN_ATTR_STRING)
          attr.u.s = random.of({to_abi(""), to_abi("x"), to_abi("SAME_UPPER")});
        else if (attr.kind == TN_ATTR_INTS) {
          attr.count = random.below(5);
          attr.u.ints = numbers;
        } else if (attr.kind == TN_ATTR_FLOATS) {
          attr.count = random.below(3);
          attr.u.floats = floats;
        } else {
          continue;
        }
        attrs.push_back(attr);
      }
      tn_node_desc desc{};
      desc.size = sizeof desc;
      desc.op = op;
      desc.before = TN_NONE;
      desc.inputs = inputs.data();
      desc.input_count = static_cast<uint32_t>(inputs.size());
      desc.attrs = attrs.data();
      desc.attr_count = static_cast<uint32_t>(attrs.size());
      desc.output_count = 1 + static_cast<uint32_t>(random.below(std::max(1u, entry.def->output_count)));
      tn_node node = TN_NONE;
      if (edit_api()->create_node(edit.get(), &desc, &node) != TN_OK) continue;
      Diagnostics said;
      if (edit.commit(said)) infer_graph(graph, said);
      for (const Diagnostic& one : said.all()) {
        if (one.severity >= TN_SEVERITY_ERROR && one.text.empty()) checker.finding("an error without a text");
        if (one.severity == TN_SEVERITY_PLUGIN_MISBEHAVING) checker.finding(one.text);
      }
    }
  });
}

}  // namespace tenon::check
