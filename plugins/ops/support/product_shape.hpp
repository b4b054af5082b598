// Shapes of MatMul's operands: batches of matrices, with numpy's rules for vectors and broadcasting.
#pragma once
#include "support/kernel.hpp"

namespace tenon::reference {

struct ProductShape {
  int64_t m = 0, n = 0, k = 0;
  std::vector<int64_t> a_at, b_at;  // number of each batch's matrix in its operand
};
ProductShape product_shape(const Dims& a, const Dims& b);

}  // namespace tenon::reference
