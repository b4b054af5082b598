// Reshapes behind arithmetic on the way to another Reshape, and data movement between a DequantizeLinear and
// the QuantizeLinear that undoes it. Exact.
#include <iterator>

#include "data/reshapes.hpp"
#include "motion/motion.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

/// The axis of `x` that is axis `axis` of the reshaped `y`: of its length, and with as many elements before
/// it (and so behind it); -1: there is none.
int64_t same_axis(const Context& c, const tn_type& x, const tn_type& y, int64_t axis) {
  if (axis < 0) axis += y.rank;
  if (axis < 0 || axis >= y.rank) return -1;
  const auto times = [&](tn_dim a, tn_dim b) { return c.symbols->combine(c.graph.raw(), TN_DIM_MUL, a, b); };
  tn_dim wanted = 1, before = 1;
  for (int64_t i = 0; i < axis; ++i) wanted = times(wanted, y.dims[i]);
  for (int32_t i = 0; i < x.rank; ++i) {
    if (c.same_dim(before, wanted) && c.same_dim(x.dims[i], y.dims[axis])) return i;
    before = times(before, x.dims[i]);
  }
  return -1;
}

bool has_axis(const Node& n) {
  const std::string_view op = n.op_name();
  return op == "Softmax" || op == "LogSoftmax" || op == "Hardmax";
}

tn_value between_reshapes(Context& c, const Node& n, bool* done) {
  c.step = "bring Reshapes together";
  const tn_type x_type = c.type(n.input(0));
  if (x_type.rank < 0) return TN_NONE;
  const auto links = chain_from(
      c, n,
      [&](const Node& m, uint32_t slot) {
        const std::string_view op = m.op_name();
        if (op == "QuantizeLinear" || op == "DequantizeLinear")
          return slot == 0 && single_element_operands(c, m, 0, 1);
        if (has_axis(m)) return same_axis(c, x_type, c.type(m.input(0)), m.attrs().get_int("axis", -1)) >= 0;
        // The result must keep the operand's rank: constants of fewer axes than either has.
        return elementwise_link(c, m, slot) && c.same_dims(c.type(m.input(slot)), c.type(m.output(0))) &&
               single_element_operands(c, m, slot, x_type.rank);
      },
      [&](const Node& m, uint32_t slot) { return slot == 0 && c.ops.keeps_order(m.op()); });
  if (links.size() < 2) return TN_NONE;
  const Node last = c.graph.node(links.back().node);
  const tn_type out = c.type(last.output(0));
  const bool same = c.same_dims(x_type, out);
  const auto target = constant_target(c, x_type, out);
  if (!same && !target) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  tn_value x = n.input(0);
  for (size_t i = 0; i + 1 < links.size(); ++i) {
    const Node m = c.graph.node(links[i].node);
    std::vector<tn_value> inputs = m.inputs().copy();
    inputs[links[i].slot] = x;
    if (has_axis(m)) {
      const int64_t axis = same_axis(c, x_type, c.type(m.input(0)), m.attrs().get_int("axis", -1));
      x = edit.create({m.op_name(),
                       inputs,
                       1,
                       {AttrValue::of("axis", axis)},
                       n.region(),
                       last.id(),
                       m.name(),
                       {m.id()}})
              .output(0);
      continue;
    }
    x = copy_node(edit, m, inputs, last.id());
  }
  if (!same)
    x = edit.create({"Reshape",
                     {x, edit.vector<int64_t>(*target)},
                     1,
                     {},
                     n.region(),
                     last.id(),
                     last.name(),
                     {n.id(), last.id()}})
            .output(0);
  *done = replace_chain(c, edit, n, links, x);
  return TN_NONE;
}

constexpr SimplifierEntry reshape_entries[] = {{"Reshape", between_reshapes},
                                               {"Flatten", between_reshapes},
                                               {"Squeeze", between_reshapes},
                                               {"Unsqueeze", between_reshapes}};

/// Two one-element constants of one type and value, or one value.
bool same_number(const Context& c, tn_value a, tn_value b) {
  if (a == b) return true;
  if (a == TN_NONE || b == TN_NONE) return false;
  const auto x = c.graph.uniform_number(a), y = c.graph.uniform_number(b);
  return x && y && *x == *y && c.type(a).dtype == c.type(b).dtype;
}

// DequantizeLinear, data movement, QuantizeLinear with the same scale: the movement alone, of whole numbers.
// (q s)/s rounds to q again: the quotient is off by less than a half.
tn_value between_quantizers(Context& c, const Node& n, bool* done) {
  c.step = "move whole numbers instead of quantising again";
  if (!single_element_operands(c, n, 0, 1)) return TN_NONE;
  const tn_dtype whole = c.type(n.input(0)).dtype;
  if (whole != TN_INT8 && whole != TN_UINT8 && whole != TN_INT16 && whole != TN_UINT16) return TN_NONE;
  if (c.type(n.output(0)).dtype != TN_FLOAT32 || !c.graph.is_constant(n.input(1))) return TN_NONE;
  const auto links = chain_from(
      c, n,
      [&](const Node& m, uint32_t slot) {
        return slot == 0 && (c.ops.keeps_order(m.op()) || m.op() == c.ops.transpose ||
                             m.op() == c.ops.slice || m.op_name() == "Gather");
      },
      [&](const Node& m, uint32_t slot) { return slot == 0 && m.op_name() == "QuantizeLinear"; });
  if (links.empty()) return TN_NONE;
  const Node last = c.graph.node(links.back().node);
  const auto scale = c.graph.uniform_number(n.input(1));
  if (!scale || !(*scale > 1e-30 && *scale < 1e30) || !same_number(c, n.input(1), last.input(1)) ||
      c.type(last.output(0)).dtype != whole)
    return TN_NONE;
  const bool both_zero = (n.input(2) == TN_NONE || c.graph.uniform_number(n.input(2)) == 0.0) &&
                         (last.input(2) == TN_NONE || c.graph.uniform_number(last.input(2)) == 0.0);
  if (!both_zero && !same_number(c, n.input(2), last.input(2))) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  tn_value x = n.input(0);
  for (size_t i = 0; i + 1 < links.size(); ++i) {
    const Node m = c.graph.node(links[i].node);
    std::vector<tn_value> inputs = m.inputs().copy();
    inputs[0] = x;
    x = copy_node(edit, m, inputs, last.id());
  }
  *done = replace_chain(c, edit, n, links, x);
  return TN_NONE;
}

constexpr SimplifierEntry quantize_entries[] = {{"DequantizeLinear", between_quantizers}};

}  // namespace

Table reshape_motion() { return {reshape_entries, std::size(reshape_entries)}; }
Table quantize_motion() { return {quantize_entries, std::size(quantize_entries)}; }

}  // namespace tenon::fusion
