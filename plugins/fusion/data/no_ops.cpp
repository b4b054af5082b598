// Operators that give back their first operand, or are a Sum of two: exactly, also for NaN, infinities and
// the sign of zero. (So x
// + 0.0 stays: it turns -0.0 into 0.0.)
#include <algorithm>
#include <cmath>
#include <iterator>

#include "sweep.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

/// Result 0 is the only one that anybody reads.
bool only_first_result(Context& c, const Node& n) {
  for (uint32_t i = 1; i < n.outputs().size(); ++i)
    if (n.output(i) != TN_NONE && c.graph.value(n.output(i)).use_count != 0) return false;
  return n.output(0) != TN_NONE;
}

tn_value identity(Context& c, const Node& n, bool*) {
  c.step = "remove Identity";
  return n.input(0);
}

tn_value dropout(Context& c, const Node& n, bool*) {
  c.step = "remove Dropout";
  if (!only_first_result(c, n)) return TN_NONE;
  if (n.input(2) != TN_NONE) {  // training_mode
    const auto mode = c.graph.uniform_number(n.input(2));
    if (!mode || *mode != 0) return TN_NONE;
  }
  return n.input(0);
}

tn_value same_type_result(Context& c, const Node& n, bool*) {
  c.step = "remove an operator that changes nothing";
  return c.same_type(n.input(0), n.output(0)) ? n.input(0) : TN_NONE;
}

// A Slice that keeps the shape still reverses when a step is negative.
tn_value slice(Context& c, const Node& n, bool*) {
  c.step = "remove a Slice of everything";
  if (!c.same_type(n.input(0), n.output(0))) return TN_NONE;
  if (n.input(4) == TN_NONE) return n.input(0);
  const auto steps = c.integers(n.input(4));
  if (!steps) return TN_NONE;
  for (int64_t s : *steps)
    if (s < 1) return TN_NONE;
  return n.input(0);
}

tn_value pad(Context& c, const Node& n, bool*) {
  c.step = "remove a Pad by nothing";
  const auto pads = c.integers(n.input(1));
  if (!pads) return TN_NONE;
  for (int64_t p : *pads)
    if (p != 0) return TN_NONE;
  return n.input(0);
}

tn_value transpose(Context& c, const Node& n, bool*) {
  c.step = "remove a Transpose that moves nothing";
  const auto perm = n.attrs().get_ints("perm");
  if (perm.empty())
    return c.type(n.input(0)).rank == 1 || c.type(n.input(0)).rank == 0 ? n.input(0) : TN_NONE;
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return TN_NONE;
  return n.input(0);
}

tn_value single_operand(Context& c, const Node& n, bool*) {
  c.step = "remove an operator of one operand";
  return n.inputs().size() == 1 ? n.input(0) : TN_NONE;
}

// What rules and the element-wise rewrites look for is Add.
tn_value sum(Context& c, const Node& n, bool* done) {
  if (n.inputs().size() != 2) return single_operand(c, n, done);
  c.step = "make an Add of a Sum of two";
  *done = c.replace(n, "Add", n.inputs().copy());
  return TN_NONE;
}

tn_value single_part_split(Context& c, const Node& n, bool*) {
  c.step = "remove a Split into one part";
  return n.outputs().size() == 1 && c.same_type(n.input(0), n.output(0)) ? n.input(0) : TN_NONE;
}

tn_value clip(Context& c, const Node& n, bool*) {
  c.step = "remove a Clip without bounds";
  return n.input(1) == TN_NONE && n.input(2) == TN_NONE ? n.input(0) : TN_NONE;
}

/// Operand i is a constant whose elements all equal x (and, for zero, have this sign), and operand 1 - i has
/// the result's type.
bool neutral(Context& c, const Node& n, uint32_t i, double x, bool negative_zero = false) {
  if (n.inputs().size() != 2 || !c.same_type(n.input(1 - i), n.output(0))) return false;
  const auto v = c.graph.uniform_number(n.input(i));
  return v && *v == x && (x != 0 || std::signbit(*v) == negative_zero);
}

tn_value add(Context& c, const Node& n, bool*) {
  c.step = "remove an Add of zero";
  const bool integer = is_integer(c.type(n.output(0)).dtype);  // of floats only -0.0 is neutral
  for (uint32_t i = 0; i < 2; ++i)
    if (neutral(c, n, i, 0, !integer)) return n.input(1 - i);
  return TN_NONE;
}
tn_value sub(Context& c, const Node& n, bool*) {
  c.step = "remove a Sub of zero";
  return neutral(c, n, 1, 0) ? n.input(0) : TN_NONE;
}
tn_value mul(Context& c, const Node& n, bool*) {
  c.step = "remove a Mul by one";
  for (uint32_t i = 0; i < 2; ++i)
    if (neutral(c, n, i, 1)) return n.input(1 - i);
  return TN_NONE;
}
tn_value div(Context& c, const Node& n, bool*) {
  c.step = "remove a Div by one";
  return neutral(c, n, 1, 1) ? n.input(0) : TN_NONE;
}
tn_value pow(Context& c, const Node& n, bool*) {
  c.step = "remove a Pow by one";
  return neutral(c, n, 1, 1) ? n.input(0) : TN_NONE;
}

// To the same size, each element from itself. (Other modes weigh neighbours, by zero: NaN and infinity
// spread.)
tn_value resize(Context& c, const Node& n, bool*) {
  c.step = "remove a Resize to the same size";
  if (n.attrs().get_string("mode", "nearest") != "nearest" || !c.same_type(n.input(0), n.output(0)))
    return TN_NONE;
  const auto way = n.attrs().get_string("coordinate_transformation_mode", "half_pixel");
  if (way != "half_pixel" && way != "asymmetric" && way != "align_corners" && way != "half_pixel_symmetric")
    return TN_NONE;
  if (n.input(3) != TN_NONE) return n.input(0);  // sizes, which are the operand's
  const auto scale = c.graph.uniform_number(n.input(2));
  return scale && *scale == 1 ? n.input(0) : TN_NONE;
}

/// All elements are 0.0: a constant, or a ConstantOfShape whatever its shape, moved about.
bool all_zero(const Context& c, tn_value v) {
  for (int depth = 0; depth < 16; ++depth) {
    if (const auto x = c.graph.uniform_number(v)) return *x == 0 && !std::signbit(*x);
    const auto n = c.producer(v);
    if (!n) return false;
    const std::string_view op = n->op_name();
    if (op == "ConstantOfShape") {
      const tn_tensor* value = n->attrs().get_tensor("value");
      return !value || (TensorView(*value).count() == 1 && TensorView(*value).float_at(0) == 0 &&
                        !std::signbit(TensorView(*value).float_at(0)));
    }
    if (!c.ops.keeps_order(n->op()) && n->op() != c.ops.transpose && n->op() != c.ops.slice &&
        n->op() != c.ops.expand && op != "Tile" && op != "Gather")
      return false;
    v = n->input(0);
  }
  return false;
}

// Bias, initial state and peepholes of zeros are what a recurrent operator takes when there is none.
tn_value zero_state(Context& c, const Node& n, bool* done) {
  c.step = "leave out operands of zeros";
  for (uint32_t i = 3; i < std::min<size_t>(8, n.inputs().size()); ++i) {  // 4: the lengths
    if (i == 4 || n.input(i) == TN_NONE || !all_zero(c, n.input(i))) continue;
    Transaction edit = c.pass.edit(c.step);
    if (!edit.active()) return TN_NONE;
    edit.set_input(n.id(), i, TN_NONE);
    *done = c.commit(edit, n.id());
    return TN_NONE;
  }
  return TN_NONE;
}

tn_value reduce_nothing(Context& c, const Node& n, bool*) {
  c.step = "remove a reduction over no axis";
  if (n.attrs().get_int("noop_with_empty_axes", 0) == 0) return TN_NONE;
  if (n.input(1) == TN_NONE) return n.input(0);
  const auto axes = c.integers(n.input(1));
  return axes && axes->empty() ? n.input(0) : TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Identity", identity},
                                       {"Dropout", dropout},
                                       {"Cast", same_type_result},
                                       {"CastLike", same_type_result},
                                       {"Reshape", same_type_result},
                                       {"Expand", same_type_result},
                                       {"Flatten", same_type_result},
                                       {"Squeeze", same_type_result},
                                       {"Unsqueeze", same_type_result},
                                       {"Slice", slice},
                                       {"Pad", pad},
                                       {"Transpose", transpose},
                                       {"Concat", single_operand},
                                       {"Sum", sum},
                                       {"Max", single_operand},
                                       {"Min", single_operand},
                                       {"Mean", single_operand},
                                       {"Split", single_part_split},
                                       {"Clip", clip},
                                       {"Add", add},
                                       {"Sub", sub},
                                       {"Mul", mul},
                                       {"Div", div},
                                       {"Pow", pow},
                                       {"Tile", same_type_result},
                                       {"Resize", resize},
                                       {"LSTM", zero_state},
                                       {"GRU", zero_state},
                                       {"RNN", zero_state},
                                       {"com.microsoft::DynamicQuantizeLSTM", zero_state},
                                       {"ReduceSum", reduce_nothing},
                                       {"ReduceMean", reduce_nothing},
                                       {"ReduceMax", reduce_nothing},
                                       {"ReduceMin", reduce_nothing},
                                       {"ReduceProd", reduce_nothing}};

}  // namespace

Table no_op_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
