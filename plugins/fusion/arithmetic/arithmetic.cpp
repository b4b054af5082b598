// One operator of arithmetic for another. Each says for which types and values it holds; those that may
// change the sign of a zero, or round otherwise, do not run under "strict".
#include <cmath>
#include <iterator>

#include "arithmetic/constants.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

bool has_operands(const Node& n, size_t count) {
  if (n.inputs().size() != count) return false;
  for (tn_value v : n.inputs())
    if (v == TN_NONE) return false;
  return true;
}

/// Replaces the result by elements that all are `value`.
bool replace_by_constant(Context& c, const Node& n, double value) {
  const auto dims = numeric_dims(c, n.output(0));
  if (!dims) return false;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return false;
  edit.replace_uses(n.output(0), uniform(edit, c.type(n.output(0)).dtype, *dims, value));
  edit.erase(n.id());
  return c.commit(edit, n.id());
}

/// Operand i is constant, all elements equal to x, and the other operand has the result's type.
bool neutral(const Context& c, const Node& n, uint32_t i, double x) {
  if (!has_operands(n, 2) || !c.same_type(n.input(1 - i), n.output(0))) return false;
  const auto v = c.graph.uniform_number(n.input(i));
  return v && *v == x;
}

// x + 0.0 is x but for -0.0, which it makes 0.0. (Of whole numbers: canonicalize.)
tn_value add(Context& c, const Node& n, bool* done) {
  if (!has_operands(n, 2)) return TN_NONE;
  c.step = "remove an Add of zero";
  if (!c.exact && c.is_float(n.output(0)))
    for (uint32_t i = 0; i < 2; ++i)
      if (neutral(c, n, i, 0)) return n.input(1 - i);
  c.step = "subtract instead of adding a Neg";
  for (uint32_t i = 0; i < 2; ++i)
    if (const auto neg = c.producer(n.input(i), c.graph.symbol("Neg"))) {
      *done = c.replace(n, "Sub", {n.input(1 - i), neg->input(0)}, {}, {neg->id()});
      return TN_NONE;
    }
  return TN_NONE;
}

tn_value sub(Context& c, const Node& n, bool* done) {
  if (!has_operands(n, 2)) return TN_NONE;
  c.step = "remove a Sub of zero";
  if (!c.exact && c.is_float(n.output(0)) && neutral(c, n, 1, 0)) return n.input(0);
  c.step = "fold a Sub of itself";  // of whole numbers: infinity - infinity is NaN
  if (n.input(0) == n.input(1) && c.is_integer(n.output(0))) {
    *done = replace_by_constant(c, n, 0);
    return TN_NONE;
  }
  c.step = "add instead of subtracting a Neg";
  if (const auto neg = c.producer(n.input(1), c.graph.symbol("Neg"))) {
    *done = c.replace(n, "Add", {n.input(0), neg->input(0)}, {}, {neg->id()});
    return TN_NONE;
  }
  c.step = "negate instead of subtracting from zero";  // 0.0 - 0.0 is 0.0, its Neg -0.0
  const bool signed_type = is_common(c.type(n.output(0)).dtype) && (!c.exact || c.is_integer(n.output(0)));
  if (signed_type && neutral(c, n, 0, 0)) *done = c.replace(n, "Neg", {n.input(1)});
  return TN_NONE;
}

// Of whole numbers only: 0 * NaN and 0 * infinity are NaN.
tn_value mul(Context& c, const Node& n, bool* done) {
  if (!has_operands(n, 2) || !c.is_integer(n.output(0))) return TN_NONE;
  c.step = "fold a Mul by zero";
  for (uint32_t i = 0; i < 2; ++i) {
    const auto v = c.graph.uniform_number(n.input(i));
    if (!v || *v != 0) continue;
    *done = replace_by_constant(c, n, 0);
    return TN_NONE;
  }
  return TN_NONE;
}

// x / c is x * (1/c): to the bit when c is a power of two, else to one rounding.
tn_value div(Context& c, const Node& n, bool* done) {
  c.step = "multiply instead of dividing by a constant";
  if (!has_operands(n, 2) || !c.is_float(n.output(0)) || !c.graph.is_constant(n.input(1))) return TN_NONE;
  const auto dims = numeric_dims(c, n.input(1));
  if (!dims || element_count(*dims) > 65536) return TN_NONE;
  const auto divisor = c.graph.constant(n.input(1));
  if (!divisor) return TN_NONE;
  const bool wide = divisor->dtype() == TN_FLOAT32 || divisor->dtype() == TN_FLOAT64;
  if (!exact_reciprocal(*divisor) && (c.exact || !wide || !moderate(*divisor))) return TN_NONE;
  OwnedTensor one(divisor->dtype(), {});
  visit_number(divisor->dtype(), [&](auto zero) { one.data<decltype(zero)>()[0] = decltype(zero)(1.0f); });
  auto reciprocal = combined(one.view(), Arithmetic::divide, *divisor);
  if (!reciprocal) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const Node made = edit.create({"Mul",
                                 {n.input(0), edit.constant(std::move(*reciprocal))},
                                 1,
                                 {},
                                 n.region(),
                                 n.id(),
                                 n.name(),
                                 {n.id()}});
  edit.replace_uses(n.output(0), made.output(0));
  edit.erase(n.id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

/// Never negative, and no -0.0, whatever goes in: only what is clear from the operator itself. (NaN may be.)
bool never_negative(const Context& c, tn_value v) {
  const auto n = c.producer(v);
  if (!n) return false;
  const std::string_view op = n->op_name();
  return op == "Abs" || op == "Exp" || op == "Sigmoid" || op == "Softmax" || op == "ReduceSumSquare" ||
         op == "ReduceL2" || op == "ReduceL1" || (op == "Mul" && n->input(0) == n->input(1));
}

tn_value pow(Context& c, const Node& n, bool* done) {
  if (!has_operands(n, 2)) return TN_NONE;
  const auto exponent = c.graph.uniform_number(n.input(1));
  if (!exponent) return TN_NONE;
  c.step = "fold a Pow by zero";  // 1, also of NaN and of 0
  if (*exponent == 0) {
    *done = replace_by_constant(c, n, 1);
    return TN_NONE;
  }
  if (c.exact || !c.is_float(n.output(0)) || !c.same_type(n.input(0), n.output(0))) return TN_NONE;
  c.step = "multiply instead of squaring by Pow";
  if (*exponent == 2) *done = c.replace(n, "Mul", {n.input(0), n.input(0)});
  c.step = *exponent == 2 ? c.step : "take the root instead of Pow by a half";
  // Pow(-infinity, 0.5) is infinity and Sqrt of it NaN; Pow(-0.0, 0.5) is 0.0 and Sqrt of it -0.0.
  if (*exponent == 0.5 && never_negative(c, n.input(0))) *done = c.replace(n, "Sqrt", {n.input(0)});
  if (*exponent == -1 && is_common(c.type(n.output(0)).dtype)) {
    c.step = "take the reciprocal instead of Pow by -1";
    *done = c.replace(n, "Reciprocal", {n.input(0)});
  }
  return TN_NONE;
}

// -(a - b) is b - a, but for the zero of a == b.
tn_value neg(Context& c, const Node& n, bool* done) {
  c.step = "turn a Sub around instead of negating it";
  const auto inner = c.producer(n.input(0), c.graph.symbol("Sub"));
  if (!inner || !c.single_use(n.input(0)) || (c.exact && c.is_float(n.output(0)))) return TN_NONE;
  *done = c.replace(n, "Sub", {inner->input(1), inner->input(0)}, {}, {inner->id()});
  return TN_NONE;
}

tn_value abs(Context& c, const Node& n, bool*) {
  c.step = "remove an Abs of what is never negative";
  return never_negative(c, n.input(0)) && !c.is_integer(n.input(0)) ? n.input(0) : TN_NONE;
}

// A logarithm of a small probability is taken before it is rounded to zero.
tn_value log(Context& c, const Node& n, bool* done) {
  c.step = "make a LogSoftmax";
  const auto softmax = c.producer(n.input(0), c.graph.symbol("Softmax"));
  if (c.exact || !is_common(c.type(n.output(0)).dtype) || !softmax || !c.single_use(n.input(0)))
    return TN_NONE;
  *done = c.replace(n, "LogSoftmax", {softmax->input(0)},
                    {AttrValue::of("axis", softmax->attrs().get_int("axis", -1))}, {softmax->id()});
  return TN_NONE;
}

// Whole numbers: no part of x left over by 1.
tn_value mod(Context& c, const Node& n, bool* done) {
  c.step = "fold a Mod by one";
  const auto by = has_operands(n, 2) ? c.graph.uniform_number(n.input(1)) : std::nullopt;
  if (by && *by == 1 && c.is_integer(n.output(0))) *done = replace_by_constant(c, n, 0);
  return TN_NONE;
}

tn_value bits_of_zero(Context& c, const Node& n, bool*) {
  c.step = "remove a bit operation with zero";
  for (uint32_t i = 0; i < 2; ++i)
    if (neutral(c, n, i, 0)) return n.input(1 - i);
  return TN_NONE;
}

tn_value shift(Context& c, const Node& n, bool*) {
  c.step = "remove a BitShift by nothing";
  return neutral(c, n, 1, 0) ? n.input(0) : TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Add", add},
                                       {"Sub", sub},
                                       {"Mul", mul},
                                       {"Div", div},
                                       {"Pow", pow},
                                       {"Neg", neg},
                                       {"Abs", abs},
                                       {"Log", log},
                                       {"Mod", mod},
                                       {"BitwiseOr", bits_of_zero},
                                       {"BitwiseXor", bits_of_zero},
                                       {"BitShift", shift}};

}  // namespace

Table arithmetic_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
