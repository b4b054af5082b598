// Slices and Gathers before what works row by row: of all the rows only the wanted ones are computed (the
// logits of the last token, say). A kernel may add up a row of fewer rows in another order: not under
// "strict".
#include <algorithm>
#include <iterator>

#include "motion/motion.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

/// The axis along which a Slice or Gather selects, and nothing else; -1: not one such.
int64_t selected_axis(const Context& c, const Node& n) {
  const int64_t rank = c.type(n.input(0)).rank;
  if (rank < 1) return -1;
  if (n.op() == c.ops.slice) {
    const auto starts = c.integers(n.input(1));
    if (!starts || starts->size() != 1) return -1;
    if (n.input(3) == TN_NONE) return 0;
    const auto axes = c.axes(n, 3, rank);
    return axes && axes->size() == 1 ? axes->front() : -1;
  }
  // A Gather of one index takes its axis away; of a vector it keeps it.
  const tn_type indices = c.type(n.input(1));
  if (indices.rank != 0) return -1;
  const int64_t axis = n.attrs().get_int("axis", 0);
  return axis < 0 ? axis + rank : axis;
}

bool makes_less(const Context& c, const Node& n, int64_t axis) {
  const tn_dim before = c.type(n.input(0)).dims[axis];
  return n.op() == c.ops.slice ? !c.same_dim(before, c.type(n.output(0)).dims[axis]) : c.number(before) != 1;
}

/// Which operand the rows come from; none when the operator does not work along `axis` alone.
std::optional<uint32_t> row_operand(const Context& c, const Node& n, int64_t axis) {
  const std::string_view op = n.op_name();
  const tn_type out = c.type(n.output(0));
  if (op == "MatMul") {
    // Rows of a matrix times a constant one.
    const tn_type a = c.type(n.input(0)), b = c.type(n.input(1));
    if (a.rank != out.rank || b.rank != 2 || axis >= out.rank - 1 || !c.graph.is_constant(n.input(1)))
      return std::nullopt;
    return 0u;
  }
  if (op == "LayerNormalization" || op == "RMSNormalization") {
    for (uint32_t i = 1; i < n.outputs().size(); ++i)
      if (n.output(i) != TN_NONE && c.graph.value(n.output(i)).use_count != 0) return std::nullopt;
    int64_t from = n.attrs().get_int("axis", -1);
    if (from < 0) from += out.rank;
    // Scale and bias lie along the normalised axes.
    for (uint32_t i = 1; i < n.inputs().size(); ++i)
      if (n.input(i) != TN_NONE && c.type(n.input(i)).rank > out.rank - from) return std::nullopt;
    if (axis >= from || from != out.rank - 1) return std::nullopt;
    return 0u;
  }
  const tn_op_def* def = c.pass.op(n.op());
  if (!def || !(def->flags & TN_OP_ELEMENTWISE) || !is_pure(def)) return std::nullopt;
  std::optional<uint32_t> slot;
  for (uint32_t i = 0; i < n.inputs().size(); ++i) {
    if (n.input(i) == TN_NONE) continue;
    const tn_type t = c.type(n.input(i));
    if (t.rank < 0) return std::nullopt;
    if (!c.graph.is_constant(n.input(i))) {
      if (slot || !c.same_dims(t, out)) return std::nullopt;
      slot = i;
    } else if (t.rank >= out.rank - axis &&
               !(t.rank <= out.rank && c.number(t.dims[axis - (out.rank - t.rank)]) == 1)) {
      return std::nullopt;  // the constant has other numbers along the axis
    }
  }
  return slot;
}

tn_value before_rows(Context& c, const Node& n, bool* done) {
  c.step = "select rows before computing them";
  if (c.exact || n.outputs().size() != 1) return TN_NONE;
  const auto inner = c.producer(n.input(0));
  if (!inner || inner->region() != n.region() || !c.single_use(n.input(0)) || !inner->regions().empty())
    return TN_NONE;
  const int64_t axis = selected_axis(c, n);
  if (axis < 0 || axis >= c.type(n.input(0)).rank || !makes_less(c, n, axis)) return TN_NONE;
  const auto slot = row_operand(c, *inner, axis);
  if (!slot) return TN_NONE;
  const bool loses_axis = n.op() != c.ops.slice;
  // Whatever counts axes from the front, or broadcasts a constant over the lost one, would mean another.
  if (loses_axis) {
    if (inner->op_name() == "MatMul" && c.type(n.output(0)).rank < 2) return TN_NONE;
    for (uint32_t i = 0; i < inner->inputs().size(); ++i)
      if (i != *slot && inner->input(i) != TN_NONE && inner->op_name() != "MatMul" &&
          c.type(inner->input(i)).rank > c.type(n.output(0)).rank - axis)
        return TN_NONE;
    for (const tn_attr& a : attrs_of(*inner))
      if (c.graph.symbol_text(a.name) == std::string_view("axis") && a.u.i >= 0) return TN_NONE;
  }
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  std::vector<tn_value> selection = n.inputs().copy(), inputs = inner->inputs().copy();
  selection[0] = inner->input(*slot);
  inputs[*slot] = copy_node(edit, n, selection, n.id());
  const tn_value made = copy_node(edit, *inner, inputs, n.id());
  edit.replace_uses(n.output(0), made);
  edit.erase(n.id());
  edit.erase(inner->id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Slice", before_rows}, {"Gather", before_rows}};

}  // namespace

Table selection_motion() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
