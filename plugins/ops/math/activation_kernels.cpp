#include "math/activation_kernels.hpp"

namespace tenon::reference {
namespace {

template <class F>
void apply(const double* x, double* y, int64_t n, double alpha, double beta) {
  for (int64_t i = 0; i < n; ++i) y[i] = F::at(x[i], alpha, beta);
}

inline double sigmoid(double x) noexcept {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1 + e);
}
inline double softplus(double x) noexcept {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
inline double clamp(double x, double low, double high) noexcept {
  return x < low ? low : x > high ? high : x;
}  // NaN stays

#define TENON_FUNCTION(name, formula)                                                                  \
  struct name {                                                                                        \
    static double at(double x, [[maybe_unused]] double alpha, [[maybe_unused]] double beta) noexcept { \
      return formula;                                                                                  \
    }                                                                                                  \
  };
TENON_FUNCTION(AbsF, std::fabs(x))
TENON_FUNCTION(NegF, -x)
TENON_FUNCTION(ExpF, std::exp(x))
TENON_FUNCTION(LogF, std::log(x))
TENON_FUNCTION(SqrtF, std::sqrt(x))
TENON_FUNCTION(ReciprocalF, 1 / x)
TENON_FUNCTION(FloorF, std::floor(x))
TENON_FUNCTION(CeilF, std::ceil(x))
TENON_FUNCTION(RoundF, std::nearbyint(x))
TENON_FUNCTION(SignF, x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? 0.0 : x)
TENON_FUNCTION(SinF, std::sin(x))
TENON_FUNCTION(CosF, std::cos(x))
TENON_FUNCTION(TanF, std::tan(x))
TENON_FUNCTION(AsinF, std::asin(x))
TENON_FUNCTION(AcosF, std::acos(x))
TENON_FUNCTION(AtanF, std::atan(x))
TENON_FUNCTION(SinhF, std::sinh(x))
TENON_FUNCTION(CoshF, std::cosh(x))
TENON_FUNCTION(TanhF, std::tanh(x))
TENON_FUNCTION(AsinhF, std::asinh(x))
TENON_FUNCTION(AcoshF, std::acosh(x))
TENON_FUNCTION(AtanhF, std::atanh(x))
TENON_FUNCTION(ErfF, std::erf(x))
TENON_FUNCTION(SigmoidF, sigmoid(x))
TENON_FUNCTION(SoftplusF, softplus(x))
TENON_FUNCTION(SoftsignF, x / (1 + std::fabs(x)))
TENON_FUNCTION(ReluF, x < 0 ? 0.0 : x)
TENON_FUNCTION(LeakyReluF, x < 0 ? alpha * x : x)
TENON_FUNCTION(ThresholdedReluF, x > alpha ? x : 0.0)
TENON_FUNCTION(EluF, x < 0 ? alpha * std::expm1(x) : x)
TENON_FUNCTION(SeluF, x > 0 ? beta * x : beta * (alpha * std::expm1(x)))
TENON_FUNCTION(CeluF, x < 0 ? alpha * std::expm1(x / alpha) : x)
TENON_FUNCTION(HardSigmoidF, clamp(alpha* x + beta, 0, 1))
TENON_FUNCTION(HardSwishF, x* clamp(x / 6 + 0.5, 0, 1))
TENON_FUNCTION(SwishF, x* sigmoid(alpha* x))
TENON_FUNCTION(MishF, x* std::tanh(softplus(x)))
TENON_FUNCTION(GeluF, 0.5 * x * (1 + std::erf(x * 0.70710678118654752440)))
TENON_FUNCTION(GeluTanhF, 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))))
TENON_FUNCTION(ClipF, x<alpha ? alpha : x> beta ? beta : x)
TENON_FUNCTION(IdentityF, x)
TENON_FUNCTION(AffineF, alpha* x + beta)
TENON_FUNCTION(ScaledTanhF, alpha* std::tanh(beta* x))
#undef TENON_FUNCTION

constexpr RealFunction functions[] = {
    {"Abs", apply<AbsF>, 0, 0},
    {"Neg", apply<NegF>, 0, 0},
    {"Exp", apply<ExpF>, 0, 0},
    {"Log", apply<LogF>, 0, 0},
    {"Sqrt", apply<SqrtF>, 0, 0},
    {"Reciprocal", apply<ReciprocalF>, 0, 0},
    {"Floor", apply<FloorF>, 0, 0},
    {"Ceil", apply<CeilF>, 0, 0},
    {"Round", apply<RoundF>, 0, 0},
    {"Sign", apply<SignF>, 0, 0},
    {"Sin", apply<SinF>, 0, 0},
    {"Cos", apply<CosF>, 0, 0},
    {"Tan", apply<TanF>, 0, 0},
    {"Asin", apply<AsinF>, 0, 0},
    {"Acos", apply<AcosF>, 0, 0},
    {"Atan", apply<AtanF>, 0, 0},
    {"Sinh", apply<SinhF>, 0, 0},
    {"Cosh", apply<CoshF>, 0, 0},
    {"Tanh", apply<TanhF>, 0, 0},
    {"Asinh", apply<AsinhF>, 0, 0},
    {"Acosh", apply<AcoshF>, 0, 0},
    {"Atanh", apply<AtanhF>, 0, 0},
    {"Erf", apply<ErfF>, 0, 0},
    {"Sigmoid", apply<SigmoidF>, 0, 0},
    {"Softplus", apply<SoftplusF>, 0, 0},
    {"Softsign", apply<SoftsignF>, 0, 0},
    {"Relu", apply<ReluF>, 0, 0},
    {"LeakyRelu", apply<LeakyReluF>, 0.01f, 0},
    {"ThresholdedRelu", apply<ThresholdedReluF>, 1, 0},
    {"Elu", apply<EluF>, 1, 0},
    {"Selu", apply<SeluF>, 1.67326319217681884765625f, 1.05070102214813232421875f},
    {"Celu", apply<CeluF>, 1, 0},
    {"HardSigmoid", apply<HardSigmoidF>, 0.2f, 0.5f},
    {"HardSwish", apply<HardSwishF>, 0, 0},
    {"Swish", apply<SwishF>, 1, 0},
    {"Mish", apply<MishF>, 0, 0},
    {"Gelu", apply<GeluF>, 0, 0},
    {"GeluTanh", apply<GeluTanhF>, 0, 0},
    {"Identity", apply<IdentityF>, 0, 0},
    {"Clip", apply<ClipF>, -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()},
    {"Affine", apply<AffineF>, 1, 0},
    {"ScaledTanh", apply<ScaledTanhF>, 1, 1}};

}  // namespace

const RealFunction* find_real_function(std::string_view op) noexcept {
  for (const auto& f : functions)
    if (op == f.op) return &f;
  return nullptr;
}

Activation fused_activation(const PlanView& v) {
  const auto attrs = v.attrs();
  std::string_view name = attrs.get_string("activation", "");
  if (name.empty()) return {};
  if (name == "Gelu" && attrs.get_string("approximate", "none") == "tanh") name = "GeluTanh";
  const auto* f = find_real_function(name);
  if (!f)
    throw Failure(TN_ERR_UNSUPPORTED,
                  "activation '" + std::string(name) +
                      "' is not known; expected the name of an ONNX operator of one input");
  // Where alpha and beta are the product's own (Gemm), the activation's are told apart by a longer name.
  const bool own = v.op_name() == "tenon::FusedGemm";
  const double alpha = own ? f->alpha : attrs.get_float("alpha", f->alpha),
               beta = own ? f->beta : attrs.get_float("beta", f->beta);
  return {f->apply, attrs.get_float("activation_alpha", alpha), attrs.get_float("activation_beta", beta)};
}

}  // namespace tenon::reference
