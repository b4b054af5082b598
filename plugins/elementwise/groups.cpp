#include "groups.hpp"

#include <algorithm>

namespace tenon::elementwise {

using namespace sdk;

static bool same_shape(const tn_type& a, const tn_type& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

/// A tensor of plain numbers of 8 bits or more.
static bool is_plain(const tn_type& t) {
  return t.kind == TN_KIND_TENSOR && t.rank >= 0 && t.encoding == 0 && visit_number(t.dtype, [](auto) {});
}

/// One element for each row of operand 0: the same type, and its last axes gone or 1. What else the operator
/// reads is constant. (A running sum has another shape, a largest element's place another type.)
bool GroupFinder::reduces_last_axes(const Node& node, const tn_type& result) const {
  if (node.inputs().size() == 0 || node.input(0) == TN_NONE) return false;
  for (uint32_t i = 1; i < node.inputs().size(); ++i)
    if (node.input(i) != TN_NONE && !graph_.is_constant(node.input(i))) return false;
  const tn_type x = graph_.value(node.input(0)).type;
  if (!is_plain(x) || x.dtype != result.dtype || x.rank == 0 || result.rank > x.rank) return false;
  int32_t kept = result.rank;
  if (result.rank == x.rank)
    while (kept > 0 && result.dims[kept - 1] == 1) --kept;
  return kept < x.rank && std::equal(result.dims, result.dims + kept, x.dims);
}

/// Element-wise: computes each element of its one result from the elements at that place, without memory or
/// side effects. Reduction: may stand at the end of a group.
GroupFinder::Part GroupFinder::part(const Node& node) const {
  const tn_op_def* op = pass_.op(node.op());
  if (!op || !(op->flags & (TN_OP_ELEMENTWISE | TN_OP_REDUCTION))) return Part::none;
  if (op->flags & (TN_OP_NONDETERMINISTIC | TN_OP_SIDE_EFFECT | TN_OP_VIEW | TN_OP_CONTROL_FLOW))
    return Part::none;
  if (node.outputs().size() != 1 || node.output(0) == TN_NONE || !node.regions().empty()) return Part::none;
  // Shape arithmetic is done while planning, node by node.
  if (from_shapes(node.output(0))) return Part::none;
  const tn_type result = graph_.value(node.output(0)).type;
  if (!is_plain(result)) return Part::none;
  if (op->flags & TN_OP_REDUCTION) return reduces_last_axes(node, result) ? Part::reduction : Part::none;
  for (const tn_value v : node.inputs())
    if (v != TN_NONE && !is_plain(graph_.value(v).type)) return Part::none;
  return Part::element_wise;
}

void GroupFinder::mark_from_shapes(const std::vector<tn_node>& order) {
  for (const tn_node n : order) {
    const Node node = graph_.node(n);
    bool all = !node.inputs().empty() && node.regions().empty();
    for (const tn_value v : node.inputs())
      all = all && (v == TN_NONE || from_shapes(v) || graph_.is_constant(v));
    for (const tn_value v : node.outputs()) {
      bool known = false;
      if (v == TN_NONE) continue;
      if (!all) graph_.known_elements(v, &known);
      from_shapes_[v] = all || known;
    }
  }
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
  mark_from_shapes(order);
  std::vector<Group> groups;  // nodes from the last one up, until the end
  Found found;
  // From the end: when a node is looked at, all its readers have been.
  for (size_t i = order.size(); i-- > 0;) {
    const Node node = graph_.node(order[i]);
    const Part what = part(node);
    if (what == Part::none) continue;
    const tn_value result = node.output(0);
    bool shared = false;
    const uint32_t group = what == Part::reduction ? nobody : group_of_readers(result, &shared);
    if (shared) {
      found.refusals.push_back({order[i], TN_REASON_ESCAPE, "its result is read elsewhere too"});
    } else if (group != nobody) {
      Group& g = groups[group - groups_before_];
      if (!same_shape(graph_.value(result).type, graph_.value(g.computed).type))
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
    groups.push_back({{order[i]}, what == Part::reduction ? node.input(0) : result});
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
