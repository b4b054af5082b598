// One operand, result of the same shape: arithmetic, trigonometry, rounding, predicates, casts.
//
// Integer results wrap (two's complement); known contents stop being known where they would.
#include "support/define.hpp"

namespace tenon::ops {
namespace {

void infer_same(Infer& c) { same_type(c, 0, 0); }
void infer_bool(Infer& c) { same_shape(c, 0, 0, TN_BOOL); }

/// Result 0 has operand 0's type, and elements made one by one; f may say that one is not known.
template <class F>
void map_known(Infer& c, F f) {
  const auto e = c.elements(0);
  if (!e) return;
  std::vector<tn_dim> out;
  for (tn_dim v : *e) {
    const std::optional<tn_dim> r = f(v);
    if (!r) return;
    out.push_back(*r);
  }
  set_known(c, 0, out);
}

void infer_neg(Infer& c) {
  same_type(c, 0, 0);
  map_known(c, [&](tn_dim v) -> std::optional<tn_dim> {
    if (c.number(v) == INT64_MIN) return std::nullopt;
    return fit(c, c.dtype(0), c.sub(0, v));
  });
}
void infer_abs(Infer& c) {
  same_type(c, 0, 0);
  map_known(c, [&](tn_dim v) -> std::optional<tn_dim> {
    if (const auto n = c.number(v)) {
      if (*n == INT64_MIN) return std::nullopt;
      return fit(c, c.dtype(0), c.make(*n < 0 ? -*n : *n));
    }
    return at_most(c, 0, v) ? std::optional<tn_dim>(v) : std::nullopt;
  });
}
void infer_sign(Infer& c) {
  same_type(c, 0, 0);
  map_known(c, [&](tn_dim v) -> std::optional<tn_dim> {
    if (const auto n = c.number(v)) return c.make((*n > 0) - (*n < 0));
    return at_most(c, 1, v) ? std::optional<tn_dim>(1) : std::nullopt;
  });
}
void infer_not(Infer& c) {
  same_shape(c, 0, 0, TN_BOOL);
  map_known(c, [&](tn_dim v) -> std::optional<tn_dim> {
    const auto n = c.number(v);
    return n ? std::optional<tn_dim>(*n == 0) : std::nullopt;
  });
}
void infer_identity(Infer& c) {
  same_type(c, 0, 0);
  if (const auto e = c.elements(0)) set_known(c, 0, *e);
}

void cast_to(Infer& c, tn_dtype to) {
  same_shape(c, 0, 0, to);
  if (!is_integer(to) && to != TN_BOOL) return;
  const auto e = whole_elements(c, 0);
  if (!e) return;
  std::vector<tn_dim> out;
  for (tn_dim v : *e) {
    const auto fitted = fit(c, to, v);
    if (!fitted) return;
    out.push_back(*fitted);
  }
  set_known(c, 0, out);
}
void infer_cast(Infer& c) { cast_to(c, dtype_of_onnx(required_int(c.attrs(), "to"), "to")); }
void infer_cast_like(Infer& c) { cast_to(c, c.dtype(1)); }

void upgrade_cast(Editor& e, const Node& n) {
  const auto* to = n.attrs().find("to");
  if (to && to->kind == TN_ATTR_STRING) {  // opsets below 6 name the type
    constexpr const char* names[] = {"UNDEFINED", "FLOAT",  "UINT8",     "INT8",      "UINT16",  "INT16",
                                     "INT32",     "INT64",  "STRING",    "BOOL",      "FLOAT16", "DOUBLE",
                                     "UINT32",    "UINT64", "COMPLEX64", "COMPLEX128"};
    const std::string wanted = text(to->u.s);
    int64_t number = 0;
    for (size_t i = 1; i < std::size(names); ++i)
      if (wanted == names[i]) number = static_cast<int64_t>(i);
    if (!number) cannot_upgrade(n, "attribute 'to' is '" + wanted + "', which names no element type");
    e.set_attr(n.id(), AttrValue::of("to", number));
  }
  upgrade_version_only(e, e.graph().node(n.id()));
}

// Dropout is the identity when running; its mask is then all true.
void infer_dropout(Infer& c) {
  same_type(c, 0, 0);
  same_shape(c, 1, 0, TN_BOOL);
  one_number(c, 1, "ratio");
  one_number(c, 2, "training_mode");
}
/// Before 12 the ratio was an attribute and nodes ran as in inference, whatever the ratio: it need not be
/// kept. Before 10 the mask had the data's type.
void upgrade_dropout(Editor& e, const Node& n) {
  if (n.version() >= 12) return upgrade_version_only(e, n);
  Rewrite w(e, n);
  if (n.version() < 10 && w.used(1)) {
    const std::vector<tn_value> now = w.make_many("Dropout", {w.input(0)}, {}, 2);
    w.become(0, now[0]);
    w.become(1, w.make("CastLike", {now[1], w.input(0)}));
    return w.erase();
  }
  for (const char* name : {"ratio", "is_test", "consumed_inputs"}) drop_attr(e, e.graph().node(w.id()), name);
  w.finish();
}
void decompose_dropout(Editor& e, const Node& n) {
  Rewrite w(e, n);
  if (w.input(2) != TN_NONE) {
    const auto training = e.graph().constant(w.input(2));
    if (!training || training->count() != 1 || training->int_at(0) != 0)
      decline("training_mode is not a constant false");
  }
  w.become(0, w.make("Identity", {w.input(0)}));
  if (w.used(1)) {
    const bool yes = true;
    const int64_t one = 1;
    const tn_tensor value{TN_BOOL, 1, &one, const_cast<bool*>(&yes), 1};
    w.become(1, w.make("ConstantOfShape", {w.make("Shape", {w.input(0)})}, {AttrValue::of("value", value)}));
  }
}

void infer_clip(Infer& c) {
  same_type(c, 0, 0);
  const auto bound = [&](uint32_t i, std::optional<tn_dim>& out) {
    if (!c.has_input(i)) return true;
    one_number(c, i, i == 1 ? "min" : "max");
    const auto e = c.elements(i);
    if (!e || e->size() != 1) return false;
    out = e->front();
    return true;
  };
  std::optional<tn_dim> low, high;
  if (!bound(1, low) || !bound(2, high)) return;
  map_known(c, [&](tn_dim v) -> std::optional<tn_dim> {
    if (low) v = most(c, v, *low);
    if (high) v = least(c, v, *high);
    return v;
  });
}
void upgrade_clip(Editor& e, const Node& n) {
  if (n.version() >= 11) return upgrade_version_only(e, n);
  const Attributes a = n.attrs();
  const bool has_min = a.has("min"), has_max = a.has("max");
  const double low = a.get_float("min", 0), high = a.get_float("max", 0);
  Rewrite w(e, n);
  drop_attr(e, n, "min");
  drop_attr(e, e.graph().node(w.id()), "max");
  drop_attr(e, e.graph().node(w.id()), "consumed_inputs");
  if (has_min || has_max) e.set_input(w.id(), 1, has_min ? w.number_like(low, w.input(0)) : TN_NONE);
  if (has_max) e.set_input(w.id(), 2, w.number_like(high, w.input(0)));
  w.finish();
}

}  // namespace

void add_elementwise_unary(Plugin& p) {
  constexpr const char* plain[] = {"Sqrt",  "Exp",   "Log",   "Erf",  "Reciprocal", "Sin",       "Cos",
                                   "Tan",   "Asin",  "Acos",  "Atan", "Sinh",       "Cosh",      "Asinh",
                                   "Acosh", "Atanh", "Floor", "Ceil", "Round",      "BitwiseNot"};
  for (const char* name : plain) {
    OpBuilder& op = define(p, name).flags(TN_OP_ELEMENTWISE).infer<infer_same>();
    if (std::string_view(name) == "Reciprocal") op.alias("rcp");
  }
  define(p, "Neg").flags(TN_OP_ELEMENTWISE).infer<infer_neg>().alias("negative");
  define(p, "Abs").flags(TN_OP_ELEMENTWISE).infer<infer_abs>();
  define(p, "Sign").flags(TN_OP_ELEMENTWISE).infer<infer_sign>();
  define(p, "Not").flags(TN_OP_ELEMENTWISE).infer<infer_not>().alias("logical_not");
  define(p, "IsNaN").flags(TN_OP_ELEMENTWISE).infer<infer_bool>();
  define(p, "IsInf").flags(TN_OP_ELEMENTWISE).infer<infer_bool>();
  define(p, "Identity").flags(TN_OP_ELEMENTWISE | TN_OP_VIEW).infer<infer_identity>();
  define(p, "Cast").flags(TN_OP_ELEMENTWISE).infer<infer_cast>().upgrade<upgrade_cast>();
  define(p, "CastLike").flags(TN_OP_ELEMENTWISE).infer<infer_cast_like>().alias("cast_like");
  define(p, "Clip").flags(TN_OP_ELEMENTWISE).infer<infer_clip>().upgrade<upgrade_clip>();
  define(p, "Dropout")
      .flags(TN_OP_ELEMENTWISE)
      .infer<infer_dropout>()
      .upgrade<upgrade_dropout>()
      .decompose<decompose_dropout>();
}

}  // namespace tenon::ops
