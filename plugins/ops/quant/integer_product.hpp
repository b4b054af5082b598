// Products of 8-bit integers with exact int32 sums: what MatMulInteger, ConvInteger, QLinearMatMul and
// QLinearConv share.
//
// Operands are widened to int16 while they are laid out, zero points taken off, so that one multiply-and-add
// of pairs does the work of the inner loop. A block of the result, at most integer_rows x integer_columns,
// stays in int32 while the depth runs in slices. Every number is exact, so the blocks and the instruction set
// change nothing.
#pragma once
#include "support/kernel.hpp"

namespace tenon::reference {

constexpr int64_t integer_rows = 64, integer_columns = 128, integer_depth = 512;
constexpr int64_t integer_lane = 4;  // rows and columns of a block are rounded up to so many

/// Workspace of one block: both operands' slices, the sums.
constexpr uint64_t integer_bytes = (integer_rows + integer_columns) * integer_depth * sizeof(int16_t) +
                                   integer_rows * integer_columns * sizeof(int32_t);

inline int64_t in_lanes(int64_t n) noexcept { return (n + integer_lane - 1) / integer_lane * integer_lane; }

/// sums[rows][integer_columns] += a[rows][depth] * b[columns][depth]; rows and columns in whole lanes.
void multiply_integers(const int16_t* a, const int16_t* b, int64_t rows, int64_t columns, int64_t depth,
                       int32_t* sums) noexcept;

/// `count` elements of a tensor of int8 or uint8, `stride` apart, less `zero`.
void load_integers(const void* source, tn_dtype dtype, int64_t first, int64_t stride, int64_t count,
                   int32_t zero, int16_t* to, int64_t to_stride = 1) noexcept;
/// The zero point at `index` of operand i; 0 where it is omitted.
inline int32_t zero_point(const tn_kernel_args* a, const Base& s, size_t i, int64_t index) noexcept {
  if (!s.has_in(i)) return 0;
  const void* data = a->inputs[i];
  return s.in[i].dtype == TN_INT8 ? static_cast<const int8_t*>(data)[index]
                                  : static_cast<const uint8_t*>(data)[index];
}

/// Sums of one block, [rows][integer_columns], inside `workspace`; valid until its next use.
///   rows_to(k0, kc, to): all rows' elements [k0, k0 + kc), `kc` apart.
///   columns_to(k0, kc, scratch): the same of the columns; answers where they lie.
template <class RowsTo, class ColumnsTo>
int32_t* multiply_block(int64_t rows, int64_t columns, int64_t depth, void* workspace, RowsTo&& rows_to,
                        ColumnsTo&& columns_to) noexcept {
  auto* a = static_cast<int16_t*>(workspace);
  auto* b = a + integer_rows * integer_depth;
  auto* sums = reinterpret_cast<int32_t*>(b + integer_columns * integer_depth);
  const int64_t m = in_lanes(rows), n = in_lanes(columns);
  std::fill(sums, sums + m * integer_columns, 0);
  for (int64_t k0 = 0; k0 < depth; k0 += integer_depth) {
    const int64_t kc = std::min(integer_depth, depth - k0);
    rows_to(k0, kc, a);
    std::fill(a + rows * kc, a + m * kc, int16_t{0});
    const int16_t* from = columns_to(k0, kc, b);
    if (from == b) std::fill(b + columns * kc, b + n * kc, int16_t{0});
    multiply_integers(a, from, m, n, kc, sums);
  }
  return sums;
}

/// The columns of constant operand 1, laid out once for all plans: by matrix, block of columns, slice of the
/// depth.
struct PackedColumns {
  const int16_t* data = nullptr;
  int64_t columns = 0, depth = 0;
  const int16_t* at(int64_t matrix, int64_t first_column, int64_t k0) const noexcept {
    const int64_t n = in_lanes(std::min(integer_columns, columns - first_column));
    return data + (matrix * in_lanes(columns) + first_column) * depth + n * k0;
  }
};
/// Where column j's element k of a matrix lies: matrix * step + j * column + k * row.
struct ColumnLayout {
  int64_t matrices = 1, columns = 0, depth = 0, step = 0, column = 0, row = 0;
};
/// Empty when operand 1, or its zero point, operand `zero`, is not constant, or there are several zero
/// points.
PackedColumns packed_columns(const PlanView& v, uint32_t operand, uint32_t zero, const ColumnLayout& layout);

/// Back to 8 bits: saturate(round_half_even(sum * multiplier) + zero), in float32.
inline int32_t requantized(int32_t sum, float multiplier, int32_t zero, int32_t low, int32_t high) noexcept {
  const float x = std::nearbyint(static_cast<float>(sum) * multiplier);
  const float least = static_cast<float>(low - zero), most = static_cast<float>(high - zero);
  return static_cast<int32_t>(x < least ? least : x > most ? most : x == x ? x : 0.0f) + zero;
}

void provide_integer_matmul(Plugin& p);
void provide_integer_conv(Plugin& p);

}  // namespace tenon::reference
