// Tensors for checks: random contents, and whether two are the same as far as arithmetic can be.
#pragma once
#include <optional>
#include <string>

#include "core/base/tensor.hpp"
#include "core/check/random.hpp"

namespace tenon::check {

enum class Fill {
  tame,  // moderate numbers, some zeros
  wild   // NaN, infinities, denormals and both zeros among them
};
void fill(Tensor& tensor, Random& random, Fill style);

// Element i as a number; false for types that are none (texts, complex, packed).
bool number_at(const tn_tensor& tensor, uint64_t i, double* value);

// Where `got` differs from `want` by more than rounding in some order of summation may: the first place, both
// values, and the largest. Types, shapes, integers, texts and NaN must be the same.
std::optional<std::string> difference(const tn_tensor& want, const tn_tensor& got);
std::optional<std::string> bit_difference(const tn_tensor& want, const tn_tensor& got);

std::string type_of(const tn_tensor& tensor);  // "float32[2,3]"

}  // namespace tenon::check
