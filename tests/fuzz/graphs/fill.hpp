// Values for random tensors, and tensors as numbers to compare.
#pragma once
#include "core/base/tensor.hpp"
#include "core/check/random.hpp"

namespace tenon::fuzz {

using check::Random;

enum class Fill {
  tame,      // moderate numbers, some zeros
  positive,  // for divisors, variances, scales
  wild       // NaN, infinities, denormals, large and extreme ones among them
};

void fill(Tensor& tensor, Random& random, Fill style);
Tensor random_tensor(tn_dtype dtype, std::vector<int64_t> dims, Random& random, Fill style);
Tensor int64_tensor(std::span<const int64_t> values);  // rank 1
Tensor int64_scalar(int64_t value);
Tensor float_tensor(tn_dtype dtype, std::vector<int64_t> dims, double value);

// Element i of a tensor of floats or integers of 8 bits or more, or bool; false for other types.
bool number_at(const tn_tensor& tensor, uint64_t i, double* value);
// The distance from 1 to the next number of that float type; 0 for types that are no float.
double spacing(tn_dtype dtype);

}  // namespace tenon::fuzz
