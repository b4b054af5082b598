#include <algorithm>
#include <map>

#include "core/base/text.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/interner.hpp"
#include "core/pipeline/pipeline.hpp"

namespace tenon {

namespace {

constexpr size_t named_nodes = 3;

// A node whose regions are no control flow carries its own body, which runs where no kernel does.
bool has_body(const Graph& graph, const Node& node, const OpEntry* entry) {
  if (entry != nullptr && (entry->def->flags & TN_OP_CONTROL_FLOW) != 0) return false;
  // SequenceMap's region is called so too, and runs once an element.
  if (entry == nullptr && split_op_name(symbol_text(node.op)).domain.empty()) return false;
  return std::any_of(node.regions().begin(), node.regions().end(),
                     [&](tn_region region) { return graph.region_name(region) == "body"; });
}

}  // namespace

std::vector<UnsupportedOperator> Engine::unsupported_operators(Graph& graph) const {
  const Registries& registries = plugins_.registries();
  std::map<std::string, UnsupportedOperator> found;
  for (tn_region region = 0; region < graph.region_bound(); ++region) {
    if (!graph.region(region).alive) continue;
    for (tn_node id = graph.first_node(region); id != TN_NONE; id = graph.next_node(id)) {
      const Node& node = graph.node(id);
      if (!registries.kernels(node.op).empty()) continue;
      const OpEntry* entry = registries.find(node.op);
      if ((entry != nullptr && entry->def->decompose != nullptr) || has_body(graph, node, entry)) continue;
      UnsupportedOperator& item = found[std::string(graph.op_name(id))];
      item.defined = entry != nullptr;
      if (item.count++ < named_nodes) item.nodes.push_back(node_place(graph, id));
    }
  }
  if (found.empty()) return {};

  std::vector<std::string> known;
  for (const tn_sym symbol : registries.op_symbols()) known.emplace_back(symbol_text(symbol));
  std::vector<UnsupportedOperator> all;
  for (auto& [op, item] : found) {
    item.op = op;
    if (!item.defined) item.nearest = nearest_names(op, known);
    item.provided_by = plugins_.plugins_with_operator(op, item.defined);
    all.push_back(std::move(item));
  }
  return all;
}

std::string to_string(const UnsupportedOperator& op) {
  std::string text = "operator " + op.op + " (" + format_count(op.count) +
                     (op.count == 1 ? " node" : " nodes") + "; " + join(op.nodes, ", ") +
                     (op.count > op.nodes.size() ? ", ..." : "") + ") is not supported: ";
  text += op.defined ? "no loaded plugin has a kernel for it, and it has no decomposition"
                     : "no loaded plugin defines it";
  if (!op.provided_by.empty()) {
    text += "; plugin " + op.provided_by.front() + ", which is installed, provides it: add it to \"plugins\"";
  } else if (!op.nearest.empty()) {
    text += "; the nearest known are " + join(op.nearest, ", ");
  }
  return text;
}

void Engine::require_supported(Graph& graph) const {
  Diagnostics found;
  for (const UnsupportedOperator& op : unsupported_operators(graph))
    found.error("M250", manifest_.model_path.string(), to_string(op));
  found.throw_if_errors(exit_bad_input);
}

}  // namespace tenon
