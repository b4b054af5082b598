#include "groups.hpp"

#include <algorithm>

namespace tenon::elementwise {

using namespace sdk;

static bool same_shape(const tn_type& a, const tn_type& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

/// Computes each element of its one result from the elements at that place, without memory or side effects,
/// in one element type throughout: a node that changes the type begins or ends a group.
bool GroupFinder::fits(const Node& node) const {
  const tn_op_def* op = pass_.op(node.op());
  if (!op || !(op->flags & TN_OP_ELEMENTWISE)) return false;
  if (op->flags & (TN_OP_NONDETERMINISTIC | TN_OP_SIDE_EFFECT | TN_OP_VIEW | TN_OP_CONTROL_FLOW))
    return false;
  if (node.outputs().size() != 1 || node.output(0) == TN_NONE || !node.regions().empty()) return false;
  const tn_type result = graph_.value(node.output(0)).type;
  if (result.kind != TN_KIND_TENSOR || result.rank < 0 || result.encoding != 0) return false;
  for (const tn_value v : node.inputs()) {
    if (v == TN_NONE) continue;
    const tn_type t = graph_.value(v).type;
    if (t.kind != TN_KIND_TENSOR || t.rank < 0 || t.dtype != result.dtype || t.encoding != 0) return false;
  }
  return true;
}

/// The one group that all readers are in, or nobody; *shared: some group reads it, and something else does
/// too.
uint32_t GroupFinder::group_of_readers(tn_value v, bool* shared) const {
  *shared = false;
  uint32_t group = nobody;
  bool first = true;
  for (const tn_use& use : graph_.users(v)) {
    // An output of the region has no reader here; one in an inner region is in no group yet.
    const uint32_t reader = use.node == TN_NONE ? nobody : group_of_[use.node];
    *shared = !first && reader != group;
    if (*shared) return nobody;
    group = reader;
    first = false;
  }
  return group;
}

Found GroupFinder::look(tn_region region) {
  const std::vector<tn_node> order = graph_.nodes(region).copy();
  std::vector<Group> groups;  // nodes from the last one up, until the end
  Found found;
  // From the end: when a node is looked at, all its readers have been.
  for (size_t i = order.size(); i-- > 0;) {
    const Node node = graph_.node(order[i]);
    if (!fits(node)) continue;
    const tn_value result = node.output(0);
    bool shared = false;
    const uint32_t group = group_of_readers(result, &shared);
    if (shared) {
      found.refusals.push_back({order[i], TN_REASON_ESCAPE, "its result is read elsewhere too"});
    } else if (group != nobody) {
      Group& g = groups[group - groups_before_];
      const tn_type below = graph_.value(graph_.node(g.nodes[0]).output(0)).type,
                    own = graph_.value(result).type;
      if (own.dtype != below.dtype)
        found.refusals.push_back({order[i], TN_REASON_DTYPE, "the readers have another element type"});
      else if (!same_shape(own, below))
        found.refusals.push_back(
            {order[i], TN_REASON_SHAPE, "the readers' shape is not known to be the same"});
      else if (g.nodes.size() >= max_nodes_)
        found.refusals.push_back({order[i], TN_REASON_LIMIT, "the group is full (option max_nodes)"});
      else {
        g.nodes.push_back(order[i]);
        group_of_[order[i]] = group;
        continue;
      }
    }
    group_of_[order[i]] = groups_before_ + static_cast<uint32_t>(groups.size());
    groups.push_back({{order[i]}});
  }
  groups_before_ += static_cast<uint32_t>(groups.size());
  for (size_t g = groups.size(); g-- > 0;) {
    if (groups[g].nodes.size() < 2) continue;
    std::reverse(groups[g].nodes.begin(), groups[g].nodes.end());
    found.groups.push_back(std::move(groups[g]));
  }
  std::reverse(found.refusals.begin(), found.refusals.end());
  return found;
}

}  // namespace tenon::elementwise
