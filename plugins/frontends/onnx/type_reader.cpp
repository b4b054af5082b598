#include "type_reader.hpp"

#include <algorithm>
#include <cctype>

#include "onnx_fields.hpp"

namespace tenon::onnx {
namespace {
/// tensor -> sequence or optional; sequence -> optional of a sequence.
constexpr int deepest_type = 8;

[[noreturn]] void unsupported(const std::string& value, const char* what) {
  throw sdk::Failure(TN_ERR_UNSUPPORTED, "the type of '" + value + "' is " + what +
                                             ", which Tenon has no values for; supported are tensors, "
                                             "sequences of tensors, and optionals of both");
}
}  // namespace

tn_dim TypeReader::read_dim(Reader m, const std::string& value, size_t axis) const {
  bool has_value = false;
  int64_t number = 0;
  std::string_view name;
  while (m.next()) {
    if (m.field() == dim_field::value)
      has_value = true, number = m.integer();
    else if (m.field() == dim_field::param)
      has_value = false, name = m.text();
    else
      m.skip();
  }
  if (has_value && number >= 0) return number;
  // Some exporters write a number below zero, or a name without a letter ("?", "-1"), for "not known".
  const bool named = std::any_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '_' || byte >= 0x80 || std::isalpha(byte);
  });
  if (named && !has_value) return symbols_->named(graph_, sdk::str(name));
  const std::string hint = value + "_dim" + std::to_string(axis);
  return symbols_->fresh(graph_, sdk::str(hint), 0, TN_DIM_MAX);
}

void TypeReader::read_tensor(Reader m, Type& out, const std::string& value, bool with_shape) const {
  out.type.dtype = TN_DTYPE_NONE;
  while (m.next()) {
    if (m.field() == tensor_type_field::elem_type) {
      const int64_t number = m.integer();
      out.type.dtype = dtype_of_onnx(number);
      if (number != 0 && out.type.dtype == TN_DTYPE_NONE)
        throw sdk::Failure(
            TN_ERR_UNSUPPORTED,
            "the element type of '" + value + "' is " + onnx_type_text(number) +
                ", which Tenon has no values for; cast it to another type where the model is made");
    } else if (m.field() == tensor_type_field::shape && with_shape) {
      Reader shape = m.message();
      out.dims.clear();
      while (shape.next()) {
        if (shape.field() == shape_field::dim)
          out.dims.push_back(read_dim(shape.message(), value, out.dims.size()));
        else
          shape.skip();
        if (out.dims.size() > 64)
          throw sdk::Failure(TN_ERR_LIMIT, "'" + value + "' has more than 64 dimensions");
      }
      out.type.rank = static_cast<int32_t>(out.dims.size());
    } else {
      m.skip();
    }
  }
}

TypeReader::Type TypeReader::read(Reader m, const std::string& value, bool with_shape) const {
  Type out;
  int sequences = 0, optionals = 0;
  bool inner = true;
  for (int depth = 0; inner; ++depth) {
    if (depth > deepest_type) unsupported(value, "nested too deep");
    inner = false;
    Reader next;
    while (m.next()) {
      switch (m.field()) {
        case type_field::tensor:
          read_tensor(m.message(), out, value, with_shape);
          out.type.kind = optionals   ? (sequences ? TN_KIND_OPTIONAL_SEQUENCE : TN_KIND_OPTIONAL)
                          : sequences ? TN_KIND_SEQUENCE
                                      : TN_KIND_TENSOR;
          break;
        case type_field::sequence:
        case type_field::optional: {
          const bool sequence = m.field() == type_field::sequence;
          if (sequence ? ++sequences > 1 : (++optionals > 1 || sequences > 0))
            unsupported(value, sequence ? "a sequence of sequences" : "an optional inside another type");
          Reader element = m.message();
          while (element.next()) {
            if (element.field() == nested_type_field::elem_type)
              next = element.message(), inner = true;
            else
              element.skip();
          }
          out.type.kind =
              optionals ? (sequences ? TN_KIND_OPTIONAL_SEQUENCE : TN_KIND_OPTIONAL) : TN_KIND_SEQUENCE;
          break;
        }
        case type_field::map:
          unsupported(value, "a map");
        case type_field::sparse_tensor:
          unsupported(value, "a sparse tensor");
        case type_field::opaque:
          unsupported(value, "opaque");
        default:
          m.skip();
      }
    }
    m = next;
  }
  return out;
}

}  // namespace tenon::onnx
