// vpdpbusd multiplies four unsigned by four signed bytes and adds all to an int32 without saturating.
#include "integer/product.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")

namespace tenon::cpu {
namespace {

template <bool UnsignedPanel>
inline __m512i multiply_add(__m512i sum, __m512i panel, const uint8_t* row) noexcept {
  int32_t four;
  std::memcpy(&four, row, sizeof four);
  const __m512i all = _mm512_set1_epi32(four);
  return UnsignedPanel ? _mm512_dpbusd_epi32(sum, panel, all) : _mm512_dpbusd_epi32(sum, all, panel);
}

template <bool UnsignedPanel, int Rows>
void multiply_rows(const uint8_t* panel, const uint8_t* rows, int64_t stride, int64_t quads,
                   int32_t* sums) noexcept {
  __m512i s[Rows][2];
  for (int r = 0; r < Rows; ++r) s[r][0] = s[r][1] = _mm512_setzero_si512();
  for (int64_t q = 0; q < quads; ++q) {
    const __m512i a = _mm512_loadu_si512(panel + q * 128), b = _mm512_loadu_si512(panel + q * 128 + 64);
    for (int r = 0; r < Rows; ++r) {
      s[r][0] = multiply_add<UnsignedPanel>(s[r][0], a, rows + r * stride + q * quad);
      s[r][1] = multiply_add<UnsignedPanel>(s[r][1], b, rows + r * stride + q * quad);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    _mm512_storeu_si512(sums + r * panel_columns, s[r][0]);
    _mm512_storeu_si512(sums + r * panel_columns + 16, s[r][1]);
  }
}

/// Of one row: the sums would wait for one another, so four of each are kept.
template <bool UnsignedPanel>
void multiply_one(const uint8_t* panel, const uint8_t* row, int64_t quads, int32_t* sums) noexcept {
  __m512i s[4][2];
  for (auto& pair : s) pair[0] = pair[1] = _mm512_setzero_si512();
  int64_t q = 0;
  for (; q + 4 <= quads; q += 4)
    for (int i = 0; i < 4; ++i) {
      const uint8_t* at = panel + (q + i) * 128;
      s[i][0] = multiply_add<UnsignedPanel>(s[i][0], _mm512_loadu_si512(at), row + (q + i) * quad);
      s[i][1] = multiply_add<UnsignedPanel>(s[i][1], _mm512_loadu_si512(at + 64), row + (q + i) * quad);
    }
  for (; q < quads; ++q) {
    const uint8_t* at = panel + q * 128;
    s[0][0] = multiply_add<UnsignedPanel>(s[0][0], _mm512_loadu_si512(at), row + q * quad);
    s[0][1] = multiply_add<UnsignedPanel>(s[0][1], _mm512_loadu_si512(at + 64), row + q * quad);
  }
  for (int half = 0; half < 2; ++half)
    _mm512_storeu_si512(sums + half * 16, _mm512_add_epi32(_mm512_add_epi32(s[0][half], s[1][half]),
                                                           _mm512_add_epi32(s[2][half], s[3][half])));
}

template <bool U>
void multiply(const uint8_t* panel, const uint8_t* rows, int64_t stride, int64_t count, int64_t quads,
              int32_t* sums) {
  constexpr int64_t step = 8;
  for (; count > 0; count -= step, rows += step * stride, sums += step * panel_columns) {
    switch (std::min(count, step)) {
      case 1:
        multiply_one<U>(panel, rows, quads, sums);
        break;
      case 2:
        multiply_rows<U, 2>(panel, rows, stride, quads, sums);
        break;
      case 3:
        multiply_rows<U, 3>(panel, rows, stride, quads, sums);
        break;
      case 4:
        multiply_rows<U, 4>(panel, rows, stride, quads, sums);
        break;
      case 5:
        multiply_rows<U, 5>(panel, rows, stride, quads, sums);
        break;
      case 6:
        multiply_rows<U, 6>(panel, rows, stride, quads, sums);
        break;
      case 7:
        multiply_rows<U, 7>(panel, rows, stride, quads, sums);
        break;
      default:
        multiply_rows<U, 8>(panel, rows, stride, quads, sums);
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
#pragma GCC pop_options

namespace tenon::cpu {
MultiplyPanel vnni_multiplier(bool unsigned_panel) noexcept {
  return unsigned_panel ? multiply<true> : multiply<false>;
}
}  // namespace tenon::cpu
#else
namespace tenon::cpu {
MultiplyPanel vnni_multiplier(bool) noexcept { return nullptr; }
}  // namespace tenon::cpu
#endif
