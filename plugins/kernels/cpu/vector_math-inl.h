// Element functions on vectors, compiled once for each instruction set. Included by foreach_target files
// only.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "activation.hpp"
#include "rows.hpp"

#if defined(TENON_CPU_VECTOR_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_VECTOR_MATH_INL
#undef TENON_CPU_VECTOR_MATH_INL
#else
#define TENON_CPU_VECTOR_MATH_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V, size_t N>
HWY_INLINE V horner(D d, V x, const float (&c)[N]) {
  V r = hn::Set(d, c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) r = hn::MulAdd(r, x, hn::Set(d, c[i]));
  return r;
}

/// e^x where Highway's has no answer too: infinity above the largest result, NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exponential(D d, V x) {
  const V last = hn::Set(d, 88.72283905206835f);
  const V r = hn::IfThenElse(hn::Gt(x, last), hn::Inf(d), hn::Exp(d, hn::Min(x, last)));
  return hn::IfThenElse(hn::IsNaN(x), x, r);
}

/// log x, also of 0 (-infinity), infinity, and what has none (NaN).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logarithm(D d, V x) {
  const V zero = hn::Zero(d), infinity = hn::Inf(d);
  V r = hn::IfThenElse(hn::Eq(x, infinity), x, hn::Log(d, x));
  r = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), r);
  return hn::IfThenElse(hn::Ge(x, zero), r, hn::NaN(d));
}

/// erf to 1.4e-7 absolute: below 1 an even polynomial times x, above 1 - exp(p(|x|)) with p fitted to
/// log(erfc) on [1, 4] by Chebyshev interpolation. NaN gives NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf(D d, V x) {
  static constexpr float small[] = {1.1283791065216064f,   -0.3761262595653534f,  0.11283597350120544f,
                                    -0.02685432881116867f, 0.005189312156289816f, -0.0008018855005502701f,
                                    7.882497448008507e-05f};
  static constexpr float large[] = {
      0.00030321296071633697f, -1.1301666498184204f,    -0.6319370865821838f,
      -0.10997824370861053f,   0.02636471763253212f,    -0.004740222357213497f,
      0.0005927695310674608f,  -4.559062290354632e-05f, 1.6140616025950294e-06f};
  const V one = hn::Set(d, 1.0f), a = hn::Abs(x);
  const V near = hn::Mul(x, horner(d, hn::Mul(x, x), small));
  const V far = hn::Sub(one, hn::Exp(d, horner(d, hn::Min(a, hn::Set(d, 4.0f)), large)));
  const V r = hn::IfThenElse(hn::Lt(a, one), near, hn::CopySign(far, x));
  return hn::IfThenElse(hn::IsNaN(x), x, r);
}

/// 0 and 1 at the infinities, NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exponential(d, hn::Neg(x))));
}

/// x itself where it is within the bounds: NaN stays NaN, and -0 beside a bound of 0 stays -0.
template <class V>
HWY_INLINE V clamp(V x, V lo, V hi) {
  const V raised = hn::IfThenElse(hn::Lt(x, lo), lo, x);
  return hn::IfThenElse(hn::Gt(raised, hi), hi, raised);
}

template <Act A, class D, class V = hn::Vec<D>>
HWY_INLINE V activate(D d, V x, float alpha, float beta) {
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f), va = hn::Set(d, alpha), vb = hn::Set(d, beta);
  if constexpr (A == Act::None) return x;
  if constexpr (A == Act::Relu) return hn::IfThenElse(hn::Lt(x, zero), zero, x);
  if constexpr (A == Act::LeakyRelu) return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(x, va), x);
  if constexpr (A == Act::Clip) return clamp(x, va, vb);
  if constexpr (A == Act::Sigmoid) return sigmoid(d, x);
  if constexpr (A == Act::Tanh) return hn::Tanh(d, x);
  if constexpr (A == Act::HardSigmoid) return clamp(hn::MulAdd(va, x, vb), zero, one);
  if constexpr (A == Act::HardSwish)
    return hn::Mul(x, clamp(hn::MulAdd(x, hn::Set(d, 1.0f / 6), hn::Set(d, 0.5f)), zero, one));
  if constexpr (A == Act::Swish) return hn::Mul(x, sigmoid(d, hn::Mul(x, va)));
  if constexpr (A == Act::Gelu) {
    const V half = hn::Mul(x, hn::Set(d, 0.5f));
    return hn::Mul(half, hn::Add(erf(d, hn::Mul(x, hn::Set(d, 0.70710678118654752f))), one));
  }
  if constexpr (A == Act::GeluTanh) {
    const V half = hn::Mul(x, hn::Set(d, 0.5f));
    const V inner = hn::Mul(hn::Set(d, 0.79788456080286536f),
                            hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, 0.044715f), x));
    return hn::Mul(half, hn::Add(hn::Tanh(d, inner), one));
  }
  if constexpr (A == Act::Elu)
    return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(va, hn::Expm1(d, hn::Min(x, zero))), x);
  if constexpr (A == Act::Softplus || A == Act::Mish) {  // log(1 + e^x) = max(x, 0) + log1p(e^-|x|)
    const V above = hn::Add(hn::Max(x, zero), hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(x)))));
    const V s = hn::IfThenElse(hn::IsNaN(x), x, above);
    if constexpr (A == Act::Softplus) return s;
    return hn::Mul(x, hn::Tanh(d, s));
  }
  if constexpr (A == Act::Exp) return exponential(d, x);
  if constexpr (A == Act::Log) return logarithm(d, x);
  if constexpr (A == Act::Sqrt) return hn::Sqrt(x);
  if constexpr (A == Act::Reciprocal) return hn::Div(one, x);
  if constexpr (A == Act::Neg) return hn::Neg(x);
  if constexpr (A == Act::Abs) return hn::Abs(x);
  if constexpr (A == Act::Erf) return erf(d, x);
  // Highway's without vectors lose the sign of zero.
  if constexpr (A == Act::Floor) return hn::CopySign(hn::Floor(x), x);
  if constexpr (A == Act::Ceil) return hn::CopySign(hn::Ceil(x), x);
  if constexpr (A == Act::Round) return hn::CopySign(hn::Round(x), x);
  if constexpr (A == Act::Square) return hn::Mul(x, x);
  return x;
}

/// Calls f.template operator()<Act::X>() for the activation's kind.
template <class F>
HWY_INLINE void with_activation(Act kind, F&& f) {
  switch (kind) {
// clang-format off
#define TENON_ACT(A)                 \
  case Act::A:                       \
    f.template operator()<Act::A>(); \
    return;
    TENON_ACT(None) TENON_ACT(Relu) TENON_ACT(LeakyRelu) TENON_ACT(Clip) TENON_ACT(Sigmoid) TENON_ACT(Tanh)
    TENON_ACT(HardSigmoid) TENON_ACT(HardSwish) TENON_ACT(Swish) TENON_ACT(Gelu) TENON_ACT(GeluTanh)
    TENON_ACT(Elu) TENON_ACT(Mish) TENON_ACT(Softplus) TENON_ACT(Exp) TENON_ACT(Log) TENON_ACT(Sqrt)
    TENON_ACT(Reciprocal) TENON_ACT(Neg) TENON_ACT(Abs) TENON_ACT(Erf) TENON_ACT(Floor) TENON_ACT(Ceil)
    TENON_ACT(Round) TENON_ACT(Square)
#undef TENON_ACT
        // clang-format on
        default : return;
  }
}

/// y[i] = f(i-th full vector); the tail goes through a padded buffer so that no byte outside is touched.
template <class D, class F>
HWY_INLINE void for_vectors(D d, int64_t n, F&& f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(i, lanes);
  if (i < n) f(i, n - i);
}
template <class D>
HWY_INLINE hn::Vec<D> load_n(D d, const float* p, int64_t count) {
  if (count == static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, p);
  HWY_ALIGN_MAX float buffer[64] = {};
  for (int64_t i = 0; i < count; ++i) buffer[i] = p[i];
  return hn::Load(d, buffer);
}
template <class D>
HWY_INLINE void store_n(D d, hn::Vec<D> v, float* p, int64_t count) {
  if (count == static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(v, d, p);
  HWY_ALIGN_MAX float buffer[64] = {};
  hn::Store(v, d, buffer);
  for (int64_t i = 0; i < count; ++i) p[i] = buffer[i];
}

/// a op b; Max and Min give NaN for a NaN in either.
template <Binary Op, class V>
HWY_INLINE V combine(V a, V b) {
  if constexpr (Op == Binary::Add) return hn::Add(a, b);
  if constexpr (Op == Binary::Sub) return hn::Sub(a, b);
  if constexpr (Op == Binary::Mul) return hn::Mul(a, b);
  if constexpr (Op == Binary::Div) return hn::Div(a, b);
  if constexpr (Op == Binary::Max)
    return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a));
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a));
}

/// Partial results of a row, four so that operations do not wait for one another.
template <class V>
struct Partials {
  V a, b, c, e;
};
/// Joins map(x) to the partial results, as far as whole vectors go; returns how far that is.
template <class D, class V, class Map, class Join>
HWY_INLINE int64_t join_vectors(D d, Partials<V>& p, const float* x, int64_t n, Map map, Join join) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    p.a = join(p.a, map(hn::LoadU(d, x + i)));
    p.b = join(p.b, map(hn::LoadU(d, x + i + lanes)));
    p.c = join(p.c, map(hn::LoadU(d, x + i + 2 * lanes)));
    p.e = join(p.e, map(hn::LoadU(d, x + i + 3 * lanes)));
  }
  for (; i + lanes <= n; i += lanes) p.a = join(p.a, map(hn::LoadU(d, x + i)));
  return i;
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::cpu
HWY_AFTER_NAMESPACE();
#endif
