// Clip, Relu, Min and Max of bounds that are numbers: one Clip, or none.
#include <cmath>
#include <iterator>
#include <limits>

#include "arithmetic/constants.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

/// x held within [low, high]; a bound not there is none.
struct Bounds {
  tn_value x = TN_NONE;
  std::optional<double> low, high;
};

// The node as bounds on one operand. Max(x, NaN) is NaN and Clip(x, NaN) is not: no NaN.
std::optional<Bounds> bounds_of(const Context& c, const Node& n) {
  const std::string_view op = n.op_name();
  if (op == "Relu") return Bounds{n.input(0), 0.0, {}};
  if (op == "Clip") {
    Bounds b{n.input(0), {}, {}};
    for (uint32_t i = 1; i <= 2; ++i) {
      if (n.input(i) == TN_NONE) continue;
      const auto v = c.graph.uniform_number(n.input(i));
      if (!v || std::isnan(*v)) return std::nullopt;
      (i == 1 ? b.low : b.high) = *v;
    }
    return b;
  }
  if ((op != "Min" && op != "Max") || n.inputs().size() != 2) return std::nullopt;
  for (uint32_t i = 0; i < 2; ++i) {
    const auto v = c.graph.uniform_number(n.input(i));
    if (!v || std::isnan(*v) || c.graph.is_constant(n.input(1 - i)) ||
        !c.same_type(n.input(1 - i), n.output(0)))
      continue;
    return op == "Min" ? Bounds{n.input(1 - i), {}, *v} : Bounds{n.input(1 - i), *v, {}};
  }
  return std::nullopt;
}

/// Bounds of 64 bits may lie between two doubles.
bool exact_in_double(tn_dtype d) { return d != TN_INT64 && d != TN_UINT64; }

tn_value clamp_of_clamp(Context& c, const Node& n, bool* done) {
  c.step = "merge Clips";
  const tn_dtype dtype = c.type(n.output(0)).dtype;
  if (dtype == TN_DTYPE_NONE || !exact_in_double(dtype)) return TN_NONE;
  if (n.op_name() != "Clip" && !is_common(dtype)) return TN_NONE;
  const auto outer = bounds_of(c, n);
  if (!outer) return TN_NONE;
  const auto inner_node = c.producer(outer->x);
  if (!inner_node || !c.single_use(outer->x)) return TN_NONE;
  const auto inner = bounds_of(c, *inner_node);
  if (!inner || !c.same_type(inner->x, n.output(0))) return TN_NONE;
  // Bounds the wrong way round: which one wins depends on the order, and is clearer left as it is.
  if (inner->low && inner->high && *inner->low > *inner->high) return TN_NONE;
  if (outer->low && outer->high && *outer->low > *outer->high) return TN_NONE;
  if (outer->low && inner->high && *outer->low > *inner->high) return TN_NONE;
  if (outer->high && inner->low && *outer->high < *inner->low) return TN_NONE;
  Bounds b{inner->x, inner->low, inner->high};
  const auto clamp = [&](double v) {
    if (outer->low && v < *outer->low) v = *outer->low;
    if (outer->high && v > *outer->high) v = *outer->high;
    return v;
  };
  b.low = b.low ? clamp(*b.low) : outer->low;
  b.high = b.high ? clamp(*b.high) : outer->high;
  // Which zero comes out where -0.0 meets a bound of 0.0 is up to a kernel.
  if (c.exact && ((b.low && *b.low == 0) || (b.high && *b.high == 0))) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const tn_value low = b.low ? uniform(edit, dtype, {}, *b.low) : TN_NONE;
  const tn_value high = b.high ? uniform(edit, dtype, {}, *b.high) : TN_NONE;
  const bool relu = b.low && *b.low == 0 && !b.high && is_float(dtype);
  const Node made =
      relu ? edit.create({"Relu", {b.x}, 1, {}, n.region(), n.id(), n.name(), {inner_node->id(), n.id()}})
           : edit.create(
                 {"Clip", {b.x, low, high}, 1, {}, n.region(), n.id(), n.name(), {inner_node->id(), n.id()}});
  edit.replace_uses(n.output(0), made.output(0));
  edit.erase(n.id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// Max(x, 0): what convolutions take behind them.
tn_value max_to_relu(Context& c, const Node& n, bool* done) {
  c.step = "make a Relu";
  if (c.exact || !c.is_float(n.output(0)) || !is_common(c.type(n.output(0)).dtype)) return TN_NONE;
  const auto b = bounds_of(c, n);
  if (b && b->low && *b->low == 0 && !b->high && c.same_type(b->x, n.output(0)))
    *done = c.replace(n, "Relu", {b->x});
  return TN_NONE;
}

// Bounds that the type cannot leave, or infinite ones.
tn_value clip_without_effect(Context& c, const Node& n, bool*) {
  c.step = "remove a Clip that cuts nothing off";
  const tn_dtype dtype = c.type(n.output(0)).dtype;
  const auto b = bounds_of(c, n);
  if (!b || !c.same_type(b->x, n.output(0)) || !exact_in_double(dtype)) return TN_NONE;
  double least = 0, largest = 0;
  const bool known = visit_number(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      least = static_cast<double>(std::numeric_limits<T>::lowest());
      largest = static_cast<double>(std::numeric_limits<T>::max());
    } else {
      least = -std::numeric_limits<double>::infinity();
      largest = std::numeric_limits<double>::infinity();
    }
  });
  if (!known || (b->low && *b->low > least) || (b->high && *b->high < largest)) return TN_NONE;
  return b->x;
}

constexpr SimplifierEntry entries[] = {{"Clip", clip_without_effect}, {"Min", clip_without_effect},
                                       {"Max", clip_without_effect},  {"Clip", clamp_of_clamp},
                                       {"Relu", clamp_of_clamp},      {"Min", clamp_of_clamp},
                                       {"Max", clamp_of_clamp},       {"Max", max_to_relu}};

}  // namespace

Table clamp_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
