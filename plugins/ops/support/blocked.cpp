#include "support/blocked.hpp"

#include "support/clones.hpp"

namespace tenon::reference {

using Vector = double __attribute__((vector_size(32)));

TENON_CLONES void multiply_packed(const double* a, const double* b, double* c, int64_t m, int64_t n,
                                  int64_t k) noexcept {
  for (int64_t j = 0; j < n; j += lane_n) {
    for (int64_t i = 0; i < m; i += lane_m) {
      const double* x = a + i * k;
      const double* y = b + j * k;
      double* to = c + i * tile_n + j;
      Vector acc[4][2];
      for (int r = 0; r < 4; ++r) std::memcpy(acc[r], to + r * tile_n, sizeof acc[r]);
      for (int64_t q = 0; q < k; ++q) {
        Vector low, high;
        std::memcpy(&low, y + q * lane_n, sizeof low);
        std::memcpy(&high, y + q * lane_n + 4, sizeof high);
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) {
          const double s = x[q * lane_m + r];
          const Vector v = {s, s, s, s};
          acc[r][0] += v * low;
          acc[r][1] += v * high;
        }
      }
      for (int r = 0; r < 4; ++r) std::memcpy(to + r * tile_n, acc[r], sizeof acc[r]);
    }
  }
}

}  // namespace tenon::reference
