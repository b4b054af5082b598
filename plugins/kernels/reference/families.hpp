// The one list of kernel families: each names a function that adds its records.
#pragma once
#include "common.hpp"

// clang-format off
#define TENON_REFERENCE_FAMILIES(X) \
  X(unary) X(binary) X(variadic) X(cast) X(shape_kernels) X(move) X(gather) X(matmul) X(conv) X(pool) \
  X(softmax) X(reduce) X(normalize) X(normalize_channels) X(resize) X(random) X(control) X(scatter) \
  X(search) X(pad) X(quantize) X(conv_transpose) X(sequence) X(recurrent) X(select) X(attention) \
  X(einsum) X(norms)
// clang-format on

namespace tenon::reference {
#define TENON_DECLARE(family) void provide_##family(Plugin& p);
TENON_REFERENCE_FAMILIES(TENON_DECLARE)
#undef TENON_DECLARE
}  // namespace tenon::reference
