// One number to another element type, as Cast is defined: reals to whole numbers go towards zero and stop at
// the ends, NaN becomes 0; whole numbers to narrower ones wrap; bool is "not zero". One rounding at most.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tenon/sdk/dtype.hpp"

namespace tenon::cpu {

template <class T>
constexpr bool is_half = std::is_same_v<T, sdk::Float16> || std::is_same_v<T, sdk::BFloat16>;

/// A double on its way to 16 bits: the float between is rounded to odd, which keeps what the second rounding
/// must know.
inline float odd_float(double x) noexcept {
  float f = static_cast<float>(x);
  if (static_cast<double>(f) == x || std::isnan(x)) return f;
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  if (std::fabs(static_cast<double>(f)) > std::fabs(x)) --bits;
  bits |= 1u;
  std::memcpy(&f, &bits, 4);
  return f;
}

/// Without branches, so that a loop of it becomes vectors.
template <class T>
inline T saturated(double x) noexcept {
  constexpr double lowest = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double above = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2.0;
  const T inside = static_cast<T>(x > lowest && x < above ? x : 0.0);
  const T low = x <= lowest ? std::numeric_limits<T>::min() : inside;
  return x >= above ? std::numeric_limits<T>::max() : low;
}

/// C: float, double, int64_t or uint64_t.
template <class T, class C>
inline T to_number(C x) noexcept {
  if constexpr (std::is_same_v<T, bool>)
    return x != C{};
  else if constexpr (is_half<T> && std::is_same_v<C, double>)
    return T(odd_float(x));
  else if constexpr (is_half<T>)
    return T(static_cast<float>(x));
  else if constexpr (std::is_floating_point_v<C> && std::is_integral_v<T>)
    return saturated<T>(static_cast<double>(x));
  else
    return static_cast<T>(x);
}

}  // namespace tenon::cpu
