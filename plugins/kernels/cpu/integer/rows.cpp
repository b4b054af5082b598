// What integer kernels do to runs of numbers before and after their products.
#include "integer/product.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "integer/rows.cpp"
#include <hwy/foreach_target.h>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::Rebind<int32_t, DF>;

void adjust(int32_t* v, int64_t n, int32_t add, const int32_t* adds, int32_t factor, const int32_t* factors) {
  const DI d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto all = hn::Set(d, add), by = hn::Set(d, factor);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    auto x = hn::Add(hn::LoadU(d, v + j), all);
    if (adds) x = hn::Add(x, hn::LoadU(d, adds + j));
    if (factors) x = hn::Add(x, hn::Mul(by, hn::LoadU(d, factors + j)));
    hn::StoreU(x, d, v + j);
  }
  for (; j < n; ++j)
    v[j] = static_cast<int32_t>(
        static_cast<uint32_t>(v[j]) + static_cast<uint32_t>(add) +
        (adds ? static_cast<uint32_t>(adds[j]) : 0u) +
        (factors ? static_cast<uint32_t>(factor) * static_cast<uint32_t>(factors[j]) : 0u));
}

void scaled(const int32_t* v, int64_t n, int32_t factor, const int32_t* factors, int32_t second,
            const int32_t* seconds, float scale, const float* by, float* to) {
  const DF d;
  const DI di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto all = hn::Set(d, scale);
  const auto first_factor = hn::Set(di, factor), second_factor = hn::Set(di, second);
  for (int64_t j = 0; j < n; j += lanes) {
    auto x = hn::Add(hn::LoadU(di, v + j), hn::Mul(first_factor, hn::LoadU(di, factors + j)));
    if (seconds) x = hn::Add(x, hn::Mul(second_factor, hn::LoadU(di, seconds + j)));
    const auto real = hn::Mul(hn::ConvertTo(d, x), hn::Mul(all, hn::LoadU(d, by + j)));
    hn::StoreU(hn::Add(hn::LoadU(d, to + j), real), d, to + j);
  }
}

/// Numbers at rest in [least, most] after rounding, as int32; NaN is 0.
template <class V>
HWY_INLINE auto to_bounds(V x, V least, V most) {
  const DF d;
  x = hn::IfThenElse(hn::IsNaN(x), hn::Zero(d), hn::Round(x));
  return hn::ConvertTo(DI(), hn::Min(hn::Max(x, least), most));
}
/// A full vector at `to`, or its first `count` numbers.
template <class T, class V>
HWY_INLINE void store_bytes(V x, T* to, int64_t count) {
  const hn::Rebind<T, DI> narrow;
  if (count == static_cast<int64_t>(hn::Lanes(narrow)))
    return hn::StoreU(hn::DemoteTo(narrow, x), narrow, to);
  HWY_ALIGN_MAX int32_t buffer[64] = {};
  hn::Store(x, DI(), buffer);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(buffer[i]);
}
template <class T, class N>
HWY_INLINE void read_tail(const T* from, int64_t count, N* buffer) {
  for (int64_t i = 0; i < count; ++i) buffer[i] = from[i];
}

/// Each vector of sums, with one number of `by` and `bias` a sum or one for all, through f to the bytes.
template <class T, class F>
HWY_INLINE void each_sum(const int32_t* v, int64_t n, const float* by, const float* bias, int64_t step,
                         int32_t zero, T* to, F&& f) {
  const DF d;
  const DI di;
  constexpr int32_t low = std::is_signed_v<T> ? -128 : 0, high = std::is_signed_v<T> ? 127 : 255;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto least = hn::Set(d, static_cast<float>(low - zero)),
             most = hn::Set(d, static_cast<float>(high - zero));
  const auto centre = hn::Set(di, zero);
  const auto store = [&](auto x, auto scale, auto plus, int64_t j, int64_t count) {
    const auto y = f(hn::Mul(hn::ConvertTo(d, x), scale), plus);
    store_bytes(hn::Add(to_bounds(y, least, most), centre), to + j, count);
  };
  const auto one_scale = hn::Set(d, *by), one_bias = hn::Set(d, *bias);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes)
    store(hn::LoadU(di, v + j), step ? hn::LoadU(d, by + j) : one_scale,
          step ? hn::LoadU(d, bias + j) : one_bias, j, lanes);
  if (j == n) return;
  HWY_ALIGN_MAX int32_t sums[64] = {};
  HWY_ALIGN_MAX float scales[64] = {}, added[64] = {};
  read_tail(v + j, n - j, sums);
  if (step) read_tail(by + j, n - j, scales), read_tail(bias + j, n - j, added);
  store(hn::Load(di, sums), step ? hn::Load(d, scales) : one_scale, step ? hn::Load(d, added) : one_bias, j,
        n - j);
}

template <class T>
HWY_INLINE void requantise(const int32_t* v, int64_t n, const float* by, int64_t step, int32_t zero, T* to) {
  each_sum(v, n, by, by, step, zero, to, [](auto x, auto) { return x; });
}
template <class T>
HWY_INLINE void quantise_real(const int32_t* v, int64_t n, const float* by, const float* bias, int64_t step,
                              float scale, int32_t zero, T* to) {
  const auto all = hn::Set(DF(), scale);
  each_sum(v, n, by, bias, step, zero, to, [&](auto x, auto b) { return hn::Div(hn::Add(x, b), all); });
}
void quantise_signed(const int32_t* v, int64_t n, const float* by, const float* bias, int64_t step,
                     float scale, int32_t zero, int8_t* to) {
  quantise_real(v, n, by, bias, step, scale, zero, to);
}
void quantise_unsigned(const int32_t* v, int64_t n, const float* by, const float* bias, int64_t step,
                       float scale, int32_t zero, uint8_t* to) {
  quantise_real(v, n, by, bias, step, scale, zero, to);
}
void requantise_signed(const int32_t* v, int64_t n, const float* by, int64_t step, int32_t zero, int8_t* to) {
  requantise(v, n, by, step, zero, to);
}
void requantise_unsigned(const int32_t* v, int64_t n, const float* by, int64_t step, int32_t zero,
                         uint8_t* to) {
  requantise(v, n, by, step, zero, to);
}

/// Sums of a panel's column block plus what the row adds.
HWY_INLINE hn::Vec<DI> adjusted(const int32_t* v, const int32_t* columns, int32_t add, int32_t factor) {
  const DI d;
  const auto x = hn::Add(hn::LoadU(d, v), hn::Set(d, add));
  return columns ? hn::Add(x, hn::Mul(hn::Set(d, factor), hn::LoadU(d, columns))) : x;
}
void panel_sums(int32_t* v, const PanelRows& r) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(DI()));
  for (int64_t i = 0; i < r.count; ++i, v += panel_columns)
    for (int64_t j = 0; j < panel_columns; j += lanes)
      hn::StoreU(adjusted(v + j, r.columns ? r.columns + j : nullptr, r.adds[i], r.factors[i]), DI(), v + j);
}
template <class T>
HWY_INLINE void panel_bytes(const int32_t* v, const PanelRows& r, float scale, int32_t zero, T* to,
                            int64_t stride) {
  const DF d;
  constexpr int32_t low = std::is_signed_v<T> ? -128 : 0, high = std::is_signed_v<T> ? 127 : 255;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto least = hn::Set(d, static_cast<float>(low - zero)),
             most = hn::Set(d, static_cast<float>(high - zero)), divisor = hn::Set(d, scale);
  const auto centre = hn::Set(DI(), zero);
  for (int64_t i = 0; i < r.count; ++i, v += panel_columns, to += stride) {
    const auto by = hn::Set(d, r.by[i]);
    for (int64_t j = 0; j < panel_columns; j += lanes) {
      const auto sum = adjusted(v + j, r.columns ? r.columns + j : nullptr, r.adds[i], r.factors[i]);
      auto x = hn::Mul(hn::ConvertTo(d, sum), by);
      if (r.bias) x = hn::Div(hn::Add(x, hn::Set(d, r.bias[i])), divisor);
      store_bytes(hn::Add(to_bounds(x, least, most), centre), to + j, lanes);
    }
  }
}
void panel_signed(const int32_t* v, const PanelRows& r, float scale, int32_t zero, int8_t* to,
                  int64_t stride) {
  panel_bytes(v, r, scale, zero, to, stride);
}
void panel_unsigned(const int32_t* v, const PanelRows& r, float scale, int32_t zero, uint8_t* to,
                    int64_t stride) {
  panel_bytes(v, r, scale, zero, to, stride);
}

void quantise(const float* x, int64_t n, float scale, int32_t zero, uint8_t* to) {
  const DF d;
  const DI di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, scale), least = hn::Set(d, static_cast<float>(-zero)),
             most = hn::Set(d, static_cast<float>(255 - zero));
  const auto centre = hn::Set(di, zero);
  HWY_ALIGN_MAX float tail[64] = {};
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t count = n - i < lanes ? n - i : lanes;
    if (count < lanes) read_tail(x + i, count, tail);
    const auto v = count < lanes ? hn::Load(d, tail) : hn::LoadU(d, x + i);
    const auto y = hn::Add(to_bounds(hn::Div(v, by), least, most), centre);
    // What is not a number is the byte 0, whatever the zero point.
    store_bytes(hn::IfThenZeroElse(hn::RebindMask(di, hn::IsNaN(v)), y), to + i, count);
  }
}

void widen(const float* x, int64_t n, float* low, float* high) {
  const DF d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto least = hn::Set(d, *low), most = hn::Set(d, *high);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    least = hn::IfThenElse(hn::Lt(v, least), v, least);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
  }
  *low = hn::GetLane(hn::MinOfLanes(d, least));
  *high = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < n; ++i) {
    *low = x[i] < *low ? x[i] : *low;
    *high = x[i] > *high ? x[i] : *high;
  }
}

template <Act A, class D, class V>
HWY_INLINE V precisely(D d, V x) {
  const V one = hn::Set(d, 1.0);
  if constexpr (A == Act::Relu) return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  // e^-|x| does not overflow; 1 - sigmoid(|x|) is exact enough where x is negative.
  const V e = hn::Exp(d, hn::Neg(hn::Abs(x)));
  if constexpr (A == Act::Sigmoid) {
    const V r = hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
    return hn::IfThenElse(hn::IsNaN(x), x, r);
  }
  return hn::IfThenElse(hn::IsNaN(x), x,
                        hn::Tanh(d, hn::Min(hn::Max(x, hn::Set(d, -20.0)), hn::Set(d, 20.0))));
}
template <Act A>
HWY_INLINE void each_precisely(const float* x, float* y, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::DemoteTo(narrow, precisely<A>(d, hn::PromoteTo(d, hn::LoadU(narrow, x + i)))), narrow,
               y + i);
  if (i == n) return;
  HWY_ALIGN_MAX float rest[64] = {};
  read_tail(x + i, n - i, rest);
  hn::StoreU(hn::DemoteTo(narrow, precisely<A>(d, hn::PromoteTo(d, hn::LoadU(narrow, rest)))), narrow, rest);
  read_tail(rest, n - i, y + i);
}
void activate_precisely(Act f, const float* x, float* y, int64_t n) {
  if (f == Act::Sigmoid)
    each_precisely<Act::Sigmoid>(x, y, n);
  else if (f == Act::Tanh)
    each_precisely<Act::Tanh>(x, y, n);
  else
    each_precisely<Act::Relu>(x, y, n);
}

void flip(const uint8_t* from, int64_t n, uint8_t by, uint8_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<uint8_t>(from[i] ^ by);
}
int32_t sum(const uint8_t* from, int64_t n) {
  int32_t r = 0;
  for (int64_t i = 0; i < n; ++i) r += from[i];
  return r;
}

void interleave(const uint8_t* a, const uint8_t* b, const uint8_t* c, const uint8_t* e, uint8_t* to) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t j = 0; j < panel_columns; ++j)
    to[j * 4] = a[j], to[j * 4 + 1] = b[j], to[j * 4 + 2] = c[j], to[j * 4 + 3] = e[j];
#else
  const hn::Full128<uint8_t> d;
  const hn::Full128<uint16_t> wide;
  for (int half = 0; half < 2; ++half, a += 16, b += 16, c += 16, e += 16, to += 64) {
    const auto va = hn::LoadU(d, a), vb = hn::LoadU(d, b), vc = hn::LoadU(d, c), ve = hn::LoadU(d, e);
    const auto ab0 = hn::BitCast(wide, hn::InterleaveLower(d, va, vb)),
               ab1 = hn::BitCast(wide, hn::InterleaveUpper(d, va, vb)),
               ce0 = hn::BitCast(wide, hn::InterleaveLower(d, vc, ve)),
               ce1 = hn::BitCast(wide, hn::InterleaveUpper(d, vc, ve));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab0, ce0)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab0, ce0)), d, to + 16);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab1, ce1)), d, to + 32);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab1, ce1)), d, to + 48);
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>

namespace tenon::cpu {

HWY_EXPORT(adjust);
HWY_EXPORT(scaled);
HWY_EXPORT(requantise_signed);
HWY_EXPORT(requantise_unsigned);
HWY_EXPORT(quantise);
HWY_EXPORT(panel_sums);
HWY_EXPORT(panel_signed);
HWY_EXPORT(panel_unsigned);
HWY_EXPORT(quantise_signed);
HWY_EXPORT(quantise_unsigned);
HWY_EXPORT(widen);
HWY_EXPORT(flip);
HWY_EXPORT(activate_precisely);
HWY_EXPORT(sum);
HWY_EXPORT(interleave);

void adjust_sums(int32_t* v, int64_t n, int32_t add, const int32_t* adds, int32_t factor,
                 const int32_t* factors) noexcept {
  HWY_DYNAMIC_DISPATCH(adjust)(v, n, add, adds, factor, factors);
}
void add_scaled(const int32_t* v, int64_t n, int32_t factor, const int32_t* factors, int32_t second,
                const int32_t* seconds, float scale, const float* by, float* to) noexcept {
  HWY_DYNAMIC_DISPATCH(scaled)(v, n, factor, factors, second, seconds, scale, by, to);
}
void requantise_row(const int32_t* v, int64_t n, const float* by, int64_t by_step, int32_t zero,
                    bool with_sign, uint8_t* to) noexcept {
  if (with_sign)
    HWY_DYNAMIC_DISPATCH(requantise_signed)(v, n, by, by_step, zero, reinterpret_cast<int8_t*>(to));
  else
    HWY_DYNAMIC_DISPATCH(requantise_unsigned)(v, n, by, by_step, zero, to);
}
void apply_precisely(Act f, const float* x, float* y, int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(activate_precisely)(f, x, y, n);
}
void quantise_sums(const int32_t* v, int64_t n, const float* by, const float* bias, int64_t step, float scale,
                   int32_t zero, bool with_sign, uint8_t* to) noexcept {
  if (with_sign)
    HWY_DYNAMIC_DISPATCH(quantise_signed)(v, n, by, bias, step, scale, zero, reinterpret_cast<int8_t*>(to));
  else
    HWY_DYNAMIC_DISPATCH(quantise_unsigned)(v, n, by, bias, step, scale, zero, to);
}
void finish_panel(int32_t* v, const PanelRows& r) noexcept { HWY_DYNAMIC_DISPATCH(panel_sums)(v, r); }
void finish_panel(const int32_t* v, const PanelRows& r, float scale, int32_t zero, bool with_sign,
                  uint8_t* to, int64_t stride) noexcept {
  if (with_sign)
    HWY_DYNAMIC_DISPATCH(panel_signed)(v, r, scale, zero, reinterpret_cast<int8_t*>(to), stride);
  else
    HWY_DYNAMIC_DISPATCH(panel_unsigned)(v, r, scale, zero, to, stride);
}
void flip_row(const uint8_t* from, int64_t n, uint8_t by, uint8_t* to) noexcept {
  HWY_DYNAMIC_DISPATCH(flip)(from, n, by, to);
}
int32_t sum_row(const uint8_t* from, int64_t n) noexcept { return HWY_DYNAMIC_DISPATCH(sum)(from, n); }
void interleave_quad(const uint8_t* a, const uint8_t* b, const uint8_t* c, const uint8_t* d,
                     uint8_t* to) noexcept {
  HWY_DYNAMIC_DISPATCH(interleave)(a, b, c, d, to);
}
void widen_range(const float* x, int64_t n, float* low, float* high) noexcept {
  HWY_DYNAMIC_DISPATCH(widen)(x, n, low, high);
}
void quantise_row(const float* x, int64_t n, const Quantisation& q, uint8_t* to) noexcept {
  HWY_DYNAMIC_DISPATCH(quantise)(x, n, q.scale, q.zero, to);
}

Quantisation quantisation_of(float low, float high) noexcept {
  const float range = (high - low) / 255.0f, scale = range == 0 ? 1.0f : range, lowest = -low / scale;
  const float zero = std::nearbyint(lowest != lowest ? 0.0f : std::fmin(std::fmax(lowest, 0.0f), 255.0f));
  return {scale, static_cast<int32_t>(zero)};
}

}  // namespace tenon::cpu
#endif
