// Inference of a convolution, for the operators that have one inside.
#pragma once
#include "spatial/window.hpp"

namespace tenon::ops {

/// Result 0 is a convolution of operands x and w with element type dtype; operand `bias` has one number a
/// filter.
void infer_convolution(Infer& c, uint32_t x, uint32_t w, std::optional<uint32_t> bias, tn_dtype dtype);

}  // namespace tenon::ops
