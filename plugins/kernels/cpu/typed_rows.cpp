#include "typed_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "typed_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numbers.hpp"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu {
namespace HWY_NAMESPACE {

using sdk::BFloat16;
using sdk::Float16;

/// What elements of T are computed in: one rounding after it is as good as none before (a sum, product or
/// quotient of two float16 is right to the last bit when it goes through float, of two bfloat16 through
/// double).
template <class T>
using Wide =
    std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, float>, float,
                       std::conditional_t<std::is_same_v<T, BFloat16> || std::is_same_v<T, double>, double,
                                          std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>>;

template <class C>
constexpr bool real = std::is_floating_point_v<C>;
template <class C>
C wrap(uint64_t x) noexcept {
  return static_cast<C>(x);
}
template <class C>
uint64_t u(C x) noexcept {
  return static_cast<uint64_t>(x);
}

#define TENON_FUNCTION(name, formula)                    \
  struct name {                                          \
    template <class C>                                   \
    static auto at(C a, [[maybe_unused]] C b) noexcept { \
      return formula;                                    \
    }                                                    \
  };
TENON_FUNCTION(Equals, a == b)
TENON_FUNCTION(IsLess, a < b)
TENON_FUNCTION(IsLessOrEqual, a <= b)
TENON_FUNCTION(IsGreater, a > b)
TENON_FUNCTION(IsGreaterOrEqual, a >= b)
TENON_FUNCTION(And, static_cast<C>(a& b))
TENON_FUNCTION(Or, static_cast<C>(a | b))
TENON_FUNCTION(Xor, static_cast<C>(a ^ b))
TENON_FUNCTION(Largest, a >= b || a != a ? a : b)
TENON_FUNCTION(Smallest, a <= b || a != a ? a : b)
TENON_FUNCTION(Power, std::pow(static_cast<double>(a), static_cast<double>(b)))
TENON_FUNCTION(BitwiseNot, static_cast<C>(~a))
TENON_FUNCTION(Not, static_cast<C>(a ? 0 : 1))
TENON_FUNCTION(Signum, static_cast<C>(a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a))
TENON_FUNCTION(Rectified, a < 0 ? C{0} : a)
TENON_FUNCTION(Root, std::sqrt(a))
TENON_FUNCTION(Inverse, C{1} / a)
TENON_FUNCTION(Lower, std::floor(a))
TENON_FUNCTION(Upper, std::ceil(a))
TENON_FUNCTION(Nearest, std::nearbyint(a))
TENON_FUNCTION(Sine, std::sin(static_cast<double>(a)))
TENON_FUNCTION(Cosine, std::cos(static_cast<double>(a)))
TENON_FUNCTION(IsNan, a != a)
TENON_FUNCTION(IsInfinite, std::isinf(a))
TENON_FUNCTION(IsPlusInfinity, std::isinf(a) && a > 0)
TENON_FUNCTION(IsMinusInfinity, std::isinf(a) && a < 0)
#undef TENON_FUNCTION

// Whole numbers wrap; what is divided by zero is 0.
#define TENON_FUNCTION(name, of_reals, of_integers)   \
  struct name {                                       \
    template <class C>                                \
    static C at(C a, [[maybe_unused]] C b) noexcept { \
      if constexpr (real<C>)                          \
        return of_reals;                              \
      else                                            \
        return of_integers;                           \
    }                                                 \
  };
TENON_FUNCTION(Sum, a + b, wrap<C>(u(a) + u(b)))
TENON_FUNCTION(Difference, a - b, wrap<C>(u(a) - u(b)))
TENON_FUNCTION(Product, a* b, wrap<C>(u(a) * u(b)))
TENON_FUNCTION(Quotient, a / b,
               b == 0                                           ? C{0}
               : std::is_signed_v<C> && b == static_cast<C>(-1) ? wrap<C>(0 - u(a))
                                                                : static_cast<C>(a / b))
TENON_FUNCTION(Negative, -a, wrap<C>(0 - u(a)))
TENON_FUNCTION(Absolute, std::fabs(a), a < 0 ? wrap<C>(0 - u(a)) : a)
TENON_FUNCTION(Sloped, a < 0 ? a * b : a, a < 0 ? wrap<C>(u(a) * u(b)) : a)
#undef TENON_FUNCTION
/// The remainder has the divisor's sign, or with fmod the dividend's.
template <bool Dividend>
struct Remainder {
  template <class C>
  static C at(C a, C b) noexcept {
    if (b == 0 || (std::is_signed_v<C> && b == static_cast<C>(-1))) return 0;
    const C r = a % b;
    return !Dividend && r != 0 && (r < 0) != (b < 0) ? static_cast<C>(r + b) : r;
  }
};

template <class F, class To, class T>
void of_two(const Row* in, void* to, int64_t n) {
  using C = Wide<T>;
  const auto *a = static_cast<const T*>(in[0].data), *b = static_cast<const T*>(in[1].data);
  auto* y = static_cast<To*>(to);
  const auto f = [](C p, C q) { return to_number<To>(F::at(p, q)); };
  const C fa = static_cast<C>(a[0]), fb = static_cast<C>(b[0]);
  if (in[0].step && in[1].step)
    for (int64_t i = 0; i < n; ++i) y[i] = f(static_cast<C>(a[i]), static_cast<C>(b[i]));
  else if (in[0].step)
    for (int64_t i = 0; i < n; ++i) y[i] = f(static_cast<C>(a[i]), fb);
  else if (in[1].step)
    for (int64_t i = 0; i < n; ++i) y[i] = f(fa, static_cast<C>(b[i]));
  else
    std::fill_n(y, n, f(fa, fb));
}

template <class F, class To, class T>
void of_one(const Row* in, void* to, int64_t n) {
  using C = Wide<T>;
  const auto* a = static_cast<const T*>(in[0].data);
  auto* y = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = to_number<To>(F::at(static_cast<C>(a[i]), C{}));
}

template <class To, class T>
void cast(const Row* in, void* to, int64_t n) {
  using C = Wide<T>;
  const auto* a = static_cast<const T*>(in[0].data);
  auto* y = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = to_number<To>(static_cast<C>(a[i]));
}

template <class T>
void choose(const Row* in, void* to, int64_t n) {
  const auto* c = static_cast<const uint8_t*>(in[0].data);
  const auto *a = static_cast<const T*>(in[1].data), *b = static_cast<const T*>(in[2].data);
  auto* y = static_cast<T*>(to);
  const T fa = a[0], fb = b[0];
  if (!in[0].step) {
    const Row& chosen = in[*c ? 1 : 2];
    const auto* x = static_cast<const T*>(chosen.data);
    if (!chosen.step)
      std::fill_n(y, n, *x);
    else if (x != y)
      std::memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
  } else if (in[1].step && in[2].step) {
    for (int64_t i = 0; i < n; ++i) y[i] = c[i] ? a[i] : b[i];
  } else if (in[1].step) {
    for (int64_t i = 0; i < n; ++i) y[i] = c[i] ? a[i] : fb;
  } else if (in[2].step) {
    for (int64_t i = 0; i < n; ++i) y[i] = c[i] ? fa : b[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = c[i] ? fa : fb;
  }
}

template <class T>
void clip(const Row* in, void* to, int64_t n) {
  using C = Wide<T>;
  const auto *a = static_cast<const T*>(in[0].data), *low = static_cast<const T*>(in[1].data),
             *high = static_cast<const T*>(in[2].data);
  auto* y = static_cast<T*>(to);
  const C lo = low ? static_cast<C>(*low) : C{}, hi = high ? static_cast<C>(*high) : C{};
  for (int64_t i = 0; i < n; ++i) {
    C x = static_cast<C>(a[i]);
    if (low) x = x < lo ? lo : x;
    if (high) x = x > hi ? hi : x;
    y[i] = to_number<T>(x);
  }
}

template <class F>
bool visit_row_type(tn_dtype d, F&& f) {
  switch (d) {
    case TN_INT16:
    case TN_UINT16:
    case TN_UINT32:
    case TN_UINT64:
      return false;  // rare, and each type is much code
    default:
      return sdk::visit_number(d, [&](auto zero) {
        using T = decltype(zero);
        constexpr bool rare = std::is_integral_v<T> && sizeof(T) > 1 && !std::is_signed_v<T>;
        if constexpr (!rare && !std::is_same_v<T, int16_t>) f(zero);
      });
  }
}

template <class T>
RowFunction compare(std::string_view op) {
  if (op == "Equal") return of_two<Equals, bool, T>;
  if constexpr (std::is_same_v<T, bool>) return nullptr;
  if (op == "Less") return of_two<IsLess, bool, T>;
  if (op == "LessOrEqual") return of_two<IsLessOrEqual, bool, T>;
  if (op == "Greater") return of_two<IsGreater, bool, T>;
  if (op == "GreaterOrEqual") return of_two<IsGreaterOrEqual, bool, T>;
  return nullptr;
}

RowFunction logic(std::string_view op) {
  if (op == "And") return of_two<And, bool, bool>;
  if (op == "Or") return of_two<Or, bool, bool>;
  if (op == "Xor") return of_two<Xor, bool, bool>;
  return nullptr;
}

/// Of float32 only what no faster kernel has.
template <class T>
RowFunction arithmetic(std::string_view op, const sdk::Attributes& attrs) {
  if constexpr (std::is_same_v<T, float>) {
    if (op == "Pow") return of_two<Power, T, T>;
    if (op == "PRelu") return of_two<Sloped, T, T>;
    return nullptr;
  } else {
    if (op == "Add" || op == "Sum") return of_two<Sum, T, T>;
    if (op == "Sub") return of_two<Difference, T, T>;
    if (op == "Mul") return of_two<Product, T, T>;
    if (op == "Div") return of_two<Quotient, T, T>;
    if (op == "Max") return of_two<Largest, T, T>;
    if (op == "Min") return of_two<Smallest, T, T>;
    if (op == "PRelu") return of_two<Sloped, T, T>;
    if constexpr (std::is_integral_v<T>) {
      if (op == "Mod")
        return attrs.get_int("fmod", 0) ? of_two<Remainder<true>, T, T> : of_two<Remainder<false>, T, T>;
      if (op == "BitwiseAnd") return of_two<And, T, T>;
      if (op == "BitwiseOr") return of_two<Or, T, T>;
      if (op == "BitwiseXor") return of_two<Xor, T, T>;
    }
    return nullptr;
  }
}

template <class T>
RowFunction function(std::string_view op) {
  if (op == "Sign") return of_one<Signum, T, T>;
  if constexpr (std::is_same_v<T, float>) {
    if (op == "Sin") return of_one<Sine, T, T>;
    if (op == "Cos") return of_one<Cosine, T, T>;
    return nullptr;
  } else {
    if (op == "Neg") return of_one<Negative, T, T>;
    if (op == "Abs") return of_one<Absolute, T, T>;
    if (op == "Relu") return of_one<Rectified, T, T>;
    if constexpr (std::is_integral_v<T>) {
      if (op == "BitwiseNot") return of_one<BitwiseNot, T, T>;
    } else {
      if (op == "Sqrt") return of_one<Root, T, T>;
      if (op == "Reciprocal") return of_one<Inverse, T, T>;
      if (op == "Floor") return of_one<Lower, T, T>;
      if (op == "Ceil") return of_one<Upper, T, T>;
      if (op == "Round") return of_one<Nearest, T, T>;
    }
    return nullptr;
  }
}

template <class T>
RowFunction test(std::string_view op, const sdk::Attributes& attrs) {
  if (op == "IsNaN") return of_one<IsNan, bool, T>;
  if (op != "IsInf") return nullptr;
  const bool plus = attrs.get_int("detect_positive", 1) != 0,
             minus = attrs.get_int("detect_negative", 1) != 0;
  if (plus && minus) return of_one<IsInfinite, bool, T>;
  return plus ? of_one<IsPlusInfinity, bool, T> : minus ? of_one<IsMinusInfinity, bool, T> : nullptr;
}

RowFunction choice(tn_dtype dtype) {
  switch (sdk::dtype_bytes(dtype)) {
    case 1:
      return choose<uint8_t>;
    case 2:
      return choose<uint16_t>;
    case 4:
      return choose<uint32_t>;
    case 8:
      return choose<uint64_t>;
    default:
      return nullptr;
  }
}

RowFunction find_row(std::string_view op, const sdk::Attributes& attrs, const tn_dtype* in, size_t count,
                     tn_dtype out) {
  RowFunction r = nullptr;
  if (op == "Cast" && count == 1) {
    visit_row_type(in[0], [&](auto from) {
      visit_row_type(out, [&](auto to) { r = cast<decltype(to), decltype(from)>; });
    });
    return r;
  }
  if (op == "Where" && count == 3) return choice(out);
  if (op == "Not" && count == 1) return of_one<Not, bool, bool>;
  const tn_dtype type = in[0];
  if (op == "Clip" && count == 3) {
    if (type != TN_FLOAT32 && type != TN_BOOL) visit_row_type(type, [&](auto x) { r = clip<decltype(x)>; });
    return r;
  }
  if (count == 2 && in[1] != type) return nullptr;
  if (count == 2 && out == TN_BOOL && type == TN_BOOL && (r = logic(op))) return r;
  visit_row_type(type, [&](auto x) {
    using T = decltype(x);
    if (count == 2 && out == TN_BOOL) r = compare<T>(op);
    if constexpr (!std::is_same_v<T, bool>) {
      if (count == 2 && out == type) r = arithmetic<T>(op, attrs);
      if (count == 1 && out == type) r = function<T>(op);
      if constexpr (!std::is_integral_v<T>)
        if (count == 1 && out == TN_BOOL) r = test<T>(op, attrs);
    }
  });
  return r;
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {
HWY_EXPORT(find_row);
RowFunction typed_row(std::string_view op, const sdk::Attributes& attrs, sdk::Span<const tn_dtype> operands,
                      tn_dtype result) noexcept {
  return HWY_DYNAMIC_DISPATCH(find_row)(op, attrs, operands.data(), operands.size(), result);
}
}  // namespace tenon::cpu
#endif
