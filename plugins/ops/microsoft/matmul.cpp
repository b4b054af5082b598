// Products with what ONNX Runtime folds into them: transposes, a factor, an activation, a residual.
#include "nn/matmul.hpp"
#include "microsoft/microsoft.hpp"
#include "spatial/conv.hpp"

namespace tenon::ops {
namespace {

using namespace microsoft;

constexpr Schema rows[] = {
    {domain, "FusedConv", 1, 1, 2, "X:T W:T B?:T Z?:T", "Y:T", "T:@float",
     "activation:string activation_params:floats auto_pad='NOTSET' dilations:ints group=1 kernel_shape:ints "
     "pads:ints "
     "strides:ints"},
    {domain, "FusedGemm", 1, 1, 2, "A:T B:T C?:T", "Y:T", "T:@number",
     "activation:string activation_alpha:float activation_beta:float activation_gamma:float alpha=1.0 "
     "beta=1.0 transA=0 "
     "transB=0"},
    {domain, "FusedMatMul", 1, 1, 2, "A:T B:T", "Y:T", "T:@float",
     "alpha=1.0 transA=0 transB=0 transBatchA=0 transBatchB=0"},
    {domain, "FusedMatMulActivation", 1, 1, 2, "A:T B:T", "Y:T", "T:@float",
     "activation!:string activation_alpha:float activation_axis:int activation_beta:float "
     "activation_gamma:float alpha=1.0 "
     "transA=0 transB=0 transBatchA=0 transBatchB=0"},
    {domain, "GemmFastGelu", 1, 1, 2, "X:T W:T bias?:T", "Y:T", "T:@float", ""},
    {domain, "TransposeMatMul", 1, 1, 2, "A:T B:T", "Y:T", "T:@float", "alpha=1.0 transA=0 transB=0"},
};

/// The order of axes that an operand is multiplied in. Batch: the first axis goes behind the others but the
/// last, which makes [M, batch.., K] a batch of [M, K]. Transposed: then the last two change places. A vector
/// is what it is.
Dims order_of(size_t rank, bool batch, bool transposed) {
  Dims order;
  for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
  if (rank < 2) return order;
  if (batch) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (transposed) std::swap(order[rank - 1], order[rank - 2]);
  return order;
}
bool in_place(const Dims& order) { return std::is_sorted(order.begin(), order.end()); }

struct Turns {
  bool turned[2], batch[2];
  explicit Turns(const Attributes& a)
      : turned{a.get_int("transA", 0) != 0, a.get_int("transB", 0) != 0},
        batch{a.get_int("transBatchA", 0) != 0, a.get_int("transBatchB", 0) != 0} {}
  bool any() const { return turned[0] || turned[1] || batch[0] || batch[1]; }
};

void infer_fused_matmul(Infer& c) {
  const Turns turns(c.attrs());
  if (!c.has_rank(0) || !c.has_rank(1)) return c.set_unranked(0, c.dtype(0));
  const auto turned = [&](uint32_t i) {
    const auto dims = c.dims(i);
    std::vector<tn_dim> out;
    for (int64_t axis : order_of(dims.size(), turns.batch[i], turns.turned[i]))
      out.push_back(dims[static_cast<size_t>(axis)]);
    return out;
  };
  c.set(0, c.dtype(0), matmul_dims(c, turned(0), turned(1)));
}
void infer_fused_gemm(Infer& c) { infer_gemm_like(c, 0, 1, 2); }
void infer_fused_conv(Infer& c) {
  infer_convolution(c, 0, 1, c.has_input(2) ? std::optional<uint32_t>(2) : std::nullopt, c.dtype(0));
}

struct Activation {
  std::string name;
  std::vector<double> parameters;  // alpha, beta, gamma, as far as they are said
};
/// Softmax and LogSoftmax go along an axis; the others are told alpha and beta, Selu alpha and gamma.
tn_value activate(Rewrite& w, tn_value y, const Activation& act, std::optional<int64_t> axis = std::nullopt) {
  if (act.name.empty()) return y;
  if (act.name == "Clip") {
    const auto bound = [&](size_t i) {
      return act.parameters.size() > i ? w.number_like(act.parameters[i], w.input(0)) : TN_NONE;
    };
    return w.make("Clip", {y, bound(0), bound(1)});
  }
  const Schema& row = schema_of(act.name);
  if (row.min_inputs != 1) decline("activation '" + act.name + "' takes more than one operand");
  const std::string_view known = row.attributes;
  std::vector<AttrValue> attrs;
  constexpr const char* names[] = {"alpha", "beta", "gamma"};
  for (size_t i = 0; i < std::size(names) && i < act.parameters.size(); ++i)
    if (known.find(std::string(names[i]) + "=") != std::string_view::npos)
      attrs.push_back(AttrValue::of(names[i], act.parameters[i]));
  if (axis && known.find("axis=") != std::string_view::npos) attrs.push_back(AttrValue::of("axis", *axis));
  return w.make(act.name, {y}, std::move(attrs));
}
Activation activation_of(const Attributes& a) {
  Activation r{std::string(a.get_string("activation", "")), {}};
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (!a.has(name)) break;
    r.parameters.push_back(a.get_float(name, 0));
  }
  return r;
}

void decompose_fused_matmul(Editor& e, const Node& n) {
  const Turns turns(n.attrs());
  const double alpha = n.attrs().get_float("alpha", 1);
  const Activation act = activation_of(n.attrs());
  std::optional<int64_t> axis;
  if (n.attrs().has("activation_axis")) axis = n.attrs().get_int("activation_axis", -1);
  Rewrite w(e, n);
  const auto turned = [&](size_t i, const char* name) {
    if (!turns.any()) return w.input(i);
    const Dims order =
        order_of(static_cast<size_t>(rank_needed(w, i, name)), turns.batch[i], turns.turned[i]);
    return in_place(order) ? w.input(i) : transpose(w, w.input(i), order);
  };
  const tn_value a = turned(0, "A"), b = turned(1, "B");
  tn_value y = w.make("MatMul", {a, b});
  if (alpha != 1) y = w.make("Mul", {y, w.number_like(alpha, w.input(0))});
  w.become(0, activate(w, y, act, axis));
}
void decompose_fused_gemm(Editor& e, const Node& n) {
  const OwnAttributes own(n, {"alpha", "beta", "transA", "transB"});
  const Activation act = activation_of(n.attrs());
  Rewrite w(e, n);
  w.become(0, activate(w, w.make("Gemm", {w.input(0), w.input(1), w.input(2)}, own.values), act));
}
void decompose_fused_conv(Editor& e, const Node& n) {
  const OwnAttributes own(n, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  Activation act{std::string(n.attrs().get_string("activation", "")), {}};
  for (double v : n.attrs().get_floats("activation_params")) act.parameters.push_back(v);
  Rewrite w(e, n);
  tn_value y = w.make("Conv", {w.input(0), w.input(1), w.input(2)}, own.values);
  if (w.input(3) != TN_NONE) y = w.make("Add", {y, w.input(3)});
  w.become(0, activate(w, y, act));
}
void decompose_gemm_gelu(Editor& e, const Node& n) {
  Rewrite w(e, n);
  tn_value y = w.make("MatMul", {w.input(0), w.input(1)});
  if (w.input(2) != TN_NONE) y = w.make("Add", {y, w.input(2)});
  w.become(0, w.make("Gelu", {y}, {AttrValue::of("approximate", "tanh")}));
}

}  // namespace

void add_microsoft_matmul(Plugin& p) {
  define_row(p, rows, "FusedConv", "activation(Conv(X, W, B) + Z).")
      .infer<infer_fused_conv>()
      .decompose<decompose_fused_conv>();
  define_row(p, rows, "FusedGemm", "activation(Gemm(A, B, C)).")
      .infer<infer_fused_gemm>()
      .decompose<decompose_fused_gemm>();
  for (const char* name : {"FusedMatMul", "TransposeMatMul", "GemmFastGelu", "FusedMatMulActivation"}) {
    auto& op = define_row(p, rows, name, "alpha * A B, operands transposed first, the activation last.");
    op.infer<infer_fused_matmul>();
    if (std::string_view(name) == "GemmFastGelu")
      op.decompose<decompose_gemm_gelu>();
    else
      op.decompose<decompose_fused_matmul>();
  }
}

}  // namespace tenon::ops
