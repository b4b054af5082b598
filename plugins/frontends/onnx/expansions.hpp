// Activations that newer operator sets have as one operator, written as the older operators they are made of.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tenon/sdk/graph.hpp"

namespace tenon::onnx {

/// Swish, Gelu and Mish on a known type of floats can be written in opset 13.
bool can_expand(const sdk::GraphView& graph, const sdk::Node& node);
/// NodeProtos that compute `output` from `input`; `fresh` makes names for what lies between.
std::vector<std::string> expand(const sdk::GraphView& graph, const sdk::Node& node, const std::string& input,
                                const std::string& output, const std::function<std::string()>& fresh);

/// A NodeProto of ai.onnx with these operands and one result.
std::string plain_node(std::string_view op, const std::vector<std::string>& inputs,
                       const std::string& output);
/// A Constant node.
std::string constant_node(const std::string& name, const tn_tensor& tensor);

}  // namespace tenon::onnx
