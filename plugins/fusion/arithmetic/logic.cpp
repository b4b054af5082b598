// Conditions: Not, And, Or, Where and comparisons. All exact; what holds of whole numbers only is asked of
// them only.
#include <iterator>

#include "sweep.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

std::optional<bool> truth(const Context& c, tn_value v) {
  if (c.type(v).dtype != TN_BOOL) return std::nullopt;
  const auto x = c.graph.uniform_number(v);
  return x ? std::optional<bool>(*x != 0) : std::nullopt;
}

tn_value self_inverse(Context& c, const Node& n, bool*) {
  c.step = "cancel an operator that undoes itself";
  const auto inner = c.producer(n.input(0), n.op());
  return inner && c.same_type(inner->input(0), n.output(0)) ? inner->input(0) : TN_NONE;
}

tn_value idempotent(Context& c, const Node& n, bool*) {
  c.step = "remove an operator applied twice";
  return c.producer(n.input(0), n.op()) ? n.input(0) : TN_NONE;
}

// Not(a < b) is a >= b; of floats only where no NaN can be, so of whole numbers only.
tn_value not_of_comparison(Context& c, const Node& n, bool* done) {
  c.step = "negate a comparison";
  const auto inner = c.producer(n.input(0));
  if (!inner || !c.single_use(n.input(0)) || inner->inputs().size() != 2 || !c.is_integer(inner->input(0)))
    return TN_NONE;
  static constexpr const char* pairs[][2] = {{"Less", "GreaterOrEqual"},
                                             {"Greater", "LessOrEqual"},
                                             {"LessOrEqual", "Greater"},
                                             {"GreaterOrEqual", "Less"}};
  for (const auto& pair : pairs)
    if (inner->op_name() == pair[0]) {
      *done = c.replace(n, pair[1], inner->inputs().copy(), {}, {inner->id()});
      return TN_NONE;
    }
  return TN_NONE;
}

/// `neutral`: what leaves the other operand; its opposite decides the result for And and Or.
tn_value and_or(Context& c, const Node& n, bool neutral) {
  if (n.input(0) == n.input(1)) return n.input(0);
  for (uint32_t i = 0; i < 2; ++i) {
    const auto t = truth(c, n.input(i));
    if (!t) continue;
    if (*t == neutral && c.same_type(n.input(1 - i), n.output(0))) return n.input(1 - i);
    if (*t != neutral && c.same_type(n.input(i), n.output(0))) return n.input(i);
  }
  return TN_NONE;
}
tn_value and_(Context& c, const Node& n, bool*) {
  c.step = "simplify an And";
  return and_or(c, n, true);
}
tn_value or_(Context& c, const Node& n, bool*) {
  c.step = "simplify an Or";
  return and_or(c, n, false);
}

tn_value where(Context& c, const Node& n, bool* done) {
  c.step = "simplify a Where";
  if (n.input(1) == n.input(2) && c.same_type(n.input(1), n.output(0))) return n.input(1);
  if (const auto t = truth(c, n.input(0))) {
    const tn_value taken = n.input(*t ? 1 : 2);
    return c.same_type(taken, n.output(0)) ? taken : TN_NONE;
  }
  // Where(Not(c), x, y) is Where(c, y, x).
  const auto inverted = c.producer(n.input(0), c.graph.symbol("Not"));
  if (!inverted) return TN_NONE;
  const tn_value x = n.input(1), y = n.input(2);
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  edit.set_input(n.id(), 0, inverted->input(0));
  edit.set_input(n.id(), 1, y);
  edit.set_input(n.id(), 2, x);
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// A whole number equals itself; a NaN does not.
tn_value equal_to_itself(Context& c, const Node& n, bool* done) {
  c.step = "fold a comparison with itself";
  if (n.input(0) != n.input(1) || !c.is_integer(n.input(0))) return TN_NONE;
  Dims dims;
  for (tn_dim d : dims_of(c.type(n.output(0)))) {
    const auto x = c.number(d);
    if (!x) return TN_NONE;
    dims.push_back(*x);
  }
  if (c.type(n.output(0)).rank < 0) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  OwnedTensor t(TN_BOOL, dims);
  if (t.bytes() > 65536) return TN_NONE;
  std::memset(t.data<char>(), 1, t.bytes());
  edit.replace_uses(n.output(0), edit.constant(std::move(t)));
  edit.erase(n.id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Not", self_inverse},
                                       {"Not", not_of_comparison},
                                       {"BitwiseNot", self_inverse},
                                       {"Neg", self_inverse},
                                       {"Abs", idempotent},
                                       {"Relu", idempotent},
                                       {"Ceil", idempotent},
                                       {"Floor", idempotent},
                                       {"Round", idempotent},
                                       {"Sign", idempotent},
                                       {"And", and_},
                                       {"Or", or_},
                                       {"Where", where},
                                       {"Equal", equal_to_itself}};

}  // namespace

Table logic_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
