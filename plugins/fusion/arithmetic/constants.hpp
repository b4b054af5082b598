// Arithmetic on small constants, for rewrites that make one of two.
#pragma once
#include "sweep.hpp"

namespace tenon::fusion {

enum class Arithmetic { add, subtract, multiply, divide };

/// a op b, broadcast, rounded once to their type (whole numbers wrap around). None: not two constants of one
/// number type, or the result would be larger than both.
std::optional<sdk::OwnedTensor> combined(const Context& c, tn_value a, Arithmetic op, tn_value b);
std::optional<sdk::OwnedTensor> combined(const sdk::TensorView& a, Arithmetic op, const sdk::TensorView& b);
/// -a, element by element.
std::optional<sdk::OwnedTensor> negated(const sdk::TensorView& a);
/// Every element's magnitude lies within [low, high] (so none is zero, infinite or NaN).
bool within(const sdk::TensorView& t, double low, double high);
/// Every element is a power of two whose reciprocal the type holds as a normal number.
bool exact_reciprocal(const sdk::TensorView& t);
/// A tensor of these dims whose elements all are `value`; costs one element, whatever the dims.
tn_value uniform(sdk::Transaction& edit, tn_dtype dtype, const sdk::Dims& dims, double value);
/// The dims of a value as numbers.
std::optional<sdk::Dims> numeric_dims(const Context& c, tn_value v);
/// Factors that may be multiplied together without leaving the range of the type by much: for 16 bits few
/// may.
bool moderate(const sdk::TensorView& t);

}  // namespace tenon::fusion
