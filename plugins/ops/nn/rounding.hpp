// Rounding between the steps of a formula.
//
// The standard defines Softmax, Attention and the like by simpler operators, each of which rounds to the
// element type. In 16 bits that shows, so the steps round there; wider types are computed in float64 and
// rounded once.
#pragma once
#include "support/kernel.hpp"

namespace tenon::reference {

/// Rounds `count` numbers in place.
using Round = void (*)(double* x, int64_t count);

/// Null for types wider than 16 bits.
inline Round step_rounding(tn_dtype dtype) noexcept {
  if (dtype == TN_FLOAT16)
    return [](double* x, int64_t count) {
      for (int64_t i = 0; i < count; ++i) x[i] = static_cast<double>(Float16(round_to_odd(x[i])));
    };
  if (dtype == TN_BFLOAT16)
    return [](double* x, int64_t count) {
      for (int64_t i = 0; i < count; ++i) x[i] = static_cast<double>(BFloat16(round_to_odd(x[i])));
    };
  return nullptr;
}

/// x less its largest; NaN, where there is one, is the largest.
inline void subtract_largest(double* x, int64_t count, Round round) noexcept {
  double largest = x[0];
  for (int64_t i = 1; i < count; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
  for (int64_t i = 0; i < count; ++i) x[i] -= largest;
  if (round) round(x, count);
}
/// Softmax of one row of one element or more.
inline void softmax_row(double* x, int64_t count, Round round) noexcept {
  subtract_largest(x, count, round);
  for (int64_t i = 0; i < count; ++i) x[i] = std::exp(x[i]);
  if (round) round(x, count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  if (round) round(&sum, 1);
  for (int64_t i = 0; i < count; ++i) x[i] /= sum;
}

}  // namespace tenon::reference
