// Products of 8-bit integers with exact sums (modulo 2^32, as the standard's int32 wraps).
//
// One side is a panel: 32 columns, the depth in quads, [quad][column][4] bytes. The other side is rows of
// `stride` bytes, zeros up to a whole quad. One side is unsigned, the other signed; what comes otherwise is
// shifted by 128, byte and zero point alike, which leaves every difference as it was. Zero points are not
// taken off before: with a, b the shifted bytes, sum (a - za)(b - zb) = sum ab - za sum b - zb sum a + depth
// za zb.
#pragma once
#include <cstdint>

#include "activation.hpp"

namespace tenon::cpu {

constexpr int64_t panel_columns = 32, quad = 4;
inline int64_t quads_of(int64_t depth) noexcept { return (depth + quad - 1) / quad; }
inline int64_t whole_quads(int64_t depth) noexcept { return quads_of(depth) * quad; }
inline int64_t panels_of(int64_t columns) noexcept { return (columns + panel_columns - 1) / panel_columns; }

/// sums[r * 32 + j] = sum over the depth of row r times column j of the panel.
using MultiplyPanel = void (*)(const uint8_t* panel, const uint8_t* rows, int64_t stride, int64_t row_count,
                               int64_t quads, int32_t* sums);
/// The fastest that these features allow. Products of bytes never saturate on the way: without VNNI they are
/// made of 16-bit numbers.
MultiplyPanel panel_multiplier(uint64_t cpu_features, bool unsigned_panel) noexcept;
/// Those of product_vnni.cpp; null where the compiler has no such instructions.
MultiplyPanel vnni_multiplier(bool unsigned_panel) noexcept;

/// A byte of a tensor of this type on the unsigned (signed) side, and its zero point there.
inline uint8_t flip_to(bool unsigned_side, tn_dtype dtype) noexcept {
  return (dtype == TN_UINT8) == unsigned_side ? 0 : 0x80;
}
inline int32_t shifted_zero(int32_t zero, bool unsigned_side, tn_dtype dtype) noexcept {
  return zero + (flip_to(unsigned_side, dtype) == 0 ? 0 : unsigned_side ? 128 : -128);
}
/// A zero point's operand; what a node leaves out counts as 0.
struct ZeroPoint {
  int32_t operand = -1;
  bool with_sign = false, many = false;
  ZeroPoint() = default;
  ZeroPoint(const sdk::PlanView& v, uint32_t i, bool has_many) {
    if (!v.has_input(i)) return;
    operand = static_cast<int32_t>(i), with_sign = v.input(i).dtype() == TN_INT8, many = has_many;
  }
  /// The one of a row, column or channel, as a number of its own type.
  int32_t at(const tn_kernel_args* a, int64_t index = 0) const noexcept {
    if (operand < 0) return 0;
    const void* data = a->inputs[operand];
    if (!many) index = 0;
    return with_sign ? static_cast<const int8_t*>(data)[index] : static_cast<const uint8_t*>(data)[index];
  }
};

/// What turns sums into the result's numbers, for a run of columns: v[j] += add + adds[j] + factor *
/// factors[j], wrapping; adds and factors may be NULL.
void adjust_sums(int32_t* v, int64_t n, int32_t add, const int32_t* adds, int32_t factor,
                 const int32_t* factors) noexcept;
/// Of n columns, whole panels: to[j] += (v[j] + factor * factors[j] + second * seconds[j]) * (scale * by[j]);
/// seconds may be NULL.
void add_scaled(const int32_t* v, int64_t n, int32_t factor, const int32_t* factors, int32_t second,
                const int32_t* seconds, float scale, const float* by, float* to) noexcept;
/// y[i] = f(x[i]) by way of float64, for Sigmoid, Tanh and Relu: what is quantised next must not hang on the
/// last bits of an approximation. y may be x.
void apply_precisely(Act f, const float* x, float* y, int64_t n) noexcept;
/// to[j] = saturate(round_half_even(v[j] * by[j * by_step]) + zero) as int8 or uint8; NaN counts as 0.
void requantise_row(const int32_t* v, int64_t n, const float* by, int64_t by_step, int32_t zero,
                    bool with_sign, uint8_t* to) noexcept;
/// The same of real numbers: to[j] = saturate(round_half_even((v[j] * by + bias) / scale) + zero), with one
/// number of both a column (step 1) or one for all (step 0).
void quantise_sums(const int32_t* v, int64_t n, const float* by, const float* bias, int64_t step, float scale,
                   int32_t zero, bool with_sign, uint8_t* to) noexcept;
/// What turns the sums of one panel's columns into results, row by row.
struct PanelRows {
  int64_t count = 0;
  const int32_t *adds = nullptr, *factors = nullptr;  // a row each
  const int32_t* columns = nullptr;                   // a column each, or NULL
  const float *by = nullptr, *bias = nullptr;         // a row each; bias: NULL for none
};
/// v += adds + factors * columns, in place; v is [count][32].
void finish_panel(int32_t* v, const PanelRows& rows) noexcept;
/// The same, then as requantise_row or, with bias, quantise_sums, to rows of bytes `stride` apart.
void finish_panel(const int32_t* v, const PanelRows& rows, float scale, int32_t zero, bool with_sign,
                  uint8_t* to, int64_t stride) noexcept;
/// to[i] = from[i] ^ flip.
void flip_row(const uint8_t* from, int64_t n, uint8_t flip, uint8_t* to) noexcept;
/// Sum of n unsigned bytes.
int32_t sum_row(const uint8_t* from, int64_t n) noexcept;
/// One quad of a panel from four runs of 32 bytes.
void interleave_quad(const uint8_t* a, const uint8_t* b, const uint8_t* c, const uint8_t* d,
                     uint8_t* to) noexcept;

/// As DynamicQuantizeLinear is defined: scale and zero point of numbers within [low, high], 0 among them.
struct Quantisation {
  float scale = 1;
  int32_t zero = 0;
};
void widen_range(const float* x, int64_t n, float* low, float* high) noexcept;  // NaN is passed over
Quantisation quantisation_of(float low, float high) noexcept;
/// to[i] = saturate(round_half_even(x[i] / scale) + zero); NaN is 0.
void quantise_row(const float* x, int64_t n, const Quantisation& q, uint8_t* to) noexcept;

/// A constant [depth, columns] matrix as panels of signed bytes, and what its columns sum up to.
struct PackedPanels {
  const uint8_t* data = nullptr;
  const int32_t* sums = nullptr;  // of the shifted bytes, a column each, to whole panels
  int64_t quads = 0;
  const uint8_t* panel(int64_t i) const noexcept { return data + i * quads * quad * panel_columns; }
};
/// Of constant operand i: element (k, j) of the matrix is at `first` + k * row_step + j * column_step.
PackedPanels pack_panels(const sdk::PlanView& v, uint32_t operand, int64_t first, int64_t depth,
                         int64_t columns, int64_t row_step, int64_t column_step);

}  // namespace tenon::cpu
