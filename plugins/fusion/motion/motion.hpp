// Data movement carried past arithmetic, where two movements then meet or less is computed.
#pragma once
#include "sweep.hpp"

namespace tenon::fusion {

Table transpose_motion();
Table reshape_motion();
Table row_motion();
Table quantize_motion();
Table selection_motion();
Table activation_motion();

/// A node between two movements, and the operand by which the data goes through it.
struct Link {
  tn_node node;
  uint32_t slot;
};

/// The nodes that the result of `from` goes through, each read by the next alone and in one region, up to a
/// node of which `last` holds. Empty when there is none: on the way only nodes of which `passes` holds.
template <class Passes, class Last>
std::vector<Link> chain_from(const Context& c, const sdk::Node& from, Passes passes, Last last) {
  std::vector<Link> links;
  tn_value at = from.output(0);
  constexpr size_t longest = 64;
  while (links.size() < longest) {
    if (c.graph.value(at).use_count != 1) return {};
    const tn_use use = c.graph.users(at)[0];
    if (use.node == TN_NONE || use.region != from.region()) return {};
    const sdk::Node n = c.graph.node(use.node);
    links.push_back({use.node, use.index});
    if (last(n, use.index)) return links;
    if (!n.regions().empty() || n.outputs().size() != 1 || !passes(n, use.index)) return {};
    at = n.output(0);
  }
  return {};
}

/// Ends such a rewrite: `x` takes the place of the last node's result, and the nodes from `n` on go.
bool replace_chain(Context& c, sdk::Transaction& edit, const sdk::Node& n, const std::vector<Link>& links,
                   tn_value x);

/// Each result element comes from the operand's element at its place, and other operands are constants.
bool elementwise_link(const Context& c, const sdk::Node& n, uint32_t slot);
/// All other operands have one element, and no more axes than `rank`.
bool single_element_operands(const Context& c, const sdk::Node& n, uint32_t slot, int64_t rank);
/// A copy of a node with other operands, before `before`.
tn_value copy_node(sdk::Transaction& edit, const sdk::Node& n, std::vector<tn_value> inputs, tn_node before);

}  // namespace tenon::fusion
