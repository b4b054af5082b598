#include "integer/product.hpp"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "integer/product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR  // elsewhere the pairs that are added are others
using D32 = hn::ScalableTag<int32_t>;
using D16 = hn::Repartition<int16_t, D32>;
using DU16 = hn::Repartition<uint16_t, D32>;

/// Bytes 0 and 2 of each quad as 16-bit numbers, and bytes 1 and 3.
template <bool Unsigned>
HWY_INLINE void widen(hn::Vec<D32> v, hn::Vec<D16>* even, hn::Vec<D16>* odd) {
  const D16 d;
  const DU16 du;
  if constexpr (Unsigned) {
    *even = hn::And(hn::BitCast(d, v), hn::Set(d, 0xFF));
    *odd = hn::BitCast(d, hn::ShiftRight<8>(hn::BitCast(du, v)));
  } else {
    *even = hn::ShiftRight<8>(hn::ShiftLeft<8>(hn::BitCast(d, v)));
    *odd = hn::ShiftRight<8>(hn::BitCast(d, v));
  }
}

template <bool UnsignedPanel, int Rows>
HWY_INLINE void multiply_rows(const uint8_t* panel, const uint8_t* rows, int64_t stride, int64_t quads,
                              int32_t* sums) {
  const D32 d;
  const hn::Repartition<uint8_t, D32> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < panel_columns; c += 2 * lanes) {
    hn::Vec<D32> s[Rows][2], unused = hn::Zero(d);
    for (int r = 0; r < Rows; ++r) s[r][0] = s[r][1] = hn::Zero(d);
    for (int64_t q = 0; q < quads; ++q) {
      const uint8_t* at = panel + (q * panel_columns + c) * quad;
      hn::Vec<D16> even[2], odd[2];
      widen<UnsignedPanel>(hn::BitCast(d, hn::LoadU(d8, at)), &even[0], &odd[0]);
      widen<UnsignedPanel>(hn::BitCast(d, hn::LoadU(d8, at + lanes * quad)), &even[1], &odd[1]);
      for (int r = 0; r < Rows; ++r) {
        int32_t four;
        std::memcpy(&four, rows + r * stride + q * quad, sizeof four);
        hn::Vec<D16> row_even, row_odd;
        widen<!UnsignedPanel>(hn::Set(d, four), &row_even, &row_odd);
        for (int i = 0; i < 2; ++i) {
          s[r][i] = hn::ReorderWidenMulAccumulate(d, row_even, even[i], s[r][i], unused);
          s[r][i] = hn::ReorderWidenMulAccumulate(d, row_odd, odd[i], s[r][i], unused);
        }
      }
    }
    for (int r = 0; r < Rows; ++r) {
      hn::StoreU(s[r][0], d, sums + r * panel_columns + c);
      hn::StoreU(s[r][1], d, sums + r * panel_columns + c + lanes);
    }
  }
}

template <bool U>
HWY_INLINE void multiply(const uint8_t* panel, const uint8_t* rows, int64_t stride, int64_t count,
                         int64_t quads, int32_t* sums) {
  constexpr int64_t step = 4;
  for (; count >= step; count -= step, rows += step * stride, sums += step * panel_columns)
    multiply_rows<U, step>(panel, rows, stride, quads, sums);
  for (; count > 0; --count, rows += stride, sums += panel_columns)
    multiply_rows<U, 1>(panel, rows, stride, quads, sums);
}
#else  // the records ask for AVX2: this says what is meant
template <bool U>
HWY_INLINE void multiply(const uint8_t* panel, const uint8_t* rows, int64_t stride, int64_t count,
                         int64_t quads, int32_t* sums) {
  for (int64_t r = 0; r < count; ++r)
    for (int64_t j = 0; j < panel_columns; ++j) {
      uint32_t sum = 0;
      for (int64_t k = 0; k < quads * quad; ++k) {
        const uint8_t a = panel[(k / quad * panel_columns + j) * quad + k % quad], b = rows[r * stride + k];
        sum += static_cast<uint32_t>(U ? int32_t{a} * static_cast<int8_t>(b)
                                       : static_cast<int8_t>(a) * int32_t{b});
      }
      sums[r * panel_columns + j] = static_cast<int32_t>(sum);
    }
}
#endif

void multiply_unsigned(const uint8_t* panel, const uint8_t* rows, int64_t stride, int64_t count,
                       int64_t quads, int32_t* sums) {
  multiply<true>(panel, rows, stride, count, quads, sums);
}
void multiply_signed(const uint8_t* panel, const uint8_t* rows, int64_t stride, int64_t count, int64_t quads,
                     int32_t* sums) {
  multiply<false>(panel, rows, stride, count, quads, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "simd.hpp"

namespace tenon::cpu {

HWY_EXPORT(multiply_unsigned);
HWY_EXPORT(multiply_signed);

MultiplyPanel panel_multiplier(uint64_t features, bool unsigned_panel) noexcept {
  allow_simd(features);
  if (features & TN_CPU_AVX512_VNNI)
    if (const MultiplyPanel fastest = vnni_multiplier(unsigned_panel)) return fastest;
  if (unsigned_panel)
    return [](const uint8_t* p, const uint8_t* r, int64_t s, int64_t n, int64_t q, int32_t* sums) {
      HWY_DYNAMIC_DISPATCH(multiply_unsigned)(p, r, s, n, q, sums);
    };
  return [](const uint8_t* p, const uint8_t* r, int64_t s, int64_t n, int64_t q, int32_t* sums) {
    HWY_DYNAMIC_DISPATCH(multiply_signed)(p, r, s, n, q, sums);
  };
}

PackedPanels pack_panels(const sdk::PlanView& v, uint32_t operand, int64_t first, int64_t depth,
                         int64_t columns, int64_t row_step, int64_t column_step) {
  const sdk::OperandView w = v.input(operand);
  const uint8_t flip = flip_to(false, w.dtype());
  const int64_t panels = panels_of(columns);
  PackedPanels r;
  r.quads = quads_of(depth);
  const int64_t matrix = panels * r.quads * quad * panel_columns;
  const auto bytes =
      static_cast<uint64_t>(matrix) + static_cast<uint64_t>(panels * panel_columns) * sizeof(int32_t);
  const auto key = sdk::format("tenon.cpu.panels/1 %02x %lld + %lld x %lld by %lld %lld", flip,
                               static_cast<long long>(first), static_cast<long long>(depth),
                               static_cast<long long>(columns), static_cast<long long>(row_step),
                               static_cast<long long>(column_step));
  r.data = v.packed<uint8_t>(operand, key, bytes, [&](const sdk::TensorView& source, void* to) {
    const uint8_t* from = source.data<uint8_t>() + first;
    auto* panel = static_cast<uint8_t*>(to);
    auto* sums = reinterpret_cast<int32_t*>(panel + matrix);
    for (int64_t p = 0; p < panels; ++p)
      for (int64_t k = 0; k < depth; ++k) {
        uint8_t* at = panel + ((p * r.quads + k / quad) * panel_columns) * quad + k % quad;
        const int64_t n = std::min(panel_columns, columns - p * panel_columns);
        for (int64_t j = 0; j < n; ++j) {
          at[j * quad] =
              static_cast<uint8_t>(from[k * row_step + (p * panel_columns + j) * column_step] ^ flip);
          sums[p * panel_columns + j] += static_cast<int8_t>(at[j * quad]);
        }
      }
  });
  r.sums = reinterpret_cast<const int32_t*>(r.data + matrix);
  return r;
}

}  // namespace tenon::cpu
#endif
