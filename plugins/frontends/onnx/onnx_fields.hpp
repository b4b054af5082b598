// Field numbers of ONNX's messages (onnx.proto), its enumerations, and element types both ways.
#pragma once
#include <cstdint>
#include <string>

#include "tenon/sdk/dtype.hpp"

namespace tenon::onnx {

namespace model_field {
enum : uint32_t {
  ir_version = 1,
  producer_name = 2,
  producer_version = 3,
  domain = 4,
  model_version = 5,
  doc_string = 6,
  graph = 7,
  opset_import = 8,
  metadata_props = 14,
  functions = 25
};
}
namespace opset_field {
enum : uint32_t { domain = 1, version = 2 };
}
namespace entry_field {  // StringStringEntryProto
enum : uint32_t { key = 1, value = 2 };
}
namespace graph_field {
enum : uint32_t {
  node = 1,
  name = 2,
  initializer = 5,
  doc_string = 10,
  input = 11,
  output = 12,
  value_info = 13,
  sparse_initializer = 15
};
}
namespace node_field {
enum : uint32_t {
  input = 1,
  output = 2,
  name = 3,
  op_type = 4,
  attribute = 5,
  doc_string = 6,
  domain = 7,
  overload = 8
};
}
namespace function_field {
enum : uint32_t {
  name = 1,
  input = 4,
  output = 5,
  attribute = 6,
  node = 7,
  doc_string = 8,
  opset_import = 9,
  domain = 10,
  attribute_proto = 11,
  overload = 13
};
}
namespace attribute_field {
enum : uint32_t {
  name = 1,
  f = 2,
  i = 3,
  s = 4,
  t = 5,
  g = 6,
  floats = 7,
  ints = 8,
  strings = 9,
  tensors = 10,
  graphs = 11,
  doc_string = 13,
  tp = 14,
  type_protos = 15,
  type = 20,
  ref_attr_name = 21,
  sparse_tensor = 22,
  sparse_tensors = 23
};
}
namespace attribute_type {
enum : uint32_t {
  undefined = 0,
  f = 1,
  i = 2,
  s = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,
  type_protos = 14
};
}
namespace tensor_field {
enum : uint32_t {
  dims = 1,
  data_type = 2,
  segment = 3,
  float_data = 4,
  int32_data = 5,
  string_data = 6,
  int64_data = 7,
  name = 8,
  raw_data = 9,
  double_data = 10,
  uint64_data = 11,
  doc_string = 12,
  external_data = 13,
  data_location = 14
};
}
namespace sparse_field {
enum : uint32_t { values = 1, indices = 2, dims = 3 };
}
namespace value_info_field {
enum : uint32_t { name = 1, type = 2 };
}
namespace type_field {
enum : uint32_t {
  tensor = 1,
  sequence = 4,
  map = 5,
  denotation = 6,
  opaque = 7,
  sparse_tensor = 8,
  optional = 9
};
}
namespace tensor_type_field {
enum : uint32_t { elem_type = 1, shape = 2 };
}
namespace nested_type_field {  // Sequence and Optional
enum : uint32_t { elem_type = 1 };
}
namespace shape_field {
enum : uint32_t { dim = 1 };
}
namespace dim_field {
enum : uint32_t { value = 1, param = 2, denotation = 3 };
}

// onnx-data.proto: sequences and optionals as files.
namespace sequence_field {
enum : uint32_t {
  name = 1,
  elem_type = 2,
  tensor_values = 3,
  sparse_tensor_values = 4,
  sequence_values = 5,
  map_values = 6,
  optional_values = 7
};
}
namespace optional_field {
enum : uint32_t {
  name = 1,
  elem_type = 2,
  tensor_value = 3,
  sparse_tensor_value = 4,
  sequence_value = 5,
  map_value = 6,
  optional_value = 7
};
}
namespace container_type {  // elem_type of the two messages above
enum : uint32_t { undefined = 0, tensor = 1, sparse_tensor = 2, sequence = 3, map = 4, optional = 5 };
}

/// The operator sets that the frontend reads and the exporter writes.
inline constexpr int32_t oldest_opset = 1, newest_opset = 28;

struct ElementType {
  int32_t onnx;
  tn_dtype dtype;
};
inline constexpr ElementType element_types[] = {{1, TN_FLOAT32},        {2, TN_UINT8},
                                                {3, TN_INT8},           {4, TN_UINT16},
                                                {5, TN_INT16},          {6, TN_INT32},
                                                {7, TN_INT64},          {8, TN_STRING},
                                                {9, TN_BOOL},           {10, TN_FLOAT16},
                                                {11, TN_FLOAT64},       {12, TN_UINT32},
                                                {13, TN_UINT64},        {14, TN_COMPLEX64},
                                                {15, TN_COMPLEX128},    {16, TN_BFLOAT16},
                                                {17, TN_FLOAT8_E4M3FN}, {18, TN_FLOAT8_E4M3FNUZ},
                                                {19, TN_FLOAT8_E5M2},   {20, TN_FLOAT8_E5M2FNUZ},
                                                {21, TN_UINT4},         {22, TN_INT4},
                                                {23, TN_FLOAT4_E2M1},   {24, TN_FLOAT8_E8M0},
                                                {25, TN_UINT2},         {26, TN_INT2}};

/// TN_DTYPE_NONE for a number that ONNX does not define or that Tenon has no type for.
inline tn_dtype dtype_of_onnx(int64_t number) noexcept {
  for (const auto& e : element_types)
    if (e.onnx == number) return e.dtype;
  return TN_DTYPE_NONE;
}
/// For the message about such a number: "float6e2m3 (number 27)", "number 99".
inline std::string onnx_type_text(int64_t number) {
  const std::string text = "number " + std::to_string(number);
  return number == 27 ? "float6e2m3 (" + text + ")" : number == 28 ? "float6e3m2 (" + text + ")" : text;
}
/// 0 for a type that ONNX cannot say.
inline int32_t onnx_of_dtype(tn_dtype dtype) noexcept {
  for (const auto& e : element_types)
    if (e.dtype == dtype) return e.onnx;
  return 0;
}

}  // namespace tenon::onnx
