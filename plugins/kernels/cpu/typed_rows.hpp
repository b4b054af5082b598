// Row functions for what is not float32 throughout, or is exact whatever computes it: casts, comparisons,
// choices, logic, whole numbers, other floats. The bits are those of the definitions in plugin ops.
#pragma once
#include <cstdint>
#include <string_view>

#include "tenon/sdk/kernels.hpp"

namespace tenon::cpu {

/// A step of 0 repeats the first element, 1 walks; data is NULL for an operand that is left out.
struct Row {
  const void* data = nullptr;
  int step = 0;
};
/// Where an operand and y are the same memory, their elements have one width.
using RowFunction = void (*)(const Row* operands, void* y, int64_t n);

/// The function of an operator over operands of these types (TN_DTYPE_NONE: left out); nullptr when this
/// plugin has none. For the instruction sets allowed at the time.
RowFunction typed_row(std::string_view op, const sdk::Attributes& attrs, sdk::Span<const tn_dtype> operands,
                      tn_dtype result) noexcept;

}  // namespace tenon::cpu
