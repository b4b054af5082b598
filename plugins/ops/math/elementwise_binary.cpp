// Two operands and more that broadcast against each other as in numpy: arithmetic, comparison, logic, bits.
//
// Integer Div truncates towards zero; integer Mod has the sign of the divisor, with fmod=1 that of the
// dividend.
#include "support/define.hpp"

namespace tenon::ops {
namespace {

using Step = std::optional<tn_dim> (*)(Infer&, tn_dim, tn_dim);

std::optional<tn_dim> exact(Infer& c, int64_t r, bool overflow) {
  return overflow ? std::nullopt : std::optional<tn_dim>(c.make(r));
}

std::optional<tn_dim> add(Infer& c, tn_dim a, tn_dim b) {
  const auto x = c.number(a), y = c.number(b);
  int64_t r = 0;
  if (x && y) {
    const bool o = __builtin_add_overflow(*x, *y, &r);
    return exact(c, r, o);
  }
  return c.add(a, b);
}
std::optional<tn_dim> subtract(Infer& c, tn_dim a, tn_dim b) {
  const auto x = c.number(a), y = c.number(b);
  int64_t r = 0;
  if (x && y) {
    const bool o = __builtin_sub_overflow(*x, *y, &r);
    return exact(c, r, o);
  }
  return c.sub(a, b);
}
std::optional<tn_dim> multiply(Infer& c, tn_dim a, tn_dim b) {
  const auto x = c.number(a), y = c.number(b);
  int64_t r = 0;
  if (x && y) {
    const bool o = __builtin_mul_overflow(*x, *y, &r);
    return exact(c, r, o);
  }
  return c.mul(a, b);
}
std::optional<tn_dim> divide(Infer& c, tn_dim a, tn_dim b) {
  const auto x = c.number(a), y = c.number(b);
  if (y && *y == 0) return std::nullopt;
  if (x && y) return *x == INT64_MIN && *y == -1 ? std::nullopt : std::optional<tn_dim>(c.make(*x / *y));
  if (!at_most(c, 0, a) || !at_most(c, 1, b))
    return y == 1 ? std::optional<tn_dim>(a) : std::nullopt;  // rounding differs below 0
  return c.floordiv(a, b);
}
std::optional<tn_dim> modulo(Infer& c, tn_dim a, tn_dim b) {
  const auto x = c.number(a), y = c.number(b);
  if (y && *y == 0) return std::nullopt;
  if (x && y) {
    if (*y == -1) return 0;
    int64_t r = *x % *y;
    if (c.attrs().get_int("fmod", 0) == 0 && r != 0 && (r < 0) != (*y < 0)) r += *y;
    return c.make(r);
  }
  if (!at_most(c, 0, a) || !at_most(c, 1, b)) return std::nullopt;
  return c.mod(a, b);
}
std::optional<tn_dim> smaller(Infer& c, tn_dim a, tn_dim b) { return least(c, a, b); }
std::optional<tn_dim> larger(Infer& c, tn_dim a, tn_dim b) { return most(c, a, b); }

std::optional<tn_dim> truth(tn_truth t) {
  return t == TN_UNKNOWN ? std::nullopt : std::optional<tn_dim>(t == TN_YES);
}
std::optional<tn_dim> equal(Infer& c, tn_dim a, tn_dim b) {
  return a == b ? std::optional<tn_dim>(1) : truth(c.compare(TN_DIM_EQ, a, b));
}
std::optional<tn_dim> less(Infer& c, tn_dim a, tn_dim b) { return truth(c.compare(TN_DIM_LT, a, b)); }
std::optional<tn_dim> less_or_equal(Infer& c, tn_dim a, tn_dim b) {
  return truth(c.compare(TN_DIM_LE, a, b));
}
std::optional<tn_dim> greater(Infer& c, tn_dim a, tn_dim b) { return less(c, b, a); }
std::optional<tn_dim> greater_or_equal(Infer& c, tn_dim a, tn_dim b) { return less_or_equal(c, b, a); }

template <class F>
std::optional<tn_dim> on_bools(Infer& c, tn_dim a, tn_dim b, F f) {
  const auto x = c.number(a), y = c.number(b);
  return x && y ? std::optional<tn_dim>(f(*x != 0, *y != 0)) : std::nullopt;
}
std::optional<tn_dim> logical_and(Infer& c, tn_dim a, tn_dim b) {
  return on_bools(c, a, b, [](bool x, bool y) { return x && y; });
}
std::optional<tn_dim> logical_or(Infer& c, tn_dim a, tn_dim b) {
  return on_bools(c, a, b, [](bool x, bool y) { return x || y; });
}
std::optional<tn_dim> logical_xor(Infer& c, tn_dim a, tn_dim b) {
  return on_bools(c, a, b, [](bool x, bool y) { return x != y; });
}

/// Elements of all operands combined from the left; unset when any is not known.
std::optional<std::vector<tn_dim>> combine_known(Infer& c, const Dims& out, tn_dtype dtype, Step step) {
  std::vector<tn_dim> result;
  for (uint32_t i = 0; i < c.input_count(); ++i) {
    const auto k = known(c, i);
    if (!k) return std::nullopt;
    const auto index = broadcast_index(k->dims, out);
    if (i == 0) {
      for (int64_t at : index) result.push_back(k->at[static_cast<size_t>(at)]);
      continue;
    }
    for (size_t j = 0; j < index.size(); ++j) {
      const auto r = step(c, result[j], k->at[static_cast<size_t>(index[j])]);
      if (!r) return std::nullopt;
      const auto fitted = fit(c, dtype, *r);
      if (!fitted) return std::nullopt;
      result[j] = *fitted;
    }
  }
  return result;
}

void infer_broadcast(Infer& c, tn_dtype dtype, Step step) {
  const auto dims = broadcast_inputs(c, 0, c.input_count());
  if (!dims) return c.set_unranked(0, dtype);
  c.set(0, dtype, *dims);
  if (!step || !(is_integer(c.dtype(0)) || c.dtype(0) == TN_BOOL)) return;
  const auto out = numbers(c, *dims);
  if (!out || !count_up_to(*out, max_known)) return;
  if (const auto e = combine_known(c, *out, dtype, step)) set_known(c, 0, *e);
}

template <Step step>
void infer_arithmetic(Infer& c) {
  infer_broadcast(c, c.dtype(0), step);
}
void infer_no_contents(Infer& c) { infer_broadcast(c, c.dtype(0), nullptr); }
template <Step step>
void infer_predicate(Infer& c) {
  infer_broadcast(c, TN_BOOL, step);
}

/// PRelu: the slope broadcasts to X, never X to the slope.
void infer_prelu(Infer& c) {
  same_type(c, 0, 0);
  if (!c.has_rank(0) || !c.has_rank(1)) return;
  const auto x = c.dims(0), slope = c.dims(1);
  if (slope.size() > x.size())
    fail("operand slope has shape " + c.text(slope) + ", which does not broadcast to X's " + c.text(x));
  for (size_t i = 0; i < slope.size(); ++i)
    if (slope[i] != 1 && c.differ(slope[i], x[x.size() - slope.size() + i]))
      fail("operand slope has shape " + c.text(slope) + ", which does not broadcast to X's " + c.text(x));
}

// ---- upgrades
// -------------------------------------------------------------------------------------------------------

/// Below 7, B was aligned at `axis` of A (at A's last dims without one), and broadcast only with broadcast=1.
void upgrade_legacy_broadcast(Editor& e, const Node& n) {
  if (n.version() >= 7) return upgrade_version_only(e, n);
  const Attributes a = n.attrs();
  const bool aligned = a.get_int("broadcast", 0) != 0 && a.has("axis");
  const int64_t axis = a.get_int("axis", 0);
  Rewrite w(e, n);
  if (aligned)
    for (size_t i = 0; i < 2; ++i) w.rank_or_wait(w.input(i));
  for (const char* name : {"broadcast", "axis", "consumed_inputs"})
    drop_attr(e, e.graph().node(w.id()), name);
  if (aligned) {
    // B's dims stand at axis..axis+rank(B); ones after them make numpy's rule put them there.
    const int32_t ra = w.rank(w.input(0)), rb = w.rank(w.input(1));
    tn_value b = w.input(1);
    if (ra >= 0 && rb >= 0) {
      const int64_t from = axis < 0 ? axis + ra : axis, ones = ra - from - rb;
      if (from < 0 || ones < 0)
        cannot_upgrade(n, format("axis %lld does not place operand B of rank %d within A of rank %d",
                                 static_cast<long long>(axis), rb, ra));
      std::vector<int64_t> axes;
      for (int64_t i = 0; i < ones; ++i) axes.push_back(rb + i);
      if (!axes.empty()) b = w.make("Unsqueeze", {b, w.ints(axes)});
    } else {
      const tn_value shape_b = w.make("Shape", {b});
      const tn_value rank_a = w.make("Size", {w.make("Shape", {w.input(0)})}),
                     rank_b = w.make("Size", {shape_b});
      const tn_value from = axis < 0 ? w.make("Add", {rank_a, w.one_int(axis)}) : w.one_int(axis);
      const tn_value ones =
          w.make("Unsqueeze", {w.make("Sub", {w.make("Sub", {rank_a, from}), rank_b}), w.ints({0})});
      const int64_t one = 1, length = 1;
      const tn_tensor fill{TN_INT64, 1, &length, const_cast<int64_t*>(&one), 8};
      b = w.make(
          "Reshape",
          {b, w.make("Concat", {shape_b, w.make("ConstantOfShape", {ones}, {AttrValue::of("value", fill)})},
                     {AttrValue::of("axis", int64_t{0})})},
          {AttrValue::of("allowzero", int64_t{1})});
    }
    e.set_input(w.id(), 1, b);
  }
  w.finish();
}

/// Below 7 a slope of one dim stood for X's channels, axis 1.
void upgrade_prelu(Editor& e, const Node& n) {
  if (n.version() >= 7) return upgrade_version_only(e, n);
  Rewrite w(e, n);
  const auto slope = e.graph().value(w.input(1)).type;
  const bool one = slope.kind == TN_KIND_TENSOR && slope.rank == 1 && slope.dims[0] == 1;
  if (!one) {
    const int32_t rank = w.rank_or_wait(w.input(0));
    w.rank_or_wait(w.input(1));
    if (rank < 0 || slope.rank < 0)
      cannot_upgrade(e.graph().node(w.id()),
                     "the rank of X or of slope is not known, so the slope cannot be aligned with the "
                     "channels; export the model with shapes");
    std::vector<int64_t> axes;
    for (int32_t i = 2; i < rank; ++i) axes.push_back(i - 1);
    if (slope.rank == 1 && !axes.empty())
      e.set_input(w.id(), 1, w.make("Unsqueeze", {w.input(1), w.ints(axes)}));
  }
  drop_attr(e, e.graph().node(w.id()), "consumed_inputs");
  w.finish();
}

void decompose_prelu(Editor& e, const Node& n) {
  Rewrite w(e, n);
  const tn_value x = w.input(0);
  w.become(0, w.make("Where", {w.make("Less", {x, w.number_like(0, x)}), w.make("Mul", {x, w.input(1)}), x}));
}
void decompose_mean(Editor& e, const Node& n) {
  Rewrite w(e, n);
  w.become(0, w.make("Div", {w.make("Sum", w.inputs()),
                             w.number_like(static_cast<double>(w.inputs().size()), w.input(0))}));
}
void decompose_greater_or_equal(Editor& e, const Node& n) {
  Rewrite w(e, n);
  w.become(0, w.make("Or", {w.make("Greater", w.inputs()), w.make("Equal", w.inputs())}));
}
void decompose_less_or_equal(Editor& e, const Node& n) {
  Rewrite w(e, n);
  w.become(0, w.make("Or", {w.make("Less", w.inputs()), w.make("Equal", w.inputs())}));
}

}  // namespace

void add_elementwise_binary(Plugin& p) {
  constexpr uint32_t plain = TN_OP_ELEMENTWISE, either_way = TN_OP_ELEMENTWISE | TN_OP_COMMUTATIVE,
                     both = either_way | TN_OP_ASSOCIATIVE;
  define(p, "Add").flags(both).infer<infer_arithmetic<add>>().upgrade<upgrade_legacy_broadcast>().alias(
      "bias_add");
  define(p, "Sub").flags(plain).infer<infer_arithmetic<subtract>>().upgrade<upgrade_legacy_broadcast>().alias(
      "subtract");
  define(p, "Mul").flags(both).infer<infer_arithmetic<multiply>>().upgrade<upgrade_legacy_broadcast>().alias(
      "multiply");
  define(p, "Div")
      .flags(plain)
      .infer<infer_arithmetic<divide>>()
      .upgrade<upgrade_legacy_broadcast>()
      .alias("divide")
      .alias("realdiv");
  define(p, "Mod").flags(plain).infer<infer_arithmetic<modulo>>();
  define(p, "Pow").flags(plain).infer<infer_no_contents>().upgrade<upgrade_legacy_broadcast>().alias("power");
  define(p, "Min").flags(both).infer<infer_arithmetic<smaller>>().alias("minimum");
  define(p, "Max").flags(both).infer<infer_arithmetic<larger>>().alias("maximum");
  define(p, "Sum").flags(both).infer<infer_no_contents>().alias("addn");
  define(p, "Mean").flags(either_way).infer<infer_no_contents>().decompose<decompose_mean>();
  define(p, "And")
      .flags(both)
      .infer<infer_predicate<logical_and>>()
      .upgrade<upgrade_legacy_broadcast>()
      .alias("logical_and");
  define(p, "Or").flags(both).infer<infer_predicate<logical_or>>().upgrade<upgrade_legacy_broadcast>().alias(
      "logical_or");
  define(p, "Xor")
      .flags(both)
      .infer<infer_predicate<logical_xor>>()
      .upgrade<upgrade_legacy_broadcast>()
      .alias("logical_xor");
  define(p, "Equal").flags(either_way).infer<infer_predicate<equal>>().upgrade<upgrade_legacy_broadcast>();
  define(p, "Less").flags(plain).infer<infer_predicate<less>>().upgrade<upgrade_legacy_broadcast>();
  define(p, "Greater").flags(plain).infer<infer_predicate<greater>>().upgrade<upgrade_legacy_broadcast>();
  define(p, "LessOrEqual")
      .flags(plain)
      .infer<infer_predicate<less_or_equal>>()
      .decompose<decompose_less_or_equal>()
      .alias("less_equal");
  define(p, "GreaterOrEqual")
      .flags(plain)
      .infer<infer_predicate<greater_or_equal>>()
      .decompose<decompose_greater_or_equal>()
      .alias("greater_equal");
  define(p, "BitwiseAnd").flags(both).infer<infer_no_contents>().alias("bitwise_and");
  define(p, "BitwiseOr").flags(both).infer<infer_no_contents>().alias("bitwise_or");
  define(p, "BitwiseXor").flags(both).infer<infer_no_contents>().alias("bitwise_xor");
  define(p, "BitShift").flags(plain).infer<infer_no_contents>();
  define(p, "PRelu").flags(plain).infer<infer_prelu>().upgrade<upgrade_prelu>().decompose<decompose_prelu>();
}

}  // namespace tenon::ops
