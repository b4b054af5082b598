// Operators that give back their first operand: exactly, also for NaN, infinities and the sign of zero. (So x
// + 0.0 stays: it turns -0.0 into 0.0.)
#include <cmath>
#include <iterator>

#include "canonicalize.hpp"

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
                                       {"Sum", single_operand},
                                       {"Max", single_operand},
                                       {"Min", single_operand},
                                       {"Mean", single_operand},
                                       {"Split", single_part_split},
                                       {"Clip", clip},
                                       {"Add", add},
                                       {"Sub", sub},
                                       {"Mul", mul},
                                       {"Div", div},
                                       {"Pow", pow}};

}  // namespace

Span<const SimplifierEntry> no_op_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
