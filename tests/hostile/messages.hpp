// What the tables of this folder are written with, beside the frontend's own test_models.hpp.
#pragma once
#include "test_models.hpp"

namespace tenon::hostile {

using onnx::testing::floats;
using onnx::testing::graph;
using onnx::testing::GraphParts;
using onnx::testing::int64s;
using onnx::testing::int_attribute;
using onnx::testing::message;
using onnx::testing::message_attribute;
using onnx::testing::model;
using onnx::testing::node;
using onnx::testing::raw_tensor;
using onnx::testing::value_info;

inline std::string ints_attribute(std::string_view name, const std::vector<int64_t>& values) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(onnx::attribute_field::name, name.data(), name.size());
  for (const int64_t value : values) w.add_int64(onnx::attribute_field::ints, value);
  w.add_int32(onnx::attribute_field::type, onnx::attribute_type::ints);
  return out;
}
inline std::string text_attribute(std::string_view name, std::string_view value) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(onnx::attribute_field::name, name.data(), name.size());
  w.add_string(onnx::attribute_field::s, value.data(), value.size());
  w.add_int32(onnx::attribute_field::type, onnx::attribute_type::s);
  return out;
}
inline std::string graph_attribute(std::string_view name, const std::string& bytes) {
  return message_attribute(name, onnx::attribute_field::g, onnx::attribute_type::graph, bytes);
}
/// Numbers of a type: 1 float32, 7 int64.
inline std::string shape(std::string_view name, const std::vector<int64_t>& values) {
  return raw_tensor(name, 7, {static_cast<int64_t>(values.size())}, int64s(values));
}
inline std::string scalar(std::string_view name, int64_t value) {
  return raw_tensor(name, 7, {}, int64s({value}));
}
inline std::string typed(std::string_view name, int32_t type) {  // of any shape
  std::string tensor;
  protozero::pbf_writer(tensor).add_int32(onnx::tensor_type_field::elem_type, type);
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(onnx::value_info_field::name, name.data(), name.size());
  w.add_message(onnx::value_info_field::type, message({{onnx::type_field::tensor, tensor}}));
  return out;
}
const std::string x2 = value_info("x", 1, {2});
const std::string y = typed("y", 1);

/// A model whose nodes make "y" of "x", float32[2].
inline std::string of_nodes(std::vector<std::string> nodes, std::vector<std::string> initializers = {},
                            int64_t opset = 17) {
  return model(graph({std::move(nodes), std::move(initializers), {}, {x2}, {y}, {}}), opset);
}

}  // namespace tenon::hostile
