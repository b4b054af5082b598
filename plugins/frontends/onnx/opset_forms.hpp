// From which operator set of ai.onnx on a node can be written in the form it has.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "steps.hpp"
#include "tenon/abi/ops.h"

namespace tenon::onnx {

/// The exporter writes no older operator set: since 7 operands broadcast as they do today.
inline constexpr int32_t oldest_written = 7;
/// Unless it is asked to, it writes none older than this: from here on runtimes agree, and the axes of
/// Squeeze, Unsqueeze and ReduceSum are operands.
inline constexpr int32_t oldest_chosen = 13;
/// Local functions need IR version 8, which came with this operator set.
inline constexpr int32_t functions_since = 15;

/// The lowest opset that can say this ai.onnx node as it is, and what asks for it ("its operand 1",
/// "attribute 'start'"). `definition` may be NULL: the node then counts as written in its own op_version, and
/// cannot be moved.
struct Requirement {
  int32_t opset = oldest_written;
  std::string reason;
};
Requirement required_opset(const sdk::GraphView& graph, const sdk::Node& node, const tn_op_def* definition);
/// The same for what older_form made of a node: a form whose meaning today's definition does not have.
Requirement required_opset(const sdk::GraphView& graph, const Step& step, const tn_op_def* definition);

/// The opset since which this attribute exists; 0: always (as far back as is ever written).
int32_t attribute_since(std::string_view op, std::string_view attribute);
/// The attributes of the definition in force at this opset that today's does not have.
std::vector<std::string_view> older_attributes(std::string_view op, int32_t opset);
/// Does the attribute have the value that the definition gives it when it is left out?
bool is_default(const tn_attr& attribute, const tn_op_def* definition, std::string_view name);
/// Is the same definition of the operator in force at both opsets?
bool same_definition(std::string_view op, int32_t one, int32_t other);

/// The opset since which Identity takes values of this tn_type_kind.
int32_t identity_since(uint32_t kind);

/// The IR version that belongs to an opset.
int32_t ir_version_of(int32_t opset);

}  // namespace tenon::onnx
