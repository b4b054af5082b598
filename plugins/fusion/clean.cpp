// Dead code: nodes whose results nobody reads, inner regions before outer ones, users before producers, so
// that one sweep finds all. Constants without uses go with the nodes: the graph keeps no constant that is not
// read.
#include "passes.hpp"

namespace tenon::fusion {

using namespace sdk;

static bool is_dead(const GraphView& graph, const Node& node) {
  for (tn_value v : node.outputs())
    if (v != TN_NONE && graph.value(v).use_count != 0) return false;
  return true;
}

void run_clean(Pass& pass) {
  const GraphView graph = pass.graph();
  auto regions = regions_outer_first(graph);
  uint64_t removed = 0;
  Transaction edit = pass.edit("clean");
  if (!edit.active()) return;
  for (auto region = regions.rbegin(); region != regions.rend(); ++region) {
    if (*region != graph.main() && graph.region(*region).parent != TN_NONE &&
        !graph.node(graph.region(*region).parent).alive())
      continue;
    const auto nodes = node_list(graph, *region);
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
      const Node node = graph.node(*id);
      const tn_op_def* op = pass.op(node.op());
      if (!node.alive() || !is_dead(graph, node) || (op && (op->flags & TN_OP_SIDE_EFFECT))) continue;
      edit.erase(*id);
      ++removed;
    }
  }
  if (removed == 0) return;
  if (!edit.commit()) throw Failure(TN_ERR_INTERNAL, "removing dead nodes: " + edit.said());
  pass.count("clean", removed, removed);
}

}  // namespace tenon::fusion
