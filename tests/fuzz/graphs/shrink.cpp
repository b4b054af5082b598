#include "shrink.hpp"

#include <algorithm>

#include "core/base/text.hpp"

namespace tenon::fuzz {

namespace {

void set_outputs(Graph& graph, const std::vector<tn_value>& outputs) {
  Transaction edit(graph, "shrink");
  edit_api()->region_outputs(edit.get(), Graph::main_region, outputs.data(),
                             static_cast<uint32_t>(outputs.size()));
  Diagnostics ignored;
  edit.commit(ignored);
}

// Nodes whose results nothing reads, until there are none.
void drop_dead(Graph& graph) {
  for (bool again = true; again;) {
    again = false;
    for (tn_node id = 0; id < graph.node_bound(); ++id) {
      if (!graph.node(id).alive || graph.node(id).region_id != Graph::main_region) continue;
      bool used = false;
      for (const tn_value value : graph.node(id).outputs())
        used = used || (value != TN_NONE && !graph.users(value).empty());
      if (used) continue;
      Transaction edit(graph, "shrink");
      edit_api()->erase(edit.get(), id);
      Diagnostics ignored;
      again = edit.commit(ignored) || again;
    }
  }
  graph.drop_unused_constants();
}

// The node's results become inputs of the graph, or the operand of the same type takes their place.
bool cut(Graph& graph, tn_node id, bool by_operand) {
  Transaction edit(graph, "shrink");
  for (const tn_value value :
       std::vector<tn_value>(graph.node(id).outputs().begin(), graph.node(id).outputs().end())) {
    if (value == TN_NONE || graph.users(value).empty()) continue;
    tn_value other = TN_NONE;
    const tn_type type = graph.type(value);
    if (by_operand) {
      for (const tn_value operand : graph.node(id).inputs())
        if (operand != TN_NONE && graph.value(operand).type == graph.value(value).type) other = operand;
    } else if (type.kind == TN_KIND_TENSOR && type.rank >= 0) {
      const std::string name = "cut" + std::to_string(value);
      edit_api()->region_input(edit.get(), Graph::main_region, to_abi(name), &type, &other);
    }
    if (other == TN_NONE || edit_api()->replace_uses(edit.get(), value, other) != TN_OK) return false;
  }
  Diagnostics ignored;
  return edit.commit(ignored);
}

}  // namespace

std::unique_ptr<Graph> shrink(std::unique_ptr<Graph> graph, const std::function<bool(const Graph&)>& fails) {
  const auto keep_if_fails = [&](std::unique_ptr<Graph> candidate) {
    if (candidate->live_node_count() == 0 || candidate->region(0).outputs.empty() || !fails(*candidate))
      return false;
    graph = std::move(candidate);
    return true;
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    // Outputs, one after another.
    for (size_t i = 0; i < graph->region(0).outputs.size() && graph->region(0).outputs.size() > 1;) {
      std::unique_ptr<Graph> candidate = graph->clone();
      std::vector<tn_value> outputs = candidate->region(0).outputs;
      outputs.erase(outputs.begin() + static_cast<ptrdiff_t>(i));
      set_outputs(*candidate, outputs);
      drop_dead(*candidate);
      if (keep_if_fails(std::move(candidate)))
        smaller = true;
      else
        ++i;
    }
    // Nodes, from the end.
    for (tn_node id = graph->node_bound(); id-- > 0;) {
      if (!graph->node(id).alive || graph->node(id).region_id != Graph::main_region) continue;
      for (const bool by_operand : {true, false}) {
        std::unique_ptr<Graph> candidate = graph->clone();
        const uint32_t before = candidate->live_node_count();
        if (!cut(*candidate, id, by_operand)) continue;
        drop_dead(*candidate);
        if (candidate->live_node_count() < before && keep_if_fails(std::move(candidate))) {
          smaller = true;
          break;
        }
      }
    }
  }
  return graph;
}

}  // namespace tenon::fuzz
