// Nodes that ONNX Runtime has no kernel for, although ONNX allows them, in a form that it runs.
#pragma once
#include <optional>

#include "steps.hpp"
#include "tenon/abi/ops.h"

namespace tenon::onnx {

struct RuntimeGap {
  const char* op;
  int32_t first, last;  // operator sets
  tn_dtype narrow;      // of the first operand; TN_DTYPE_NONE: there is no kernel for any type
  tn_dtype wide;        // that the kernel takes instead; TN_DTYPE_NONE: none
};

/// NULL: ONNX Runtime 1.32 runs the node in this operator set, or nothing is known of it.
const RuntimeGap* runtime_gap(std::string_view op, tn_dtype first_operand, int32_t opset);
/// The node otherwise; nothing where that cannot be said in a few steps.
std::optional<Steps> runtime_form(const sdk::GraphView& graph, const sdk::Node& node,
                                  const tn_op_def* definition, int32_t opset, const RuntimeGap& gap);

}  // namespace tenon::onnx
