#include "passes.hpp"

namespace tenon::fusion {

std::vector<tn_region> regions_outer_first(const sdk::GraphView& graph) {
  std::vector<tn_region> order{graph.main()};
  for (size_t i = 0; i < order.size(); ++i)
    for (tn_node n : graph.nodes(order[i]))
      for (tn_region r : graph.node(n).regions()) order.push_back(r);
  return order;
}

std::vector<tn_node> node_list(const sdk::GraphView& graph, tn_region region) {
  return graph.nodes(region).copy();
}

bool is_pure(const tn_op_def* op) {
  return op && !(op->flags & (TN_OP_NONDETERMINISTIC | TN_OP_SIDE_EFFECT));
}

}  // namespace tenon::fusion
