// Element types: names, C++ types, half-width floats, dispatch.
#pragma once
#include <complex>
#include <cstring>

#include "base.hpp"
#include "tenon/abi/types.h"

namespace tenon::sdk {

/// IEEE binary16, stored. Arithmetic goes through float.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float f) noexcept : bits(encode(f)) {}
  operator float() const noexcept { return decode(bits); }
  static float decode(uint16_t h) noexcept {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, exponent = (h >> 10) & 31u,
                   mantissa = h & 1023u;
    uint32_t u;
    if (exponent == 31) {
      u = sign | 0x7f800000u | (mantissa << 13);
    } else if (exponent) {
      u = sign | ((exponent + 112) << 23) | (mantissa << 13);
    } else {
      const float f = static_cast<float>(mantissa) * 5.9604644775390625e-8f;  // 2^-24
      std::memcpy(&u, &f, 4);
      u |= sign;
    }
    float f;
    std::memcpy(&f, &u, 4);
    return f;
  }
  static uint16_t encode(float f) noexcept {  // round to nearest, ties to even
    uint32_t u;
    std::memcpy(&u, &f, 4);
    const uint32_t sign = (u >> 16) & 0x8000u;
    u &= 0x7fffffffu;
    if (u >= 0x7f800000u) return static_cast<uint16_t>(sign | 0x7c00u | (u > 0x7f800000u ? 0x200u : 0u));
    if (u >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
    if (u < 0x38800000u) {  // subnormal or zero: add so that the float unit rounds at 2^-24
      float a;
      std::memcpy(&a, &u, 4);
      a += 0.5f;
      uint32_t r;
      std::memcpy(&r, &a, 4);
      return static_cast<uint16_t>(sign | (r - 0x3f000000u));
    }
    u += 0xfffu + ((u >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((u - 0x38000000u) >> 13));
  }
};

/// bfloat16, stored. Arithmetic goes through float.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float f) noexcept {
    uint32_t u;
    std::memcpy(&u, &f, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u)
      bits = static_cast<uint16_t>((u >> 16) | 0x40u);
    else
      bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  operator float() const noexcept {
    const uint32_t u = static_cast<uint32_t>(bits) << 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
  }
};

template <class T>
struct DtypeOf;
template <>
struct DtypeOf<float> {
  static constexpr tn_dtype value = TN_FLOAT32;
};
template <>
struct DtypeOf<double> {
  static constexpr tn_dtype value = TN_FLOAT64;
};
template <>
struct DtypeOf<Float16> {
  static constexpr tn_dtype value = TN_FLOAT16;
};
template <>
struct DtypeOf<BFloat16> {
  static constexpr tn_dtype value = TN_BFLOAT16;
};
template <>
struct DtypeOf<int8_t> {
  static constexpr tn_dtype value = TN_INT8;
};
template <>
struct DtypeOf<int16_t> {
  static constexpr tn_dtype value = TN_INT16;
};
template <>
struct DtypeOf<int32_t> {
  static constexpr tn_dtype value = TN_INT32;
};
template <>
struct DtypeOf<int64_t> {
  static constexpr tn_dtype value = TN_INT64;
};
template <>
struct DtypeOf<uint8_t> {
  static constexpr tn_dtype value = TN_UINT8;
};
template <>
struct DtypeOf<uint16_t> {
  static constexpr tn_dtype value = TN_UINT16;
};
template <>
struct DtypeOf<uint32_t> {
  static constexpr tn_dtype value = TN_UINT32;
};
template <>
struct DtypeOf<uint64_t> {
  static constexpr tn_dtype value = TN_UINT64;
};
template <>
struct DtypeOf<bool> {
  static constexpr tn_dtype value = TN_BOOL;
};
template <>
struct DtypeOf<std::complex<float>> {
  static constexpr tn_dtype value = TN_COMPLEX64;
};
template <>
struct DtypeOf<std::complex<double>> {
  static constexpr tn_dtype value = TN_COMPLEX128;
};
template <>
struct DtypeOf<tn_str> {
  static constexpr tn_dtype value = TN_STRING;
};
template <class T>
inline constexpr tn_dtype dtype_of = DtypeOf<T>::value;

/// Spelled as ONNX does in "tensor(float8e4m3fn)".
struct DtypeName {
  tn_dtype dtype;
  const char* name;
};
inline constexpr DtypeName dtype_names[] = {{TN_FLOAT32, "float32"},
                                            {TN_FLOAT64, "float64"},
                                            {TN_FLOAT16, "float16"},
                                            {TN_BFLOAT16, "bfloat16"},
                                            {TN_INT8, "int8"},
                                            {TN_INT16, "int16"},
                                            {TN_INT32, "int32"},
                                            {TN_INT64, "int64"},
                                            {TN_UINT8, "uint8"},
                                            {TN_UINT16, "uint16"},
                                            {TN_UINT32, "uint32"},
                                            {TN_UINT64, "uint64"},
                                            {TN_BOOL, "bool"},
                                            {TN_STRING, "string"},
                                            {TN_COMPLEX64, "complex64"},
                                            {TN_COMPLEX128, "complex128"},
                                            {TN_INT4, "int4"},
                                            {TN_UINT4, "uint4"},
                                            {TN_INT2, "int2"},
                                            {TN_UINT2, "uint2"},
                                            {TN_FLOAT8_E4M3FN, "float8e4m3fn"},
                                            {TN_FLOAT8_E4M3FNUZ, "float8e4m3fnuz"},
                                            {TN_FLOAT8_E5M2, "float8e5m2"},
                                            {TN_FLOAT8_E5M2FNUZ, "float8e5m2fnuz"},
                                            {TN_FLOAT8_E8M0, "float8e8m0"},
                                            {TN_FLOAT4_E2M1, "float4e2m1"}};
inline const char* dtype_name(tn_dtype d) noexcept {
  for (const auto& n : dtype_names)
    if (n.dtype == d) return n.name;
  return d == TN_DTYPE_NONE ? "unknown" : "unnamed type";
}
inline tn_dtype dtype_from_name(std::string_view name) noexcept {
  for (const auto& n : dtype_names)
    if (name == n.name) return n.dtype;
  return TN_DTYPE_NONE;
}
inline bool is_float(tn_dtype d) noexcept {
  const auto c = TN_DTYPE_CODE(d);
  return c == 2 || c == 4 || (c >= 7 && c <= 17);
}
inline bool is_integer(tn_dtype d) noexcept { return TN_DTYPE_CODE(d) <= 1 && d != TN_DTYPE_NONE; }
inline bool is_signed_integer(tn_dtype d) noexcept { return TN_DTYPE_CODE(d) == 0 && d != TN_DTYPE_NONE; }
/// Bytes of one element; 0 for packed types under 8 bits.
inline uint32_t dtype_bytes(tn_dtype d) noexcept { return TN_DTYPE_BITS(d) / 8; }

/// Calls f(T{}) with the C++ type of a number type of 8 bits or more; false when there is none.
template <class F>
bool visit_number(tn_dtype d, F&& f) {
  switch (d) {
    case TN_FLOAT32:
      f(float{});
      return true;
    case TN_FLOAT64:
      f(double{});
      return true;
    case TN_FLOAT16:
      f(Float16{});
      return true;
    case TN_BFLOAT16:
      f(BFloat16{});
      return true;
    case TN_INT8:
      f(int8_t{});
      return true;
    case TN_INT16:
      f(int16_t{});
      return true;
    case TN_INT32:
      f(int32_t{});
      return true;
    case TN_INT64:
      f(int64_t{});
      return true;
    case TN_UINT8:
      f(uint8_t{});
      return true;
    case TN_UINT16:
      f(uint16_t{});
      return true;
    case TN_UINT32:
      f(uint32_t{});
      return true;
    case TN_UINT64:
      f(uint64_t{});
      return true;
    case TN_BOOL:
      f(bool{});
      return true;
    default:
      return false;
  }
}

}  // namespace tenon::sdk
