// Elements in three domains of computation: real numbers as double, signed integers as int64, unsigned ones
// (bool too) as uint64. Kernels load blocks of elements into a domain, compute there, and store, so that each
// formula is written once and rounded once.
#pragma once
#include <cmath>

#include "tenon/sdk/plugin.hpp"

namespace tenon::reference {
using namespace tenon::sdk;

enum class Domain { real, signed_integer, unsigned_integer };
inline Domain domain_of(tn_dtype dtype) noexcept {
  if (is_float(dtype)) return Domain::real;
  return is_signed_integer(dtype) ? Domain::signed_integer : Domain::unsigned_integer;
}

/// Elements [first, first + stride * count) with stride in elements; stride 0 repeats one element.
template <class C>
using Load = void (*)(const void* source, int64_t first, int64_t stride, int64_t count, C* to);
template <class C>
using Store = void (*)(const C* from, int64_t count, void* target, int64_t first);

/// C is double, int64_t or uint64_t. Every number type loads as double; integers load as int64_t and
/// uint64_t, wrapped. Failure for types that C does not serve.
template <class C>
Load<C> loader(tn_dtype dtype);
/// Stores with one rounding: double to integers truncates towards zero and saturates, NaN becomes 0; integers
/// to narrower ones, and anything to integers below 8 bits, wrap; bool is "not zero". 8-bit floats saturate,
/// or overflow to infinity/NaN where `saturate` is false.
template <class C>
Store<C> storer(tn_dtype dtype, bool saturate = true);

/// One rounding from double to a 16-bit float: the float between is rounded to odd, which keeps what the
/// second rounding must know.
inline float round_to_odd(double x) noexcept {
  float f = static_cast<float>(x);
  if (static_cast<double>(f) == x || std::isnan(x)) return f;
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  if (std::fabs(static_cast<double>(f)) > std::fabs(x)) --bits;
  bits |= 1u;
  std::memcpy(&f, &bits, 4);
  return f;
}

/// double to integer, defined for every input.
template <class T>
inline T saturate_to(double x) noexcept {
  if (!(x == x)) return 0;
  constexpr double lowest = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double above = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2.0;
  if (x <= lowest) return std::numeric_limits<T>::min();
  if (x >= above) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}

/// Calls f(C{}) with the domain's type.
template <class F>
void visit_domain(tn_dtype dtype, F&& f) {
  switch (domain_of(dtype)) {
    case Domain::real:
      f(double{});
      break;
    case Domain::signed_integer:
      f(int64_t{});
      break;
    case Domain::unsigned_integer:
      f(uint64_t{});
      break;
  }
}

/// Number i of an integer tensor in memory.
inline int64_t integer_at(const void* data, tn_dtype dtype, int64_t i) noexcept {
  switch (dtype) {
    case TN_INT32:
      return static_cast<const int32_t*>(data)[i];
    case TN_INT64:
      return static_cast<const int64_t*>(data)[i];
    default: {
      int64_t r = 0;
      visit_number(dtype,
                   [&](auto x) { r = static_cast<int64_t>(static_cast<const decltype(x)*>(data)[i]); });
      return r;
    }
  }
}
inline double real_at(const void* data, tn_dtype dtype, int64_t i) noexcept {
  double r = 0;
  visit_number(dtype, [&](auto x) { r = static_cast<double>(static_cast<const decltype(x)*>(data)[i]); });
  return r;
}

}  // namespace tenon::reference
