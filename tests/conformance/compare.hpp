// Equality of results, as ONNX's own runner has it (assert_similar_outputs in onnx/backend/test/runner).
#pragma once
#include <string>

#include "cases.hpp"
#include "core/runtime/value_handle.hpp"

namespace tenon::conformance {

// What is different first, in words; empty: nothing is. Types and shapes are the same, strings, integers and
// bools equal, floats and complex numbers within the tolerance, NaN where NaN is expected; bfloat16 may be
// two of its steps off (2^-6), as ONNX's runner allows. Sequences and optionals: the same number of items,
// each as above. `shape_only` leaves the elements out.
std::string difference(const tn_any& got, const tn_any& expected, const Tolerance& tolerance,
                       bool shape_only);

}  // namespace tenon::conformance
