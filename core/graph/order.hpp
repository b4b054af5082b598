// Who must come before whom within one region, captures of nested regions counted as uses by their owner.
#pragma once
#include <vector>

#include "core/graph/graph.hpp"

namespace tenon {

// The node of `region` to which a use of one of its values belongs: the user itself, or the owner of the
// region the user is in. TN_NONE: the use is an output of `region`.
inline tn_node user_within(const Graph& graph, tn_region region, const tn_use& use) {
  if (use.region == region) return use.node;
  return graph.owner_within(region, use.region);
}

// Calls visit(node) for each producer, in the node's own region, of what the node and its regions read.
template <class F>
void for_each_predecessor(const Graph& graph, tn_node id, F&& visit) {
  const tn_region region = graph.node(id).region_id;
  const auto look_at = [&](tn_value value) {
    if (value == TN_NONE) return;
    const Value& v = graph.value(value);
    if (v.kind == TN_VALUE_RESULT && v.region == region) visit(v.producer);
  };
  for (const tn_value input : graph.node(id).inputs()) look_at(input);
  if (graph.node(id).region_count == 0) return;
  std::vector<tn_region> open(graph.node(id).regions().begin(), graph.node(id).regions().end());
  while (!open.empty()) {
    const tn_region inner = open.back();
    open.pop_back();
    for (tn_node node = graph.first_node(inner); node != TN_NONE; node = graph.next_node(node)) {
      for (const tn_value input : graph.node(node).inputs()) look_at(input);
      for (const tn_region nested : graph.node(node).regions()) open.push_back(nested);
    }
    for (const tn_value output : graph.region(inner).outputs) look_at(output);
  }
}

}  // namespace tenon
