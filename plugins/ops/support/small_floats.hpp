// Floats of 8 and 4 bits, and integers packed below 8 bits. Formats: OCP 8-bit floating point specification,
// OCP microscaling formats (E8M0, E2M1), and the FNUZ variants (no infinity, no negative zero, one NaN 0x80).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tenon/abi/types.h"

namespace tenon::reference {

template <int Bits>
inline int unpack(const uint8_t* data, int64_t i) noexcept {
  constexpr int per_byte = 8 / Bits;
  return (data[i / per_byte] >> (i % per_byte * Bits)) & ((1 << Bits) - 1);
}
/// Writes one element; the first of a byte clears the byte, so elements are written in ascending order and
/// what is left of the last byte is zero. Tiles must be whole bytes.
template <int Bits>
inline void pack(uint8_t* data, int64_t i, int value) noexcept {
  constexpr int per_byte = 8 / Bits, mask = (1 << Bits) - 1;
  const int shift = static_cast<int>(i % per_byte) * Bits;
  const int before = shift ? data[i / per_byte] : 0;
  data[i / per_byte] = static_cast<uint8_t>(before | ((value & mask) << shift));
}

struct SmallFormat {
  int mantissa_bits, bias;
  double largest;
  uint8_t nan, infinity;  // infinity == nan: the format has none
  bool negative_zero;
};
template <tn_dtype D>
constexpr SmallFormat small_format() noexcept {
  switch (D) {
    case TN_FLOAT8_E4M3FN:
      return {3, 7, 448.0, 0x7f, 0x7f, true};
    case TN_FLOAT8_E4M3FNUZ:
      return {3, 8, 240.0, 0x80, 0x80, false};
    case TN_FLOAT8_E5M2:
      return {2, 15, 57344.0, 0x7e, 0x7c, true};
    default:
      return {2, 16, 57344.0, 0x80, 0x80, false};
  }
}

template <tn_dtype D>
inline double small_decode(uint8_t bits) noexcept {
  if constexpr (D == TN_FLOAT8_E8M0) {
    return bits == 0xff ? std::numeric_limits<double>::quiet_NaN()
                        : std::ldexp(1.0, static_cast<int>(bits) - 127);
  } else {
    constexpr SmallFormat f = small_format<D>();
    const bool negative = bits & 0x80;
    if constexpr (f.nan == 0x80) {
      if (bits == 0x80) return std::numeric_limits<double>::quiet_NaN();
    } else if constexpr (f.infinity == f.nan) {
      if ((bits & 0x7f) == 0x7f) return std::numeric_limits<double>::quiet_NaN();
    } else {
      if ((bits & 0x7f) == f.infinity) return negative ? -HUGE_VAL : HUGE_VAL;
      if ((bits & 0x7f) > f.infinity) return std::numeric_limits<double>::quiet_NaN();
    }
    const int exponent = (bits & 0x7f) >> f.mantissa_bits, mantissa = bits & ((1 << f.mantissa_bits) - 1);
    const double value =
        exponent ? std::ldexp((1 << f.mantissa_bits) + mantissa, exponent - f.bias - f.mantissa_bits)
                 : std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
    return negative ? -value : value;
  }
}

template <tn_dtype D>
inline uint8_t small_encode(double x, bool saturate) noexcept {
  if constexpr (D == TN_FLOAT8_E8M0) {  // powers of two, rounded up
    if (!(x == x)) return 0xff;
    if (x <= 0) return 0;
    if (std::isinf(x)) return saturate ? 0xfe : 0xff;
    int exponent = 0;
    const double mantissa = std::frexp(x, &exponent);  // in [0.5, 1)
    const int biased = exponent - 1 + 127 + (mantissa > 0.5 ? 1 : 0);
    return biased < 0 ? 0 : biased > 254 ? (saturate ? 0xfe : 0xff) : static_cast<uint8_t>(biased);
  } else {
    constexpr SmallFormat f = small_format<D>();
    if (!(x == x)) return static_cast<uint8_t>(f.nan == 0x80 ? 0x80 : f.nan | (std::signbit(x) ? 0x80 : 0));
    const uint8_t sign = std::signbit(x) ? 0x80 : 0;
    double magnitude = std::fabs(x);
    int exponent = 0;
    if (magnitude > 0 && !std::isinf(magnitude)) {
      std::frexp(magnitude, &exponent);
      const int unit =
          std::max(exponent - 1, 1 - f.bias) - f.mantissa_bits;  // weight of the last mantissa bit
      magnitude = std::ldexp(std::nearbyint(std::ldexp(magnitude, -unit)), unit);
    }
    if (magnitude > f.largest) {
      if (saturate)
        magnitude = f.largest;
      else if (f.nan == 0x80)
        return 0x80;
      else
        return static_cast<uint8_t>(sign | f.infinity);
    }
    if (magnitude == 0) return f.negative_zero ? sign : 0;
    std::frexp(magnitude, &exponent);
    int stored = exponent - 1 + f.bias;
    if (stored < 1) {
      const auto mantissa = static_cast<int>(std::ldexp(magnitude, f.bias - 1 + f.mantissa_bits));
      return static_cast<uint8_t>(sign | mantissa);
    }
    const auto mantissa =
        static_cast<int>(std::ldexp(magnitude, f.mantissa_bits - (exponent - 1))) - (1 << f.mantissa_bits);
    return static_cast<uint8_t>(sign | (stored << f.mantissa_bits) | mantissa);
  }
}

inline constexpr double float4_values[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
inline double float4_decode(uint8_t bits) noexcept {
  return bits & 8 ? -float4_values[bits & 7] : float4_values[bits & 7];
}
/// Nearest, ties to even codes, saturating; NaN, which the format lacks, becomes -0.
inline int float4_encode(double x) noexcept {
  if (!(x == x)) return 8;
  const double magnitude = std::fabs(x);
  int code = 7;
  for (code = 0; code < 7; ++code) {
    const double middle = (float4_values[code] + float4_values[code + 1]) / 2;
    if (magnitude < middle || (magnitude == middle && code % 2 == 0)) break;
  }
  return code | (std::signbit(x) ? 8 : 0);
}

}  // namespace tenon::reference
