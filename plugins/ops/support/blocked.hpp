// Matrix products in float64 by blocks: the one inner loop under MatMul, Gemm, convolutions and recurrent
// cells.
//
// A block of the result, at most tile_m x tile_n, stays in double while k runs in slices of tile_k. Each
// element is the plain sum over k in ascending order, whatever the blocks, so the bits depend on nothing but
// the operands.
#pragma once
#include "support/kernel.hpp"

namespace tenon::reference {

constexpr int64_t tile_m = 64, tile_n = 64, tile_k = 256;
constexpr int64_t lane_m = 4, lane_n = 8;  // the register block

/// Workspace of one multiply(): packed slices of both operands, the result, one row or column.
constexpr uint64_t multiply_doubles = tile_m * tile_k + tile_k * tile_n + tile_m * tile_n + tile_k + tile_n;
constexpr uint64_t multiply_bytes = multiply_doubles * sizeof(double);

/// c[m][tile_n] += a * b with a packed [m/4][k][4], b packed [n/8][k][8].
void multiply_packed(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k) noexcept;

/// c = a * b, c row-major with stride tile_n, inside `workspace`; valid until its next use.
///   load_a(i, k0, kc, to): kc elements of row i from k0 on.
///   load_b: ByColumn ? (j, k0, kc, to) kc elements of column j : (k, to) the n elements of row k.
template <bool ByColumn, class LoadA, class LoadB>
double* multiply(int64_t m, int64_t n, int64_t k, double* workspace, LoadA&& load_a,
                 LoadB&& load_b) noexcept {
  double* a = workspace;
  double* b = a + tile_m * tile_k;
  double* c = b + tile_k * tile_n;
  double* line = c + tile_m * tile_n;
  std::fill(c, c + tile_m * tile_n, 0.0);
  if (m == 1) {  // nothing to reuse, so nothing to pack; the sums run in the same order
    for (int64_t k0 = 0; k0 < k; k0 += tile_k) {
      const int64_t kc = std::min(tile_k, k - k0);
      load_a(0, k0, kc, a);
      if constexpr (ByColumn) {
        for (int64_t j = 0; j < n; ++j) {
          load_b(j, k0, kc, line);
          for (int64_t q = 0; q < kc; ++q) c[j] += a[q] * line[q];
        }
      } else {
        for (int64_t q = 0; q < kc; ++q) {
          load_b(k0 + q, line);
          for (int64_t j = 0; j < n; ++j) c[j] += a[q] * line[j];
        }
      }
    }
    return c;
  }
  const int64_t m_full = (m + lane_m - 1) / lane_m * lane_m, n_full = (n + lane_n - 1) / lane_n * lane_n;
  for (int64_t k0 = 0; k0 < k; k0 += tile_k) {
    const int64_t kc = std::min(tile_k, k - k0);
    for (int64_t i = 0; i < m_full; ++i) {
      if (i < m)
        load_a(i, k0, kc, line);
      else
        std::fill(line, line + kc, 0.0);
      double* to = a + i / lane_m * lane_m * kc + i % lane_m;
      for (int64_t q = 0; q < kc; ++q) to[q * lane_m] = line[q];
    }
    if constexpr (ByColumn) {
      for (int64_t j = 0; j < n_full; ++j) {
        if (j < n)
          load_b(j, k0, kc, line);
        else
          std::fill(line, line + kc, 0.0);
        double* to = b + j / lane_n * lane_n * kc + j % lane_n;
        for (int64_t q = 0; q < kc; ++q) to[q * lane_n] = line[q];
      }
    } else {
      std::fill(line, line + tile_n, 0.0);
      for (int64_t q = 0; q < kc; ++q) {
        load_b(k0 + q, line);
        for (int64_t j = 0; j < n_full; j += lane_n)
          std::memcpy(b + j * kc + q * lane_n, line + j, lane_n * sizeof(double));
      }
    }
    multiply_packed(a, b, c, m_full, n_full, kc);
  }
  return c;
}

}  // namespace tenon::reference
