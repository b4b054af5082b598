// A row of elements to one number. Rows of float32 are joined in the order that vectors go through them, rows
// of other types one element after the other, in double, int64 or uint64.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "tenon/abi/types.h"

namespace tenon::cpu {

enum class Reduction : uint32_t { Sum, Mean, Max, Min, L1, L2, SumSquare, Prod };
/// What a reducing operator computes; nothing when this plugin does not have it.
std::optional<Reduction> reduction_of(std::string_view op);

/// A row that comes in pieces. Each piece but the last is a multiple of this many elements: the bits do not
/// depend on how the row was cut.
constexpr int64_t reduction_grain = 256;
constexpr int64_t partial_bytes = 1024;  // of the memory that a row's partial results need, 64-byte aligned

struct RowReduction {
  void (*begin)(Reduction op, void* partial);
  void (*more)(Reduction op, void* partial, const void* x, int64_t n);
  /// The last piece; `total` elements came in all. Writes one element.
  void (*end)(Reduction op, void* partial, const void* x, int64_t n, int64_t total, void* y);
};
/// For rows of this type; nullptr when there is none. `op` matters too: roots of whole numbers are no whole
/// numbers.
const RowReduction* row_reduction(tn_dtype dtype, Reduction op);
/// A row of float32 in one piece.
float reduce_row(Reduction op, const float* x, int64_t n) noexcept;

}  // namespace tenon::cpu
