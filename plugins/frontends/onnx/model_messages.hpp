// The model's messages decoded into flat arrays: names, nodes and attributes, all borrowed from the mapped
// file. Tensors and types stay undecoded (Bytes) until they are needed.
#pragma once
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wire_reader.hpp"

namespace tenon::onnx {

/// Subgraphs may be nested this deep; protobuf's own readers stop at 100 messages, which is fewer.
inline constexpr int deepest_nesting = 64;

struct GraphMessage;

struct AttributeMessage {
  std::string_view name;
  std::string_view reference;  // ref_attr_name: takes the value of this attribute of the function around it
  uint32_t type = 0;           // attribute_type; inferred from the field present when the file omits it
  Bytes message;
  GraphMessage* graph = nullptr;  // of type graph; owned by the block
};

struct NodeMessage {
  std::string_view op_type, domain, name, overload;
  uint32_t first_input = 0, input_count = 0;
  uint32_t first_output = 0, output_count = 0;
  uint32_t first_attribute = 0, attribute_count = 0;
};

/// A list of nodes with what they point at: the body of a graph or of a function.
struct Block {
  std::vector<NodeMessage> nodes;
  std::vector<std::string_view> names;  // operands and results of all nodes
  std::vector<AttributeMessage> attributes;
  std::vector<std::unique_ptr<GraphMessage>> subgraphs;

  sdk::Span<const std::string_view> inputs(const NodeMessage& n) const {
    return {names.data() + n.first_input, n.input_count};
  }
  sdk::Span<const std::string_view> outputs(const NodeMessage& n) const {
    return {names.data() + n.first_output, n.output_count};
  }
  sdk::Span<const AttributeMessage> attributes_of(const NodeMessage& n) const {
    return {attributes.data() + n.first_attribute, n.attribute_count};
  }
};

struct ValueInfoMessage {
  std::string_view name;
  Bytes type;  // TypeProto; empty when not given
};

struct GraphMessage {
  Block block;
  std::string_view name;
  std::vector<Bytes> initializers, sparse_initializers;
  std::vector<ValueInfoMessage> inputs, outputs, value_infos;
  std::vector<std::string_view> initializer_names, sparse_names;  // as `initializers`, `sparse_initializers`
  /// Of subgraphs: names read here or deeper that nothing in here defines.
  std::vector<std::string_view> captures;
};

using Opsets = std::unordered_map<std::string_view, int64_t>;  // by domain, "" for ai.onnx

struct FunctionMessage {
  Block block;
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<AttributeMessage> defaults;  // attribute_proto
  Opsets opsets;
  bool active = false;  // being inlined right now
};

struct ModelMessage {
  int64_t ir_version = 0, model_version = 0;
  std::string_view producer_name, producer_version, domain, doc_string;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
  Opsets opsets;
  std::unique_ptr<GraphMessage> graph;
  std::vector<std::unique_ptr<FunctionMessage>> functions;
};

/// "ai.onnx" is another name of the default domain.
inline std::string_view canonical_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

ModelMessage decode_model(Bytes file);

/// For messages: "/conv1/Conv", or "unnamed Conv node 17".
std::string label(const NodeMessage& node, const Block& block);

}  // namespace tenon::onnx
