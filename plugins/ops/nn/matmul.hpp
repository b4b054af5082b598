// Shapes of matrix products, for the operators that have one inside.
#pragma once
#include "support/define.hpp"

namespace tenon::ops {

/// numpy's matmul: one-dimensional operands are a row and a column. Failure when inner dims differ.
std::vector<tn_dim> matmul_dims(Infer& c, std::vector<tn_dim> a, std::vector<tn_dim> b);
/// Result 0 is Gemm of operands a and b, operand c_index broadcasting to it.
void infer_gemm_like(Infer& c, uint32_t a_index, uint32_t b_index, uint32_t c_index);

}  // namespace tenon::ops
