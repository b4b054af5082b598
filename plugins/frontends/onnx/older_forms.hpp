// Today's nodes in the forms of older operator sets: operands that were attributes, defaults that were
// others, operators that had another name.
#pragma once
#include <optional>

#include "opset_forms.hpp"

namespace tenon::onnx {

/// The node as `opset` says it, or nothing; `why` then has what stands against it, if more than the
/// requirement says ("its axes are computed").
std::optional<Steps> older_form(const sdk::GraphView& graph, const sdk::Node& node,
                                const tn_op_def* definition, int32_t opset, std::string& why);

}  // namespace tenon::onnx
