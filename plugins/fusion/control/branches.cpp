// The sweep over nodes with regions, and If.
#include "control/control.hpp"

#include <algorithm>

namespace tenon::fusion {

using namespace sdk;

std::optional<int64_t> known_number(const Context& c, tn_value v) {
  if (v == TN_NONE) return std::nullopt;
  if (const auto known = c.integers(v))
    return known->size() == 1 ? std::optional(known->front()) : std::nullopt;
  const auto t = c.graph.constant(v);
  if (!t || t->count() != 1 || !(t->dtype() == TN_BOOL || is_integer(t->dtype()))) return std::nullopt;
  return t->int_at(0);
}

bool cannot_fail(const Context& c, const Node& n) {
  const tn_op_def* op = c.pass.op(n.op());
  if (!is_pure(op) || !n.regions().empty()) return false;
  for (tn_value v : n.inputs())
    if (v != TN_NONE && (c.type(v).kind != TN_KIND_TENSOR || c.type(v).rank < 0)) return false;
  for (tn_value v : n.outputs())
    if (v != TN_NONE && (c.type(v).kind != TN_KIND_TENSOR || c.type(v).rank < 0)) return false;
  const std::string_view name = n.op_name();
  // Whole numbers divided by zero; operands whose shapes turn out not to fit.
  if ((name == "Div" || name == "Mod") && c.is_integer(n.output(0))) return false;
  if (name == "Shape" || name == "Size" || name == "Transpose" || name == "Cast" || name == "Unsqueeze")
    return true;
  if (!(op->flags & TN_OP_ELEMENTWISE)) return false;
  const tn_type out = c.type(n.output(0));
  for (tn_value v : n.inputs()) {
    const tn_type t = c.type(v);
    for (int32_t i = 0; i < t.rank; ++i) {
      const int32_t at = i + out.rank - t.rank;
      if (c.number(t.dims[i]) != 1 && (at < 0 || !c.same_dim(t.dims[i], out.dims[at]))) return false;
    }
  }
  return true;
}

namespace {

tn_region branch(const Context& c, const Node& node, std::string_view name) {
  for (tn_region r : node.regions())
    if (sdk::view(c.graph.region(r).name) == name) return r;
  return TN_NONE;
}

std::vector<tn_value> outputs_of(const Context& c, tn_region r) {
  const auto info = c.graph.region(r);
  return {info.outputs, info.outputs + info.output_count};
}

}  // namespace

bool inline_constant_if(Context& c, const Node& node) {
  c.step = "inline If";
  const auto taken = known_number(c, node.input(0));
  if (!taken) return false;
  const tn_region r = branch(c, node, *taken ? "then_branch" : "else_branch");
  if (r == TN_NONE) return false;
  const std::vector<tn_value> results = outputs_of(c, r), wanted = node.outputs().copy();
  if (results.size() != wanted.size()) return false;
  const tn_node id = node.id();
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return false;
  edit.inline_region(r, {}, id);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] != TN_NONE) edit.replace_uses(wanted[i], results[i]);
  edit.erase(id);
  return c.commit(edit, id);
}

bool if_to_where(Context& c, const Node& node) {
  c.step = "select instead of branching";
  constexpr int64_t max_elements = 4096;
  const tn_region then_region = branch(c, node, "then_branch"), else_region = branch(c, node, "else_branch");
  if (then_region == TN_NONE || else_region == TN_NONE || c.type(node.input(0)).rank != 0) return false;
  const std::vector<tn_value> yes = outputs_of(c, then_region), no = outputs_of(c, else_region);
  const std::vector<tn_value> wanted = node.outputs().copy();
  if (yes.size() != wanted.size() || no.size() != wanted.size()) return false;
  uint32_t read = 0, inner = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == TN_NONE || c.graph.value(wanted[i]).use_count == 0) continue;
    ++read;
    if (yes[i] == no[i]) continue;
    const tn_type t = c.type(yes[i]);
    if (t.kind != TN_KIND_TENSOR || !is_common(t.dtype) || !c.same_type(yes[i], no[i])) return false;
    int64_t count = 1;
    for (tn_dim d : dims_of(t)) {
      const auto n = c.number(d);
      if (!n) return false;
      count = checked_mul(count, *n);
    }
    if (count > max_elements) return false;
  }
  for (tn_region r : {then_region, else_region})
    for (tn_node id : c.graph.nodes(r)) {
      ++inner;
      const Node n = c.graph.node(id);
      if (!cannot_fail(c, n)) return false;
      for (tn_value v : n.outputs()) {
        int64_t count = 1;
        for (tn_dim d : dims_of(c.type(v))) {
          const auto known = c.number(d);
          if (!known) return false;
          count = checked_mul(count, *known);
        }
        if (count > max_elements) return false;
      }
    }
  // A branch taken saves the other's work: only little may be done for nothing, and the graph must not grow.
  if (inner > 4 || read > 1) return false;
  const tn_node id = node.id();
  const tn_region region = node.region();
  const tn_value condition = node.input(0);
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return false;
  edit.inline_region(then_region, {}, id);
  edit.inline_region(else_region, {}, id);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == TN_NONE || c.graph.value(wanted[i]).use_count == 0) continue;
    const tn_value chosen =
        yes[i] == no[i]
            ? yes[i]
            : edit.create({"Where", {condition, yes[i], no[i]}, 1, {}, region, id, {}, {id}}).output(0);
    edit.replace_uses(wanted[i], chosen);
  }
  edit.erase(id);
  return c.commit(edit, id);
}

void run_control(Pass& pass) {
  Context c(pass);
  const int64_t max_added_nodes = pass.option_int("unroll_nodes");
  // Inner regions first: what became of them decides whether the outer one is cheap.
  std::vector<tn_region> regions = regions_outer_first(c.graph);
  std::reverse(regions.begin(), regions.end());
  for (tn_region region : regions) {
    if (region != c.graph.main() && !c.graph.node(c.graph.region(region).parent).alive()) continue;
    for (tn_node id : node_list(c.graph, region)) {
      if (pass.cancelled()) return;
      Node node = c.graph.node(id);
      if (!node.alive() || node.regions().empty()) continue;
      const std::string_view op = node.op_name();
      if (op == "If") {
        if (!inline_constant_if(c, node) && !if_to_where(c, node)) drop_unused_results(c, c.graph.node(id));
      } else if (op == "Loop") {
        if (unroll_loop(c, node, max_added_nodes)) continue;
        forward_unchanged_state(c, c.graph.node(id));
        hoist_invariants(c, c.graph.node(id));
        drop_unused_results(c, c.graph.node(id));
      } else if (op == "Scan") {
        hoist_invariants(c, node);
      }
    }
  }
  if (c.applied) pass.count("control", c.applied, c.applied);
}

}  // namespace tenon::fusion
