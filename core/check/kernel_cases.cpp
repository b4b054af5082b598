#include "core/check/kernel_cases.hpp"

#include <algorithm>
#include <set>

#include "core/base/text.hpp"
#include "core/check/draw.hpp"
#include "core/graph/infer.hpp"
#include "core/pipeline/pipeline.hpp"

namespace tenon::check {

namespace {

constexpr size_t sources_of_an_operator = 10;
constexpr int64_t largest_case = 1 << 16;  // elements of an operand

// A node with regions cannot be made anew; everything around it goes instead.
std::optional<NodeCase> cut_out(const NodeSource& source) {
  NodeCase made;
  made.graph = source.graph->clone();
  Graph& graph = *made.graph;
  Transaction edit(graph, "case");
  for (uint32_t i = 0; i < source.inputs.size(); ++i) {
    if (source.inputs[i] == nullptr || graph.is_constant(graph.node(source.node).input(i))) continue;
    const tn_tensor tensor = source.inputs[i]->view();
    const tn_type type{TN_KIND_TENSOR, tensor.dtype, tensor.rank, 0, tensor.dims};
    const std::string name = "case_in" + std::to_string(i);
    tn_value value = TN_NONE;
    if (edit_api()->region_input(edit.get(), Graph::main_region, to_abi(name), &type, &value) != TN_OK ||
        edit_api()->set_input(edit.get(), source.node, i, value) != TN_OK)
      return std::nullopt;
  }
  std::vector<tn_value> outputs;
  for (const tn_value value : graph.node(source.node).outputs())
    if (value != TN_NONE) outputs.push_back(value);
  edit_api()->region_outputs(edit.get(), Graph::main_region, nullptr, 0);
  edit_api()->region_outputs(edit.get(), Graph::main_region, outputs.data(),
                             static_cast<uint32_t>(outputs.size()));
  const std::span<const tn_node> order = graph.nodes(Graph::main_region);
  const std::vector<tn_node> nodes(order.begin(), order.end());
  for (size_t i = nodes.size(); i-- > 0;)
    if (nodes[i] != source.node && edit_api()->erase(edit.get(), nodes[i]) != TN_OK) return std::nullopt;
  Diagnostics ignored;
  if (!edit.commit(ignored)) return std::nullopt;
  // The model's own inputs are still there, and nobody reads them.
  if (graph.region(Graph::main_region).inputs.size() !=
      static_cast<size_t>(std::count_if(source.inputs.begin(), source.inputs.end(),
                                        [](const auto& t) { return t != nullptr; })) -
          static_cast<size_t>(std::count(source.constant.begin(), source.constant.end(), true)))
    return std::nullopt;
  made.node = source.node;
  made.inputs = source.inputs;
  made.constant = source.constant;
  for (uint32_t i = 0; i < made.inputs.size(); ++i)
    made.constant[i] = made.inputs[i] != nullptr && graph.is_constant(graph.node(source.node).input(i));
  return made;
}

int64_t scaled(int64_t dim, int64_t from, int64_t to) { return dim == from ? to : dim; }

std::shared_ptr<Tensor> with_dims(const Tensor& tensor, std::vector<int64_t> dims, tn_dtype dtype,
                                  Random& random) {
  auto made = std::make_shared<Tensor>(dtype, std::move(dims));
  fill(*made, random, Fill::tame);
  if (dtype != tensor.dtype() || !dtype_is_integer(dtype) || tensor.count() == 0) return made;
  // Integers are often places within something: those that were there are possible ones.
  const uint64_t bytes = TN_DTYPE_BITS(dtype) / 8;
  if (bytes == 0) return made;
  for (uint64_t i = 0; i < made->count(); ++i)
    std::copy_n(static_cast<const uint8_t*>(tensor.data()) + (i % tensor.count()) * bytes, bytes,
                static_cast<uint8_t*>(made->data()) + i * bytes);
  return made;
}

}  // namespace

std::optional<NodeCase> make_case(const NodeSource& source, const Registries& registries,
                                  const std::string& what) {
  const Node& n = source.graph->node(source.node);
  if (n.region_count != 0) {
    std::optional<NodeCase> cut = cut_out(source);
    if (cut) {
      cut->graph->set_registry(&registries);
      cut->name = what;
    }
    return cut;
  }
  NodeCase made;
  made.name = what;
  made.graph = std::make_unique<Graph>();
  Graph& graph = *made.graph;
  graph.set_registry(&registries);
  Transaction edit(graph, "case", TN_EDIT_BUILD);
  edit_api()->set_opset(edit.get(), {}, registries.domain_version(""));
  std::vector<tn_value> inputs;
  for (size_t i = 0; i < source.inputs.size(); ++i) {
    tn_value value = TN_NONE;
    if (source.inputs[i] != nullptr) {
      const tn_tensor tensor = source.inputs[i]->view();
      const std::string name = "in" + std::to_string(i);
      const tn_type type{TN_KIND_TENSOR, tensor.dtype, tensor.rank, 0, tensor.dims};
      const tn_status status =
          source.constant[i]
              ? edit_api()->constant_copy(edit.get(), to_abi(name), &tensor, &value)
              : edit_api()->region_input(edit.get(), Graph::main_region, to_abi(name), &type, &value);
      if (status != TN_OK) return std::nullopt;
    }
    inputs.push_back(value);
  }
  std::vector<std::string> names;
  for (uint32_t i = 0; i < n.output_count; ++i)
    names.push_back(n.output(i) == TN_NONE ? std::string() : "result" + std::to_string(i));
  std::vector<tn_str> output_names;
  for (const std::string& name : names)
    output_names.push_back(name.empty() ? tn_str{nullptr, 0} : to_abi(name));
  tn_node_desc desc{};
  desc.size = sizeof desc;
  desc.op = n.op;
  desc.op_version = n.op_version;
  desc.before = TN_NONE;
  desc.name = to_abi("case");
  desc.inputs = inputs.data();
  desc.input_count = static_cast<uint32_t>(inputs.size());
  desc.attrs = n.attr_data;
  desc.attr_count = n.attr_count;
  desc.output_names = output_names.data();
  desc.output_count = n.output_count;
  if (edit_api()->create_node(edit.get(), &desc, &made.node) != TN_OK) return std::nullopt;
  std::vector<tn_value> outputs;
  for (const tn_value value : graph.node(made.node).outputs())
    if (value != TN_NONE) outputs.push_back(value);
  edit_api()->region_outputs(edit.get(), Graph::main_region, outputs.data(),
                             static_cast<uint32_t>(outputs.size()));
  Diagnostics ignored;
  if (!edit.commit(ignored)) return std::nullopt;
  // A build begins without types; an edit that changes nothing infers nothing, so it is asked for.
  if (!ignored.has_errors()) infer_graph(graph, ignored);
  if (ignored.has_errors()) return std::nullopt;
  made.inputs = source.inputs;
  made.constant = source.constant;
  return made;
}

CaseLibrary::CaseLibrary(Checker& checker) : checker_(checker), registries_(checker.engine().registries()) {
  const Registries& own = checker.records();
  wanted_.insert(own.kernel_ops().begin(), own.kernel_ops().end());
  wanted_.insert(own.op_symbols().begin(), own.op_symbols().end());
  std::vector<CorpusGraph> corpus = load_corpus(registries_, checker.request());
  for (CorpusGraph& one : corpus) {
    collect(*one.graph, one.name);
    graphs_.push_back(std::move(one.graph));
  }
  // Fused operators that no graph has: what rewrites make of the graphs.
  std::erase_if(wanted_, [&](tn_sym op) {
    return !sources_[op].empty() || view(graph_api()->symbol_text(op)).find("::") == std::string_view::npos;
  });
  for (size_t i = 0; i < corpus.size() && !wanted_.empty(); ++i) {
    std::unique_ptr<Graph> fused = graphs_[i]->clone();
    OptimizeReport report;
    try {
      checker.engine().optimize(*fused, report);
    } catch (const Error&) {
      continue;  // no kernel's fault
    }
    collect(*fused, corpus[i].name + " (optimised)");
    graphs_.push_back(std::move(fused));
  }
}

void CaseLibrary::collect(const Graph& graph, const std::string& name) {
  const auto is_wanted = [&](tn_node node) {
    const tn_sym op = graph.node(node).op;
    return wanted_.count(op) != 0 && sources_[op].size() < sources_of_an_operator;
  };
  const std::span<const tn_node> nodes = graph.nodes(Graph::main_region);
  if (std::none_of(nodes.begin(), nodes.end(), is_wanted)) return;
  // Every tensor of the graph, by value.
  std::unique_ptr<Graph> opened = graph.clone();
  std::vector<tn_value> results;
  for (const tn_node node : nodes)
    for (const tn_value value : graph.node(node).outputs())
      if (value != TN_NONE && graph.type(value).kind == TN_KIND_TENSOR) results.push_back(value);
  {
    Transaction edit(*opened, "values");
    edit_api()->region_outputs(edit.get(), Graph::main_region, nullptr, 0);
    edit_api()->region_outputs(edit.get(), Graph::main_region, results.data(),
                               static_cast<uint32_t>(results.size()));
    Diagnostics ignored;
    if (!edit.commit(ignored)) return;
  }
  const std::vector<Tensor> inputs = random_inputs(graph, Random(checker_.request().seed, name), Fill::tame);
  const std::vector<tn_value>& input_ids = graph.region(Graph::main_region).inputs;
  const RunResult run = run_graph(*opened, registries_, inputs, {});
  if (!run.error.empty() || inputs.size() != input_ids.size()) return;
  std::map<tn_value, std::shared_ptr<Tensor>> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) tensors[input_ids[i]] = std::make_shared<Tensor>(inputs[i]);
  for (size_t i = 0; i < results.size(); ++i)
    if (run.outputs[i].value->kind == TN_KIND_TENSOR)
      tensors[results[i]] = std::make_shared<Tensor>(Tensor::copy_of(run.outputs[i].tensor()));
  for (const tn_node node : nodes) {
    if (!is_wanted(node)) continue;
    const Node& n = graph.node(node);
    NodeSource source{fmt::format("{} of {}", graph.node_name(node), name), &graph, node, {}, {}};
    bool good = true;
    for (const tn_value value : n.inputs()) {
      std::shared_ptr<Tensor> tensor;
      bool constant = false;
      if (value != TN_NONE && graph.is_constant(value)) {
        tn_tensor bytes{};
        const_cast<Graph&>(graph).constant(value, &bytes);
        tensor = std::make_shared<Tensor>(Tensor::copy_of(bytes));
        constant = true;
      } else if (value != TN_NONE) {
        const auto found = tensors.find(value);
        good = good && found != tensors.end();
        if (found != tensors.end()) tensor = found->second;
      }
      good = good && (tensor == nullptr || tensor->count() <= static_cast<uint64_t>(largest_case));
      source.inputs.push_back(std::move(tensor));
      source.constant.push_back(constant);
    }
    if (good) sources_[n.op].push_back(std::move(source));
  }
}

std::vector<NodeCase> CaseLibrary::any(tn_sym op, const std::vector<tn_dtype>& dtypes,
                                       const std::string& stream, size_t most) {
  std::vector<NodeCase> cases;
  const auto add = [&](const NodeSource& source, const std::string& what) {
    if (cases.size() < most)
      if (std::optional<NodeCase> made = make_case(source, registries_, what))
        cases.push_back(std::move(*made));
  };
  const OpEntry* const entry = registries_.find(op);
  for (const NodeSource& source : sources_[op]) {
    const std::string what = source.name;
    add(source, what);
    // Constants are what exporters write, kernels pack and vendors forget not to require.
    NodeSource other = source;
    for (size_t i = 0; i < other.constant.size(); ++i)
      other.constant[i] = i != 0 && other.inputs[i] != nullptr;
    if (other.constant != source.constant) add(other, what + ", all but the first constant");
    if (source.inputs.empty() || source.inputs[0] == nullptr) continue;
    const tn_dtype own = source.inputs[0]->dtype();
    Random random(checker_.request().seed, stream + source.name);
    for (const tn_dtype dtype : dtypes) {
      if (dtype == own) continue;
      NodeSource typed = other;
      for (std::shared_ptr<Tensor>& tensor : typed.inputs)
        if (tensor != nullptr && tensor->dtype() == own)
          tensor = with_dims(*tensor, {tensor->dims().begin(), tensor->dims().end()}, dtype, random);
      add(typed, fmt::format("{} as {}", what, dtype_name(dtype)));
      typed.constant = source.constant;
      add(typed, fmt::format("{} as {}, constants as found", what, dtype_name(dtype)));
    }
    // One size of input 0 is another wherever it occurs.
    for (const int64_t to :
         {int64_t{1}, int64_t{7}, int64_t{16}, int64_t{17}, int64_t{33}, int64_t{64}, int64_t{0}}) {
      if (source.inputs[0]->dims().empty()) break;
      const std::span<const int64_t> dims = source.inputs[0]->dims();
      const int64_t from = dims[random.below(dims.size())];
      if (from == to) continue;
      NodeSource sized = source;
      bool fits = true;
      for (std::shared_ptr<Tensor>& tensor : sized.inputs) {
        if (tensor == nullptr) continue;
        std::vector<int64_t> changed;
        int64_t count = 1;
        for (const int64_t dim : tensor->dims()) {
          changed.push_back(scaled(dim, from, to));
          count *= changed.back();
        }
        fits = fits && count <= largest_case;
        if (!std::equal(changed.begin(), changed.end(), tensor->dims().begin(), tensor->dims().end()))
          tensor = with_dims(*tensor, changed, tensor->dtype(), random);
      }
      if (fits) add(sized, fmt::format("{}, size {} instead of {}", what, to, from));
    }
  }
  if (entry == nullptr || entry->def == nullptr) return cases;
  for (int i = 0; i < 60 && cases.size() < most; ++i) {
    Random random(checker_.request().seed, fmt::format("{} draw {}", stream, i));
    const std::unique_ptr<Graph> drawn = draw_node(registries_, *entry->def, random, dtypes);
    if (drawn == nullptr) continue;
    NodeSource source{fmt::format("draw {}", i), drawn.get(), drawn->nodes(Graph::main_region)[0], {}, {}};
    const std::vector<Tensor> inputs = random_inputs(*drawn, random, Fill::tame);
    const std::vector<tn_value>& ids = drawn->region(Graph::main_region).inputs;
    for (const tn_value value : drawn->node(source.node).inputs()) {
      source.constant.push_back(value != TN_NONE && drawn->is_constant(value));
      if (value == TN_NONE) {
        source.inputs.emplace_back();
      } else if (source.constant.back()) {
        tn_tensor bytes{};
        drawn->constant(value, &bytes);
        source.inputs.push_back(std::make_shared<Tensor>(Tensor::copy_of(bytes)));
      } else {
        const auto at = static_cast<size_t>(std::find(ids.begin(), ids.end(), value) - ids.begin());
        source.inputs.push_back(std::make_shared<Tensor>(inputs[at]));
      }
    }
    add(source, source.name);
  }
  return cases;
}

std::vector<NodeCase*> CaseLibrary::accepted(const KernelEntry& kernel, size_t most) {
  const tn_kernel_record& record = *kernel.record;
  std::vector<tn_dtype> dtypes;
  if (record.input_rule_count != 0 && record.input_rules[0].dtypes != nullptr)
    dtypes.assign(record.input_rules[0].dtypes,
                  record.input_rules[0].dtypes + record.input_rules[0].dtype_count);
  std::vector<NodeCase> candidates = any(kernel.op, dtypes, string(record.id), 400);
  // First one of each type of the first operand, then the others in their order.
  std::vector<NodeCase*> taken;
  std::set<tn_dtype> seen;
  std::vector<bool> used(candidates.size(), false);
  for (const bool only_new_types : {true, false}) {
    for (size_t i = 0; i < candidates.size() && taken.size() < most; ++i) {
      NodeCase& candidate = candidates[i];
      if (used[i]) continue;
      const tn_dtype dtype = candidate.inputs.empty() || candidate.inputs[0] == nullptr
                                 ? TN_DTYPE_NONE
                                 : candidate.inputs[0]->dtype();
      if (only_new_types && seen.count(dtype) != 0) continue;
      used[i] = true;
      if (!KernelTrial(registries_, kernel, candidate, {}).refusal().empty()) continue;
      seen.insert(dtype);
      kept_.push_back(std::make_unique<NodeCase>(std::move(candidate)));
      taken.push_back(kept_.back().get());
    }
  }
  return taken;
}

std::vector<Tensor> graph_inputs(const NodeCase& node) {
  std::vector<Tensor> inputs;
  const Node& n = node.graph->node(node.node);
  for (const tn_value id : node.graph->region(Graph::main_region).inputs)
    for (uint32_t i = 0; i < n.input_count; ++i)
      if (n.input(i) == id) {
        inputs.push_back(*node.inputs[i]);
        break;
      }
  return inputs;
}

void refill(NodeCase& node, Random& random, Fill style) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == nullptr || node.constant[i] || !dtype_is_float(node.inputs[i]->dtype())) continue;
    auto other = std::make_shared<Tensor>(*node.inputs[i]);
    fill(*other, random, style);
    node.inputs[i] = std::move(other);
  }
}

}  // namespace tenon::check
