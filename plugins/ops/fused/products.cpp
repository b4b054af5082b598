// Products with what follows them, domain "tenon": what rules put in the place of chains, each with the chain
// as its body.
//
// `activation` names an ONNX operator of one operand that is applied last ("": none). Its parameters are
//   Clip: min, max   LeakyRelu, Elu, Swish: alpha   HardSigmoid: alpha, beta   Gelu: approximate
// and stand in `alpha` and `beta`; in FusedGemm, where these are Gemm's own, in `activation_alpha`,
// `activation_beta`. Without them the activation's defaults hold.
#include <cmath>

#include "nn/matmul.hpp"
#include "spatial/conv.hpp"
#include "support/own_attributes.hpp"

namespace tenon::ops {
namespace {

constexpr Schema fused_rows[] = {
    {"tenon", "FusedConv", 1, 1, 2, "X:T W:T B?:T R?:T", "Y:T", "T:@float",
     "activation='' alpha:float approximate='none' auto_pad='NOTSET' beta:float dilations:ints group=1 "
     "kernel_shape:ints pads:ints strides:ints"},
    {"tenon", "FusedGemm", 1, 1, 2, "A:T B:T C?:T", "Y:T", "T:@number",
     "activation='' activation_alpha:float activation_beta:float alpha=1.0 approximate='none' beta=1.0 "
     "transA=0 transB=0"},
    {"tenon", "FusedMatMul", 1, 1, 2, "A:T B:T C?:T", "Y:T", "T:@float",
     "activation='' alpha:float approximate='none' beta:float"},
    {"tenon", "SDPA", 1, 1, 3, "Q:T K:T V:T M?:T", "Z:T", "T:@float", "k_is_transposed=0 scale=1.0"},
    {"tenon", "GatedActivation", 1, 1, 2, "G:T U:T", "Y:T", "T:@float",
     "activation='' alpha:float approximate='none' beta:float"}};

void check_activation(Infer& c) {
  const auto name = c.attrs().get_string("activation", "");
  if (name.empty()) return;
  for (const Schema& row : all_schemas())
    if (*row.domain == 0 && name == row.name) return;
  fail("attribute 'activation' is '" + std::string(name) +
       "'; expected the name of an ONNX operator of one operand, or nothing");
}

void infer_fused_conv(Infer& c) {
  check_activation(c);
  infer_convolution(c, 0, 1, c.has_input(2) ? std::optional<uint32_t>(2) : std::nullopt, c.dtype(0));
}
void infer_fused_gemm(Infer& c) {
  check_activation(c);
  infer_gemm_like(c, 0, 1, 2);
}
void infer_fused_matmul(Infer& c) {
  check_activation(c);
  if (!c.has_rank(0) || !c.has_rank(1)) return c.set_unranked(0, c.dtype(0));
  c.set(0, c.dtype(0), matmul_dims(c, c.dims(0), c.dims(1)));
}

void infer_gated(Infer& c) {
  check_activation(c);
  same_type(c, 0, 0);
  if (!c.has_rank(0) || !c.has_rank(1)) return;
  const auto g = c.dims(0), u = c.dims(1);
  bool same = g.size() == u.size();
  for (size_t i = 0; same && i < g.size(); ++i) same = !c.differ(g[i], u[i]);
  require(same, "operands G and U have shapes " + c.text(g) + " and " + c.text(u) + "; expected equal ones");
}

void infer_sdpa(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "Q", 2) || !ranked(c, 1, "K", 2) || !ranked(c, 2, "V", 2))
    return c.set_unranked(0, dtype);
  auto k = c.dims(1);
  if (c.attrs().get_int("k_is_transposed", 0) == 0) std::swap(k[k.size() - 1], k[k.size() - 2]);
  auto scores = matmul_dims(c, c.dims(0), k);
  if (c.has_input(3)) {
    if (!c.has_rank(3)) return c.set_unranked(0, dtype);
    scores = c.broadcast(scores, c.dims(3));
  }
  c.set(0, dtype, matmul_dims(c, scores, c.dims(2)));
}

// ---- bodies
// ---------------------------------------------------------------------------------------------------------

struct Activation {
  std::string name, approximate;
  std::optional<double> alpha, beta;
};
Activation activation_of(const Node& n, const char* alpha, const char* beta) {
  const Attributes a = n.attrs();
  Activation r{
      std::string(a.get_string("activation", "")), std::string(a.get_string("approximate", "none")), {}, {}};
  if (a.has(alpha)) r.alpha = a.get_float(alpha, 0);
  if (a.has(beta)) r.beta = a.get_float(beta, 0);
  return r;
}
tn_value activate(Rewrite& w, tn_value y, tn_value like, const Activation& act) {
  if (act.name.empty()) return y;
  if (act.name == "Clip") {
    const tn_value low = act.alpha ? w.number_like(*act.alpha, like) : TN_NONE,
                   high = act.beta ? w.number_like(*act.beta, like) : TN_NONE;
    return w.make("Clip", {y, low, high});
  }
  const Schema& row = schema_of(act.name);
  if (row.min_inputs != 1) decline("activation '" + act.name + "' takes more than one operand");
  const std::string_view attributes = row.attributes;
  std::vector<AttrValue> attrs;
  if (act.alpha && attributes.find("alpha=") != std::string_view::npos)
    attrs.push_back(AttrValue::of("alpha", *act.alpha));
  if (act.beta && attributes.find("beta=") != std::string_view::npos)
    attrs.push_back(AttrValue::of("beta", *act.beta));
  if (act.name == "Gelu") attrs.push_back(AttrValue::of("approximate", std::string_view(act.approximate)));
  return w.make(act.name, {y}, std::move(attrs));
}

void decompose_fused_conv(Editor& e, const Node& n) {
  const Activation act = activation_of(n, "alpha", "beta");
  const OwnAttributes own(n, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  Rewrite w(e, n);
  tn_value y = w.make("Conv", {w.input(0), w.input(1), w.input(2)}, own.values);
  if (w.input(3) != TN_NONE) y = w.make("Add", {y, w.input(3)});
  w.become(0, activate(w, y, w.input(0), act));
}
void decompose_fused_gemm(Editor& e, const Node& n) {
  const Activation act = activation_of(n, "activation_alpha", "activation_beta");
  const OwnAttributes own(n, {"alpha", "beta", "transA", "transB"});
  Rewrite w(e, n);
  w.become(0, activate(w, w.make("Gemm", {w.input(0), w.input(1), w.input(2)}, own.values), w.input(0), act));
}
void decompose_fused_matmul(Editor& e, const Node& n) {
  const Activation act = activation_of(n, "alpha", "beta");
  Rewrite w(e, n);
  tn_value y = w.make("MatMul", {w.input(0), w.input(1)});
  if (w.input(2) != TN_NONE) y = w.make("Add", {y, w.input(2)});
  w.become(0, activate(w, y, w.input(0), act));
}
void decompose_gated(Editor& e, const Node& n) {
  const Activation act = activation_of(n, "alpha", "beta");
  Rewrite w(e, n);
  w.become(0, w.make("Mul", {activate(w, w.input(0), w.input(0), act), w.input(1)}));
}
void decompose_sdpa(Editor& e, const Node& n) {
  const double scale = n.attrs().get_float("scale", 1);
  const bool turned = n.attrs().get_int("k_is_transposed", 0) != 0;
  Rewrite w(e, n);
  tn_value k = w.input(1);
  if (!turned) {
    const int32_t rank = w.rank(k);
    if (rank < 2) decline("the rank of K is not known");
    Dims perm;
    for (int32_t i = 0; i < rank; ++i) perm.push_back(i);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    k = w.make("Transpose", {k}, {AttrValue::of("perm", Span<const int64_t>(perm))});
  }
  tn_value score = w.make("MatMul", {w.input(0), k});
  if (scale != 1) score = w.make("Mul", {score, w.number_like(scale, w.input(0))});
  if (w.input(3) != TN_NONE) score = w.make("Add", {score, w.input(3)});
  w.become(0,
           w.make("MatMul", {w.make("Softmax", {score}, {AttrValue::of("axis", int64_t{-1})}), w.input(2)}));
}
OpBuilder& define_fused(Plugin& p, const char* name, const char* doc) {
  for (const Schema& row : fused_rows)
    if (std::string_view(row.name) == name) return define(p, row).doc(doc);
  fail(std::string("products.cpp has no row for ") + name);
}

}  // namespace

void add_fused_products(Plugin& p) {
  define_fused(p, "FusedConv", "Conv, then R added, then the activation.")
      .infer<infer_fused_conv>()
      .decompose<decompose_fused_conv>();
  define_fused(p, "FusedGemm", "Gemm, then the activation.")
      .infer<infer_fused_gemm>()
      .decompose<decompose_fused_gemm>();
  define_fused(p, "FusedMatMul",
               "MatMul, then C added, which has one number a column or one at all, then the activation.")
      .infer<infer_fused_matmul>()
      .decompose<decompose_fused_matmul>();
  define_fused(p, "GatedActivation", "The activation of G, times U: SwiGLU, GeGLU, GLU.")
      .infer<infer_gated>()
      .decompose<decompose_gated>();
  define_fused(p, "SDPA",
               "softmax(Q K^T * scale + M) V. K is [.., keys, size], with k_is_transposed [.., size, keys].")
      .infer<infer_sdpa>()
      .decompose<decompose_sdpa>();
}

}  // namespace tenon::ops
