#include "tensor_writer.hpp"

#include "onnx_fields.hpp"
#include "tenon/sdk/tensor.hpp"
#include "wire_writer.hpp"

namespace tenon::onnx {
namespace {
int32_t element_number(tn_dtype dtype) {
  const int32_t number = onnx_of_dtype(dtype);
  if (!number)
    throw sdk::Failure(TN_ERR_UNSUPPORTED,
                       std::string("ONNX has no element type for ") + sdk::dtype_name(dtype));
  return number;
}
void put_entry(std::string& out, uint32_t field, std::string_view key, std::string_view value) {
  std::string entry;
  put_bytes(entry, entry_field::key, key);
  put_bytes(entry, entry_field::value, value);
  put_bytes(out, field, entry);
}
}  // namespace

std::string tensor_head(std::string_view name, const tn_tensor& t, const ExternalPlace* external) {
  std::string out;
  for (int32_t i = 0; i < t.rank; ++i) put_int(out, tensor_field::dims, t.dims[i]);
  put_int(out, tensor_field::data_type, element_number(t.dtype));
  if (!name.empty()) put_bytes(out, tensor_field::name, name);
  if (t.dtype == TN_STRING) {
    const auto* elements = static_cast<const tn_str*>(t.data);
    for (uint64_t i = 0; i < t.bytes / sizeof(tn_str); ++i)
      put_bytes(out, tensor_field::string_data, sdk::view(elements[i]));
  } else if (external) {
    put_entry(out, tensor_field::external_data, "location", external->file);
    put_entry(out, tensor_field::external_data, "offset", std::to_string(external->offset));
    put_entry(out, tensor_field::external_data, "length", std::to_string(t.bytes));
    put_int(out, tensor_field::data_location, 1);
  } else {
    put_length(out, tensor_field::raw_data, t.bytes);
  }
  return out;
}

std::string tensor_message(std::string_view name, const tn_tensor& t) {
  std::string out = tensor_head(name, t);
  if (has_tail(t, false) && t.bytes) out.append(static_cast<const char*>(t.data), t.bytes);
  return out;
}

std::string type_message(const tn_type& type, const tn_symbols_api* symbols, tn_graph* graph) {
  if (type.kind == TN_KIND_NONE) return {};
  std::string tensor;
  if (type.dtype != TN_DTYPE_NONE) put_int(tensor, tensor_type_field::elem_type, element_number(type.dtype));
  if (type.rank >= 0) {
    std::string shape;
    for (int32_t i = 0; i < type.rank; ++i) {
      std::string dim;
      int64_t number = type.dims[i];
      if (number >= 0 || (symbols && symbols->as_number(graph, type.dims[i], &number) && number >= 0))
        put_int(dim, dim_field::value, number);
      else if (symbols)
        put_bytes(dim, dim_field::param, sdk::view(symbols->text(graph, type.dims[i])));
      put_bytes(shape, shape_field::dim, dim);
    }
    put_bytes(tensor, tensor_type_field::shape, shape);
  }
  std::string out;
  put_bytes(out, type_field::tensor, tensor);
  const auto wrap = [&](uint32_t field) {
    std::string element, outer;
    put_bytes(element, nested_type_field::elem_type, out);
    put_bytes(outer, field, element);
    out = std::move(outer);
  };
  if (type.kind == TN_KIND_SEQUENCE || type.kind == TN_KIND_OPTIONAL_SEQUENCE) wrap(type_field::sequence);
  if (type.kind == TN_KIND_OPTIONAL || type.kind == TN_KIND_OPTIONAL_SEQUENCE) wrap(type_field::optional);
  return out;
}

}  // namespace tenon::onnx
