// Every family of operators: one line here, one file of that name.
#pragma once
#include "tenon/sdk/plugin.hpp"

#define TENON_OPS_FAMILIES(X) \
  X(elementwise_unary)        \
  X(activation)               \
  X(elementwise_binary)       \
  X(elementwise_select)       \
  X(reduce)                   \
  X(shape_ops)                \
  X(reshape)                  \
  X(indexing)                 \
  X(slice)                    \
  X(join_split)               \
  X(selection)                \
  X(constant)                 \
  X(conv)                     \
  X(pool)                     \
  X(resize)                   \
  X(norm)                     \
  X(matmul)                   \
  X(control_flow)             \
  X(sequence)                 \
  X(quantize)                 \
  X(random)                   \
  X(recurrent)                \
  X(attention)                \
  X(fused)

namespace tenon::ops {
#define TENON_OPS_DECLARE(family) void add_##family(sdk::Plugin& p);
TENON_OPS_FAMILIES(TENON_OPS_DECLARE)
#undef TENON_OPS_DECLARE
}  // namespace tenon::ops
