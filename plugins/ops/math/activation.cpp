// Activations: same shape as the operand, and a body of simpler operators for those that have one.
#include <cmath>

#include "support/define.hpp"

namespace tenon::ops {
namespace {

void infer_same(Infer& c) { same_type(c, 0, 0); }
void infer_relu(Infer& c) {
  same_type(c, 0, 0);
  if (const auto e = c.elements(0)) {
    std::vector<tn_dim> out;
    for (tn_dim v : *e) out.push_back(most(c, v, 0));
    set_known(c, 0, out);
  }
}
void infer_softmax(Infer& c) {
  same_type(c, 0, 0);
  if (c.has_rank(0) && c.rank(0) > 0) Infer::axis(c.attrs().get_int("axis", -1), c.rank(0));
}
void infer_swiglu(Infer& c) {
  same_type(c, 0, 0);
  if (!c.has_rank(0) || !c.has_rank(1)) return;
  const auto a = c.dims(0), b = c.dims(1);
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = !c.differ(a[i], b[i]);
  require(same, "operands A and B have shapes " + c.text(a) + " and " + c.text(b) + "; expected equal ones");
}

/// Opset 1 had shorter defaults.
void upgrade_selu(Editor& e, const Node& n) {
  if (n.version() < 6) {
    const Attributes a = n.attrs();
    const bool has_alpha = a.has("alpha"), has_gamma = a.has("gamma");
    const tn_node id = n.id();
    if (!has_alpha) e.set_attr(id, AttrValue::of("alpha", 1.6732));
    if (!has_gamma) e.set_attr(id, AttrValue::of("gamma", 1.0507));
    return upgrade_version_only(e, e.graph().node(id));
  }
  upgrade_version_only(e, n);
}

/// Before 13 these worked on the operand seen as a matrix, cut at `axis` (default 1).
void upgrade_softmax(Editor& e, const Node& n) {
  if (n.version() >= 13) return upgrade_version_only(e, n);
  int64_t axis = n.attrs().get_int("axis", 1);
  const std::string op(n.op_name());
  Rewrite w(e, n);
  const tn_value x = w.input(0);
  const int32_t rank = axis == -1 ? w.rank(x) : w.rank_or_wait(x);
  if (rank >= 0 && axis < 0) axis += rank;
  if (axis == -1 || (rank >= 0 && axis == rank - 1)) {
    e.set_attr(w.id(), AttrValue::of("axis", int64_t{-1}));
    return w.finish();
  }
  const tn_value flat = w.make("Flatten", {x}, {AttrValue::of("axis", axis)});
  const tn_value soft = w.make(op, {flat}, {AttrValue::of("axis", int64_t{-1})});
  w.become(0, w.make("Reshape", {soft, w.make("Shape", {x})}, {AttrValue::of("allowzero", int64_t{1})}));
  w.erase();
}

// ---- bodies
// ---------------------------------------------------------------------------------------------------------

tn_value scaled(Rewrite& w, tn_value x, double by) {
  return by == 1 ? x : w.make("Mul", {x, w.number_like(by, x)});
}
tn_value plus(Rewrite& w, tn_value x, double what) { return w.make("Add", {x, w.number_like(what, x)}); }
/// yes where x < bound, else no.
tn_value where_below(Rewrite& w, tn_value x, double bound, tn_value yes, tn_value no) {
  return w.make("Where", {w.make("Less", {x, w.number_like(bound, x)}), yes, no});
}
/// log(1 + e^x) without overflow: max(x, 0) + log(1 + e^-|x|).
tn_value softplus(Rewrite& w, tn_value x) {
  const tn_value decay = w.make("Exp", {w.make("Neg", {w.make("Abs", {x})})});
  return w.make("Add", {w.make("Relu", {x}), w.make("Log", {plus(w, decay, 1)})});
}

void decompose_gelu(Editor& e, const Node& n) {
  const bool by_tanh = n.attrs().get_string("approximate", "none") == "tanh";
  Rewrite w(e, n);
  const tn_value x = w.input(0);
  tn_value bell = TN_NONE;
  if (by_tanh) {
    const tn_value cube = w.make("Mul", {x, w.make("Mul", {x, x})});
    const tn_value inner =
        scaled(w, w.make("Add", {x, scaled(w, cube, 0.044715)}), std::sqrt(2 / 3.14159265358979323846));
    bell = w.make("Tanh", {inner});
  } else {
    bell = w.make("Erf", {scaled(w, x, std::sqrt(0.5))});
  }
  w.become(0, w.make("Mul", {scaled(w, x, 0.5), plus(w, bell, 1)}));
}
void decompose_swish(Editor& e, const Node& n) {
  const double alpha = n.attrs().get_float("alpha", 1);
  Rewrite w(e, n);
  const tn_value x = w.input(0);
  tn_value y = w.make("Mul", {x, w.make("Sigmoid", {scaled(w, x, alpha)})});
  if (w.input(1) != TN_NONE) y = w.make("Mul", {y, w.input(1)});  // SwiGLU
  w.become(0, y);
}
void decompose_hard_sigmoid(Editor& e, const Node& n) {
  const double alpha = n.attrs().get_float("alpha", 0.2f), beta = n.attrs().get_float("beta", 0.5);
  Rewrite w(e, n);
  const tn_value line = plus(w, scaled(w, w.input(0), alpha), beta);
  w.become(0, w.make("Clip", {line, w.number_like(0, w.input(0)), w.number_like(1, w.input(0))}));
}
void decompose_hard_swish(Editor& e, const Node& n) {
  Rewrite w(e, n);
  const tn_value gate =
      w.make("HardSigmoid", {w.input(0)},
             {AttrValue::of("alpha", static_cast<double>(1.0f / 6.0f)), AttrValue::of("beta", 0.5)});
  w.become(0, w.make("Mul", {w.input(0), gate}));
}
void decompose_softplus(Editor& e, const Node& n) {
  Rewrite w(e, n);
  w.become(0, softplus(w, w.input(0)));
}
void decompose_mish(Editor& e, const Node& n) {
  Rewrite w(e, n);
  w.become(0, w.make("Mul", {w.input(0), w.make("Tanh", {softplus(w, w.input(0))})}));
}
void decompose_softsign(Editor& e, const Node& n) {
  Rewrite w(e, n);
  w.become(0, w.make("Div", {w.input(0), plus(w, w.make("Abs", {w.input(0)}), 1)}));
}
void decompose_leaky_relu(Editor& e, const Node& n) {
  const double alpha = n.attrs().get_float("alpha", 0.01f);
  Rewrite w(e, n);
  w.become(0, where_below(w, w.input(0), 0, scaled(w, w.input(0), alpha), w.input(0)));
}
/// gamma * (x < 0 ? alpha * (e^(x / divisor) - 1) : x)
void exponential_unit(Editor& e, const Node& n, double alpha, double divisor, double gamma) {
  Rewrite w(e, n);
  const tn_value x = w.input(0);
  const tn_value below = w.make("Sub", {w.make("Exp", {scaled(w, x, 1 / divisor)}), w.number_like(1, x)});
  w.become(0, scaled(w, where_below(w, x, 0, scaled(w, below, alpha), x), gamma));
}
void decompose_elu(Editor& e, const Node& n) {
  exponential_unit(e, n, n.attrs().get_float("alpha", 1), 1, 1);
}
void decompose_celu(Editor& e, const Node& n) {
  const double alpha = n.attrs().get_float("alpha", 1);
  if (alpha == 0) decline("alpha is 0: Celu divides by it");
  exponential_unit(e, n, alpha, alpha, 1);
}
void decompose_selu(Editor& e, const Node& n) {
  exponential_unit(e, n, n.attrs().get_float("alpha", 1.67326319217681884765625), 1,
                   n.attrs().get_float("gamma", 1.05070102214813232421875));
}
void decompose_thresholded_relu(Editor& e, const Node& n) {
  const double alpha = n.attrs().get_float("alpha", 1);
  Rewrite w(e, n);
  const tn_value x = w.input(0);
  w.become(0, w.make("Where", {w.make("Greater", {x, w.number_like(alpha, x)}), x, w.number_like(0, x)}));
}
void decompose_shrink(Editor& e, const Node& n) {
  const double bias = n.attrs().get_float("bias", 0), lambda = n.attrs().get_float("lambd", 0.5);
  Rewrite w(e, n);
  const tn_value x = w.input(0);
  // Among integers the kernel computes in numbers with fractions, which nodes of that type cannot.
  if (!is_float(w.dtype(x)) && (bias != std::trunc(bias) || lambda != std::trunc(lambda)))
    decline("bias or lambd has a fraction, and x is of integers");
  const tn_value above = w.make(
      "Where", {w.make("Greater", {x, w.number_like(lambda, x)}), plus(w, x, -bias), w.number_like(0, x)});
  w.become(0, where_below(w, x, -lambda, plus(w, x, bias), above));
}
tn_value shifted_by_max(Rewrite& w, tn_value x, tn_value axes) {
  return w.make("Sub", {x, w.make("ReduceMax", {x, axes})});
}
void decompose_softmax(Editor& e, const Node& n) {
  const int64_t axis = n.attrs().get_int("axis", -1);
  Rewrite w(e, n);
  if (w.rank(w.input(0)) == 0) decline("a scalar has no axis to go along");
  const tn_value axes = w.ints({axis});
  const tn_value power = w.make("Exp", {shifted_by_max(w, w.input(0), axes)});
  w.become(0, w.make("Div", {power, w.make("ReduceSum", {power, axes})}));
}
void decompose_log_softmax(Editor& e, const Node& n) {
  const int64_t axis = n.attrs().get_int("axis", -1);
  Rewrite w(e, n);
  if (w.rank(w.input(0)) == 0) decline("a scalar has no axis to go along");
  const tn_value axes = w.ints({axis});
  const tn_value shifted = shifted_by_max(w, w.input(0), axes);
  w.become(0,
           w.make("Sub", {shifted, w.make("Log", {w.make("ReduceSum", {w.make("Exp", {shifted}), axes})})}));
}

}  // namespace

void add_activation(Plugin& p) {
  constexpr uint32_t flags = TN_OP_ELEMENTWISE;
  define(p, "Relu").flags(flags).infer<infer_relu>();
  define(p, "Sigmoid").flags(flags).infer<infer_same>();
  define(p, "Tanh").flags(flags).infer<infer_same>();
  define(p, "LeakyRelu")
      .flags(flags)
      .infer<infer_same>()
      .decompose<decompose_leaky_relu>()
      .alias("leaky_relu");
  define(p, "Elu").flags(flags).infer<infer_same>().decompose<decompose_elu>();
  define(p, "Selu").flags(flags).infer<infer_same>().upgrade<upgrade_selu>().decompose<decompose_selu>();
  define(p, "Celu").flags(flags).infer<infer_same>().decompose<decompose_celu>();
  define(p, "HardSigmoid")
      .flags(flags)
      .infer<infer_same>()
      .decompose<decompose_hard_sigmoid>()
      .alias("hard_sigmoid")
      .alias("hsigmoid");
  define(p, "HardSwish")
      .flags(flags)
      .infer<infer_same>()
      .decompose<decompose_hard_swish>()
      .alias("hard_swish")
      .alias("hswish");
  define(p, "Softplus").flags(flags).infer<infer_same>().decompose<decompose_softplus>();
  define(p, "Softsign").flags(flags).infer<infer_same>().decompose<decompose_softsign>();
  define(p, "Mish").flags(flags).infer<infer_same>().decompose<decompose_mish>();
  define(p, "Gelu").flags(flags).infer<infer_same>().decompose<decompose_gelu>();
  define(p, "Swish").flags(flags).infer<infer_same>().decompose<decompose_swish>().alias("silu");
  define(p, "SwiGLU").flags(flags).infer<infer_swiglu>().decompose<decompose_swish>();
  define(p, "ThresholdedRelu")
      .flags(flags)
      .infer<infer_same>()
      .decompose<decompose_thresholded_relu>()
      .alias("thresholded_relu");
  define(p, "Shrink").flags(flags).infer<infer_same>().decompose<decompose_shrink>();
  define(p, "Softmax")
      .flags(TN_OP_REDUCTION)
      .infer<infer_softmax>()
      .upgrade<upgrade_softmax>()
      .decompose<decompose_softmax>();
  define(p, "LogSoftmax")
      .infer<infer_softmax>()
      .upgrade<upgrade_softmax>()
      .decompose<decompose_log_softmax>()
      .alias("log_softmax");
  define(p, "Hardmax").infer<infer_softmax>().upgrade<upgrade_softmax>();
}

}  // namespace tenon::ops
