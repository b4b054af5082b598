// Add, Sub, Mul and Div by constants, one after the other: one of them. Whole numbers wrap around alike in
// any order; floats are rounded once less, so not under "strict", and only by factors that cannot leave their
// range.
#include <algorithm>
#include <iterator>

#include "arithmetic/constants.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

/// A node as sign * x + k, or as x * k (multiplies; power -1: k / x).
struct Linear {
  tn_value x = TN_NONE;
  bool minus_x = false;     // k - x, or k / x
  bool inverse_k = false;   // x - k, or x / k
  bool multiplies = false;  // Mul, Div
  tn_value k = TN_NONE;
};

std::optional<Linear> linear_of(const Context& c, const Node& n) {
  const std::string_view op = n.op_name();
  const bool multiplies = op == "Mul" || op == "Div";
  if ((!multiplies && op != "Add" && op != "Sub") || n.inputs().size() != 2) return std::nullopt;
  for (uint32_t i = 0; i < 2; ++i) {
    if (n.input(i) == TN_NONE || !c.graph.is_constant(n.input(i)) || c.graph.is_constant(n.input(1 - i)))
      continue;
    const bool ordered = op == "Sub" || op == "Div";
    return Linear{n.input(1 - i), ordered && i == 0, ordered && i == 1, multiplies, n.input(i)};
  }
  return std::nullopt;
}

tn_value merge(Context& c, const Node& n, bool* done) {
  c.step = "merge arithmetic with constants";
  const auto outer = linear_of(c, n);
  if (!outer) return TN_NONE;
  const auto inner_node = c.producer(outer->x);
  if (!inner_node || !c.single_use(outer->x) || inner_node->region() != n.region()) return TN_NONE;
  const auto inner = linear_of(c, *inner_node);
  if (!inner || inner->multiplies != outer->multiplies) return TN_NONE;
  const bool whole = c.is_integer(n.output(0));
  if (whole ? outer->multiplies && (n.op_name() == "Div" || inner_node->op_name() == "Div")
            : c.exact || !c.is_float(n.output(0)))
    return TN_NONE;
  // outer(inner(x)): with + and - as with * and /.
  const Arithmetic plus = outer->multiplies ? Arithmetic::multiply : Arithmetic::add;
  const Arithmetic minus = outer->multiplies ? Arithmetic::divide : Arithmetic::subtract;
  std::optional<OwnedTensor> k;
  const auto k1 = c.graph.constant(inner->k), k2 = c.graph.constant(outer->k);
  if (!k1 || !k2 || std::max(k1->count(), k2->count()) > 65536) return TN_NONE;
  if (outer->multiplies && !whole && (!moderate(*k1) || !moderate(*k2))) return TN_NONE;
  // The inner constant as it enters the sum: k1, or -k1. All forms below are of (±x ±k1) and k2.
  bool minus_x = inner->minus_x;
  if (outer->minus_x) {  // k2 - (±x ±k1)
    k = combined(c, outer->k, inner->inverse_k ? plus : minus, inner->k);
    minus_x = !minus_x;
  } else if (inner->inverse_k) {  // (x - k1) + k2, (x - k1) - k2
    if (outer->inverse_k) {       // x - (k1 + k2)
      k = combined(c, inner->k, plus, outer->k);
    } else {
      k = combined(c, outer->k, minus, inner->k);
    }
  } else {
    k = combined(c, inner->k, outer->inverse_k ? minus : plus, outer->k);
  }
  if (!k) return TN_NONE;
  const bool both_inverse = !outer->minus_x && inner->inverse_k && outer->inverse_k;
  if (outer->multiplies && !whole && !moderate(k->view())) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const tn_value constant = edit.constant(std::move(*k));
  const std::string_view ordered = outer->multiplies ? "Div" : "Sub",
                         plain = outer->multiplies ? "Mul" : "Add";
  NodeSpec s{minus_x || both_inverse ? ordered : plain,
             minus_x ? std::vector<tn_value>{constant, inner->x} : std::vector<tn_value>{inner->x, constant},
             1,
             {},
             n.region(),
             n.id(),
             n.name(),
             {inner_node->id(), n.id()}};
  const Node made = edit.create(s);
  edit.replace_uses(n.output(0), made.output(0));
  edit.erase(n.id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// (x * a + b) * k is x * (a k) + b k: a scale, a shift and a scale are a scale and a shift.
tn_value scale_through_shift(Context& c, const Node& n, bool* done) {
  c.step = "merge a scale before and behind a shift";
  if (c.exact || !c.is_float(n.output(0)) || n.op_name() != "Mul") return TN_NONE;
  const auto outer = linear_of(c, n);
  if (!outer) return TN_NONE;
  const auto shift_node = c.producer(outer->x);
  if (!shift_node || shift_node->op_name() != "Add" || !c.single_use(outer->x)) return TN_NONE;
  const auto shift = linear_of(c, *shift_node);
  if (!shift) return TN_NONE;
  const auto scale_node = c.producer(shift->x);
  if (!scale_node || scale_node->op_name() != "Mul" || !c.single_use(shift->x)) return TN_NONE;
  const auto scale = linear_of(c, *scale_node);
  if (!scale) return TN_NONE;
  const auto k = c.graph.constant(outer->k), a = c.graph.constant(scale->k), b = c.graph.constant(shift->k);
  if (!k || !a || !b || std::max({k->count(), a->count(), b->count()}) > 65536) return TN_NONE;
  if (!moderate(*k) || !moderate(*a)) return TN_NONE;
  const double reach = b->dtype() == TN_FLOAT16 ? 64.0 : 1e30;
  if (!within(*b, 0, reach)) return TN_NONE;
  auto new_scale = combined(*a, Arithmetic::multiply, *k), new_shift = combined(*b, Arithmetic::multiply, *k);
  if (!new_scale || !new_shift) return TN_NONE;
  // The shape must not come from what is merged away.
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const Node scaled = edit.create({"Mul",
                                   {scale->x, edit.constant(std::move(*new_scale))},
                                   1,
                                   {},
                                   n.region(),
                                   n.id(),
                                   scale_node->name(),
                                   {scale_node->id(), n.id()}});
  const Node shifted = edit.create({"Add",
                                    {scaled.output(0), edit.constant(std::move(*new_shift))},
                                    1,
                                    {},
                                    n.region(),
                                    n.id(),
                                    n.name(),
                                    {shift_node->id(), n.id()}});
  edit.replace_uses(n.output(0), shifted.output(0));
  edit.erase(n.id());
  edit.erase(shift_node->id());
  edit.erase(scale_node->id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// Neg and a constant factor: the other factor. To the bit.
tn_value neg_times_constant(Context& c, const Node& n, bool* done) {
  c.step = "negate the constant instead";
  const auto outer = linear_of(c, n);
  if (!outer || !outer->multiplies) return TN_NONE;
  if (c.is_integer(n.output(0)) && n.op_name() == "Div") return TN_NONE;  // -128 / -1
  const auto neg = c.producer(outer->x, c.graph.symbol("Neg"));
  if (!neg || !c.single_use(outer->x)) return TN_NONE;
  const auto k = c.graph.constant(outer->k);
  if (!k || k->count() > 65536) return TN_NONE;
  auto minus_k = negated(*k);
  if (!minus_k) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const tn_value constant = edit.constant(std::move(*minus_k));
  const Node made = edit.create({n.op_name(),
                                 outer->minus_x ? std::vector<tn_value>{constant, neg->input(0)}
                                                : std::vector<tn_value>{neg->input(0), constant},
                                 1,
                                 {},
                                 n.region(),
                                 n.id(),
                                 n.name(),
                                 {neg->id(), n.id()}});
  edit.replace_uses(n.output(0), made.output(0));
  edit.erase(n.id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Add", merge},
                                       {"Sub", merge},
                                       {"Mul", merge},
                                       {"Div", merge},
                                       {"Mul", scale_through_shift},
                                       {"Mul", neg_times_constant},
                                       {"Div", neg_times_constant}};

}  // namespace

Table constant_chain_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
