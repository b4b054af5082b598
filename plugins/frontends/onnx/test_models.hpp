// For unit tests: ONNX messages written by hand.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "onnx_fields.hpp"

namespace tenon::onnx::testing {

using Names = std::initializer_list<std::string_view>;

inline std::string message(std::initializer_list<std::pair<uint32_t, std::string>> fields) {
  std::string out;
  protozero::pbf_writer w(out);
  for (const auto& [field, bytes] : fields) w.add_message(field, bytes);
  return out;
}
inline std::string int_attribute(std::string_view name, int64_t value) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(attribute_field::name, name.data(), name.size());
  w.add_int64(attribute_field::i, value);
  w.add_int32(attribute_field::type, attribute_type::i);
  return out;
}
inline std::string reference(std::string_view name, std::string_view to, uint32_t type) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(attribute_field::name, name.data(), name.size());
  w.add_string(attribute_field::ref_attr_name, to.data(), to.size());
  w.add_uint32(attribute_field::type, type);
  return out;
}
inline std::string message_attribute(std::string_view name, uint32_t field, uint32_t type,
                                     const std::string& value) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(attribute_field::name, name.data(), name.size());
  w.add_message(field, value);
  w.add_uint32(attribute_field::type, type);
  return out;
}
inline std::string node(std::string_view op, Names inputs, Names outputs,
                        std::initializer_list<std::string> attributes = {}, std::string_view name = {},
                        std::string_view domain = {}) {
  std::string out;
  protozero::pbf_writer w(out);
  for (auto s : inputs) w.add_string(node_field::input, s.data(), s.size());
  for (auto s : outputs) w.add_string(node_field::output, s.data(), s.size());
  if (!name.empty()) w.add_string(node_field::name, name.data(), name.size());
  w.add_string(node_field::op_type, op.data(), op.size());
  for (const auto& a : attributes) w.add_message(node_field::attribute, a);
  if (!domain.empty()) w.add_string(node_field::domain, domain.data(), domain.size());
  return out;
}
/// dims: numbers as they are, -1: the dimension has the name `named`.
inline std::string value_info(std::string_view name, int32_t type, std::initializer_list<int64_t> dims,
                              const std::string& named = "N") {
  std::string shape;
  protozero::pbf_writer sw(shape);
  for (int64_t d : dims) {
    std::string dim;
    protozero::pbf_writer dw(dim);
    if (d == -1)
      dw.add_string(dim_field::param, named);
    else
      dw.add_int64(dim_field::value, d);
    sw.add_message(shape_field::dim, dim);
  }
  std::string tensor;
  protozero::pbf_writer tw(tensor);
  tw.add_int32(tensor_type_field::elem_type, type);
  tw.add_message(tensor_type_field::shape, shape);
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(value_info_field::name, name.data(), name.size());
  w.add_message(value_info_field::type, message({{type_field::tensor, tensor}}));
  return out;
}
inline std::string raw_tensor(std::string_view name, int32_t type, const std::vector<int64_t>& dims,
                              const std::string& raw) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_packed_int64(tensor_field::dims, dims.begin(), dims.end());
  w.add_int32(tensor_field::data_type, type);
  w.add_string(tensor_field::name, name.data(), name.size());
  w.add_bytes(tensor_field::raw_data, raw);
  return out;
}
inline std::string floats(const std::vector<float>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * 4};
}
inline std::string int64s(const std::vector<int64_t>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * 8};
}

struct GraphParts {
  std::vector<std::string> nodes, initializers, sparse, inputs, outputs, value_infos;
};
inline std::string graph(const GraphParts& p) {
  std::string out;
  protozero::pbf_writer w(out);
  for (const auto& s : p.nodes) w.add_message(graph_field::node, s);
  w.add_string(graph_field::name, "g");
  for (const auto& s : p.initializers) w.add_message(graph_field::initializer, s);
  for (const auto& s : p.sparse) w.add_message(graph_field::sparse_initializer, s);
  for (const auto& s : p.inputs) w.add_message(graph_field::input, s);
  for (const auto& s : p.outputs) w.add_message(graph_field::output, s);
  for (const auto& s : p.value_infos) w.add_message(graph_field::value_info, s);
  return out;
}
inline std::string opset(std::string_view domain, int64_t version) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(opset_field::domain, domain.data(), domain.size());
  w.add_int64(opset_field::version, version);
  return out;
}
inline std::string model(const std::string& graph_bytes, int64_t version = 17, int64_t ir = 8,
                         const std::vector<std::string>& functions = {},
                         const std::vector<std::string>& more_opsets = {}) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_int64(model_field::ir_version, ir);
  w.add_string(model_field::producer_name, "test");
  w.add_message(model_field::graph, graph_bytes);
  w.add_message(model_field::opset_import, opset("", version));
  for (const auto& o : more_opsets) w.add_message(model_field::opset_import, o);
  for (const auto& f : functions) w.add_message(model_field::functions, f);
  return out;
}
inline std::string function(std::string_view name, Names inputs, Names outputs,
                            const std::vector<std::string>& nodes, Names attributes = {}) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(function_field::name, name.data(), name.size());
  w.add_string(function_field::domain, "local");
  for (auto s : inputs) w.add_string(function_field::input, s.data(), s.size());
  for (auto s : outputs) w.add_string(function_field::output, s.data(), s.size());
  for (auto s : attributes) w.add_string(function_field::attribute, s.data(), s.size());
  for (const auto& n : nodes) w.add_message(function_field::node, n);
  w.add_message(function_field::opset_import, opset("", 17));
  return out;
}

}  // namespace tenon::onnx::testing
