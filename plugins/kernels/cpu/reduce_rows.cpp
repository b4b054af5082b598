#include "reduce_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce_rows.cpp"
#include <hwy/foreach_target.h>

#include "vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
constexpr int64_t most_lanes = partial_bytes / 4 / sizeof(float);

/// Calls f(first, map, join) with the number to begin with, what is joined of an element, and how.
template <class F>
HWY_INLINE void with_reduction(Reduction op, F&& f) {
  const auto same = [](auto v) { return v; };
  const auto square = [](auto v) { return hn::Mul(v, v); };
  const auto add = [](auto a, auto b) { return combine<Binary::Add>(a, b); };
  switch (op) {
    case Reduction::Sum:
    case Reduction::Mean:
      return f(0.0f, same, add);
    case Reduction::Max:
      return f(-HUGE_VALF, same, [](auto a, auto b) { return combine<Binary::Max>(a, b); });
    case Reduction::Min:
      return f(HUGE_VALF, same, [](auto a, auto b) { return combine<Binary::Min>(a, b); });
    case Reduction::L1:
      return f(
          0.0f, [](auto v) { return hn::Abs(v); }, add);
    case Reduction::L2:
    case Reduction::SumSquare:
      return f(0.0f, square, add);
    case Reduction::Prod:
      return f(1.0f, same, [](auto a, auto b) { return combine<Binary::Mul>(a, b); });
  }
}

HWY_INLINE Partials<hn::Vec<D>> load_partials(D d, const float* p) {
  return {hn::Load(d, p), hn::Load(d, p + most_lanes), hn::Load(d, p + 2 * most_lanes),
          hn::Load(d, p + 3 * most_lanes)};
}

void begin_row(Reduction op, float* partial) {
  const D d;
  with_reduction(op, [&](float first, auto, auto) {
    for (int i = 0; i < 4; ++i) hn::Store(hn::Set(d, first), d, partial + i * most_lanes);
  });
}

void more_of_row(Reduction op, float* partial, const float* x, int64_t n) {
  const D d;
  with_reduction(op, [&](float, auto map, auto join) {
    auto p = load_partials(d, partial);
    join_vectors(d, p, x, n, map, join);
    hn::Store(p.a, d, partial);
    hn::Store(p.b, d, partial + most_lanes);
    hn::Store(p.c, d, partial + 2 * most_lanes);
    hn::Store(p.e, d, partial + 3 * most_lanes);
  });
}

float end_of_row(Reduction op, float* partial, const float* x, int64_t n, int64_t total) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  float result = 0;
  with_reduction(op, [&](float, auto map, auto join) {
    auto p = load_partials(d, partial);
    int64_t i = join_vectors(d, p, x, n, map, join);
    HWY_ALIGN_MAX float buffer[most_lanes] = {};
    hn::Store(join(join(p.a, p.b), join(p.c, p.e)), d, buffer);
    for (int64_t half = lanes / 2; half > 0; half /= 2)
      for (int64_t k = 0; k < half; ++k)
        buffer[k] = hn::GetLane(join(hn::Set(d, buffer[k]), hn::Set(d, buffer[k + half])));
    auto r = hn::Set(d, buffer[0]);
    for (; i < n; ++i) r = join(r, map(hn::Set(d, x[i])));
    result = hn::GetLane(r);
  });
  if (op == Reduction::Mean) return result / static_cast<float>(total);
  return op == Reduction::L2 ? std::sqrt(result) : result;
}

float whole_row(Reduction op, const float* x, int64_t n) {
  HWY_ALIGN_MAX float partial[4 * most_lanes];
  begin_row(op, partial);
  return end_of_row(op, partial, x, n, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <limits>
#include <type_traits>

#include "numbers.hpp"

namespace tenon::cpu {

HWY_EXPORT(begin_row);
HWY_EXPORT(more_of_row);
HWY_EXPORT(end_of_row);
HWY_EXPORT(whole_row);

float reduce_row(Reduction op, const float* x, int64_t n) noexcept {
  return HWY_DYNAMIC_DISPATCH(whole_row)(op, x, n);
}

std::optional<Reduction> reduction_of(std::string_view op) {
  constexpr struct {
    const char* op;
    Reduction reduction;
  } entries[] = {{"ReduceSum", Reduction::Sum},   {"ReduceMean", Reduction::Mean},
                 {"ReduceMax", Reduction::Max},   {"ReduceMin", Reduction::Min},
                 {"ReduceL1", Reduction::L1},     {"ReduceL2", Reduction::L2},
                 {"ReduceProd", Reduction::Prod}, {"ReduceSumSquare", Reduction::SumSquare}};
  for (const auto& e : entries)
    if (op == e.op) return e.reduction;
  return std::nullopt;
}

namespace {

constexpr RowReduction of_floats = {
    [](Reduction op, void* partial) {
      HWY_DYNAMIC_DISPATCH(begin_row)
      (op, static_cast<float*>(partial));
    },
    [](Reduction op, void* partial, const void* x, int64_t n) {
      HWY_DYNAMIC_DISPATCH(more_of_row)(op, static_cast<float*>(partial), static_cast<const float*>(x), n);
    },
    [](Reduction op, void* partial, const void* x, int64_t n, int64_t total, void* y) {
      *static_cast<float*>(y) = HWY_DYNAMIC_DISPATCH(end_of_row)(op, static_cast<float*>(partial),
                                                                 static_cast<const float*>(x), n, total);
    }};

template <class T>
struct InOrder {
  using C = std::conditional_t<!std::is_integral_v<T>, double,
                               std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  static constexpr bool real = std::is_same_v<C, double>;
  static C plus(C a, C b) noexcept {
    if constexpr (real)
      return a + b;
    else
      return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  static C times(C a, C b) noexcept {
    if constexpr (real)
      return a * b;
    else
      return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  static void begin(Reduction op, void* partial) {
    C first = op == Reduction::Prod ? C{1} : C{0};
    if constexpr (real) {
      if (op == Reduction::Max) first = -HUGE_VAL;
      if (op == Reduction::Min) first = HUGE_VAL;
    } else {
      if (op == Reduction::Max) first = static_cast<C>(std::numeric_limits<T>::lowest());
      if (op == Reduction::Min) first = static_cast<C>(std::numeric_limits<T>::max());
    }
    *static_cast<C*>(partial) = first;
  }
  template <class F>
  static void fold(void* partial, const void* x, int64_t n, F f) {
    C acc = *static_cast<C*>(partial);
    for (int64_t i = 0; i < n; ++i) acc = f(acc, static_cast<C>(static_cast<const T*>(x)[i]));
    *static_cast<C*>(partial) = acc;
  }
  static void more(Reduction op, void* partial, const void* x, int64_t n) {
    switch (op) {
      case Reduction::Sum:
      case Reduction::Mean:
        return fold(partial, x, n, plus);
      case Reduction::L1:
        return fold(partial, x, n, [](C a, C v) {
          if constexpr (!std::is_same_v<C, uint64_t>) v = v < 0 ? times(v, static_cast<C>(-1)) : v;
          return plus(a, v);
        });
      case Reduction::L2:
      case Reduction::SumSquare:
        return fold(partial, x, n, [](C a, C v) { return plus(a, times(v, v)); });
      case Reduction::Prod:
        return fold(partial, x, n, times);
      case Reduction::Max:
        return fold(partial, x, n, [](C a, C v) { return a >= v || a != a ? a : v; });
      case Reduction::Min:
        return fold(partial, x, n, [](C a, C v) { return a <= v || a != a ? a : v; });
    }
  }
  static void end(Reduction op, void* partial, const void* x, int64_t n, int64_t total, void* y) {
    more(op, partial, x, n);
    C r = *static_cast<C*>(partial);
    if (op == Reduction::Mean) r /= static_cast<C>(total);
    if constexpr (real)
      if (op == Reduction::L2) r = std::sqrt(r);
    *static_cast<T*>(y) = to_number<T>(r);
  }
  static constexpr RowReduction table = {begin, more, end};
};

}  // namespace

const RowReduction* row_reduction(tn_dtype dtype, Reduction op) {
  switch (dtype) {
    case TN_FLOAT32:
      return &of_floats;
    case TN_FLOAT64:
      return &InOrder<double>::table;
    case TN_FLOAT16:
      return &InOrder<sdk::Float16>::table;
    case TN_BFLOAT16:
      return &InOrder<sdk::BFloat16>::table;
    case TN_INT32:
      return op == Reduction::L2 ? nullptr : &InOrder<int32_t>::table;
    case TN_INT64:
      return op == Reduction::L2 ? nullptr : &InOrder<int64_t>::table;
    default:
      return nullptr;
  }
}

}  // namespace tenon::cpu
#endif
