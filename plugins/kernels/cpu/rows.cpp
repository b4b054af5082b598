#include "rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rows.cpp"
#include <hwy/foreach_target.h>

#include "vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;

void softmax_row(const float* x, float* y, int64_t n, bool log) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto m = hn::Set(d, -HUGE_VALF);
  float top = -HUGE_VALF;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) m = hn::Max(m, hn::LoadU(d, x + i));
  top = hn::GetLane(hn::MaxOfLanes(d, m));
  for (; i < n; ++i) top = x[i] > top ? x[i] : top;
  const auto shift = hn::Set(d, top);
  auto total = hn::Zero(d);
  float rest = 0;
  for_vectors(d, n, [&](int64_t at, int64_t count) {
    const auto e = exponential(d, hn::Sub(load_n(d, x + at, count), shift));
    if (count == lanes) {
      total = hn::Add(total, e);
      if (!log) hn::StoreU(e, d, y + at);
    } else {
      HWY_ALIGN_MAX float buffer[64] = {};
      hn::Store(e, d, buffer);
      for (int64_t j = 0; j < count; ++j) {
        rest += buffer[j];
        if (!log) y[at + j] = buffer[j];
      }
    }
  });
  const float sum = hn::GetLane(hn::SumOfLanes(d, total)) + rest;
  if (log) {
    const auto scale = hn::Set(d, std::log(sum));  // taken off last: beside a large top it would vanish
    for_vectors(d, n, [&](int64_t at, int64_t count) {
      store_n(d, hn::Sub(hn::Sub(load_n(d, x + at, count), shift), scale), y + at, count);
    });
  } else {
    const auto scale = hn::Set(d, 1.0f / sum);
    for_vectors(d, n, [&](int64_t at, int64_t count) {
      store_n(d, hn::Mul(load_n(d, y + at, count), scale), y + at, count);
    });
  }
}

template <class F>
HWY_INLINE float sum_of(const float* x, int64_t n, F&& f) {
  const D d;
  Partials<hn::Vec<D>> p{hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = join_vectors(d, p, x, n, f, [](auto a, auto b) { return hn::Add(a, b); });
  float r = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(p.a, p.b), hn::Add(p.c, p.e))));
  for (; i < n; ++i) r += hn::GetLane(f(hn::Set(d, x[i])));
  return r;
}

void layer_norm_row(const float* x, const float* scale, const float* bias, float* y, int64_t n, float epsilon,
                    float* mean_out, float* inv_std_out) {
  const D d;
  const float mean = sum_of(x, n, [](auto v) { return v; }) / static_cast<float>(n);
  const auto vm = hn::Set(d, mean);
  const float variance = sum_of(x, n,
                                [&](auto v) {
                                  const auto c = hn::Sub(v, vm);
                                  return hn::Mul(c, c);
                                }) /
                         static_cast<float>(n);
  const float inv_std = 1.0f / std::sqrt(variance + epsilon);
  const auto vs = hn::Set(d, inv_std);
  for_vectors(d, n, [&](int64_t i, int64_t c) {
    auto v = hn::Mul(hn::Mul(hn::Sub(load_n(d, x + i, c), vm), vs), load_n(d, scale + i, c));
    if (bias) v = hn::Add(v, load_n(d, bias + i, c));
    store_n(d, v, y + i, c);
  });
  if (mean_out) *mean_out = mean;
  if (inv_std_out) *inv_std_out = inv_std;
}

void rms_norm_row(const float* x, const float* scale, float* y, int64_t n, float epsilon) {
  const D d;
  const float square = sum_of(x, n, [](auto v) { return hn::Mul(v, v); }) / static_cast<float>(n);
  const auto vs = hn::Set(d, 1.0f / std::sqrt(square + epsilon));
  for_vectors(d, n, [&](int64_t i, int64_t c) {
    store_n(d, hn::Mul(hn::Mul(load_n(d, x + i, c), vs), load_n(d, scale + i, c)), y + i, c);
  });
}

void scale_row(float* s, float scale, const float* mask, int64_t n) {
  const D d;
  const auto k = hn::Set(d, scale);
  for_vectors(d, n, [&](int64_t i, int64_t c) {
    auto v = hn::Mul(load_n(d, s + i, c), k);
    if (mask) v = hn::Add(v, load_n(d, mask + i, c));
    store_n(d, v, s + i, c);
  });
}

void multiply_add_row(float* acc, float w, const float* x, int64_t n) {
  const D d;
  const auto k = hn::Set(d, w);
  for_vectors(d, n, [&](int64_t i, int64_t c) {
    store_n(d, hn::MulAdd(load_n(d, x + i, c), k, load_n(d, acc + i, c)), acc + i, c);
  });
}

void max_row(float* y, const float* x, int64_t n) {
  const D d;
  for_vectors(d, n, [&](int64_t i, int64_t c) {
    const auto a = load_n(d, y + i, c), b = load_n(d, x + i, c);
    store_n(d, hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a), y + i, c);
  });
}

void add_row(float* y, const float* x, int64_t n) {
  const D d;
  for_vectors(d, n, [&](int64_t i, int64_t c) {
    store_n(d, hn::Add(load_n(d, y + i, c), load_n(d, x + i, c)), y + i, c);
  });
}

template <Binary Op>
void binary_rows(const float* a, int a_step, const float* b, int b_step, float* y, int64_t n) {
  const D d;
  const auto fa = hn::Set(d, a[0]), fb = hn::Set(d, b[0]);
  if (a_step && b_step)
    for_vectors(d, n, [&](int64_t i, int64_t c) {
      store_n(d, combine<Op>(load_n(d, a + i, c), load_n(d, b + i, c)), y + i, c);
    });
  else if (a_step)
    for_vectors(d, n,
                [&](int64_t i, int64_t c) { store_n(d, combine<Op>(load_n(d, a + i, c), fb), y + i, c); });
  else if (b_step)
    for_vectors(d, n,
                [&](int64_t i, int64_t c) { store_n(d, combine<Op>(fa, load_n(d, b + i, c)), y + i, c); });
  else
    for_vectors(d, n, [&](int64_t i, int64_t c) { store_n(d, combine<Op>(fa, fb), y + i, c); });
}

void binary_row(Binary op, const float* a, int a_step, const float* b, int b_step, float* y, int64_t n) {
  switch (op) {
    case Binary::Add:
      return binary_rows<Binary::Add>(a, a_step, b, b_step, y, n);
    case Binary::Sub:
      return binary_rows<Binary::Sub>(a, a_step, b, b_step, y, n);
    case Binary::Mul:
      return binary_rows<Binary::Mul>(a, a_step, b, b_step, y, n);
    case Binary::Div:
      return binary_rows<Binary::Div>(a, a_step, b, b_step, y, n);
    case Binary::Max:
      return binary_rows<Binary::Max>(a, a_step, b, b_step, y, n);
    case Binary::Min:
      return binary_rows<Binary::Min>(a, a_step, b, b_step, y, n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {
HWY_EXPORT(softmax_row);
HWY_EXPORT(layer_norm_row);
HWY_EXPORT(rms_norm_row);
HWY_EXPORT(scale_row);
HWY_EXPORT(multiply_add_row);
HWY_EXPORT(max_row);
HWY_EXPORT(add_row);
HWY_EXPORT(binary_row);
void softmax_row(const float* x, float* y, int64_t n, bool log) noexcept {
  HWY_DYNAMIC_DISPATCH(softmax_row)(x, y, n, log);
}
void layer_norm_row(const float* x, const float* scale, const float* bias, float* y, int64_t n, float epsilon,
                    float* mean_out, float* inv_std_out) noexcept {
  HWY_DYNAMIC_DISPATCH(layer_norm_row)(x, scale, bias, y, n, epsilon, mean_out, inv_std_out);
}
void rms_norm_row(const float* x, const float* scale, float* y, int64_t n, float epsilon) noexcept {
  HWY_DYNAMIC_DISPATCH(rms_norm_row)(x, scale, y, n, epsilon);
}
void scale_row(float* s, float scale, const float* mask, int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(scale_row)(s, scale, mask, n);
}
void multiply_add_row(float* acc, float w, const float* x, int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(multiply_add_row)(acc, w, x, n);
}
void max_row(float* y, const float* x, int64_t n) noexcept { HWY_DYNAMIC_DISPATCH(max_row)(y, x, n); }
void add_row(float* y, const float* x, int64_t n) noexcept { HWY_DYNAMIC_DISPATCH(add_row)(y, x, n); }
void binary_row(Binary op, const float* a, int a_step, const float* b, int b_step, float* y,
                int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(binary_row)(op, a, a_step, b, b_step, y, n);
}
}  // namespace tenon::cpu
#endif
