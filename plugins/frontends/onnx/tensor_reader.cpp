#include "tensor_reader.hpp"

#include <limits>

#include "onnx_fields.hpp"

namespace tenon::onnx {
namespace {

using sdk::format;

[[noreturn]] void wrong(const TensorMessage& t, const std::string& text, tn_status status = TN_ERR_INVALID) {
  throw sdk::Failure(status, t.label() + ": " + text);
}
unsigned long long u(uint64_t v) { return v; }
long long s(int64_t v) { return v; }

void read_external_entry(Reader entry, TensorMessage& t) {
  std::string_view key, value;
  while (entry.next()) {
    if (entry.field() == entry_field::key)
      key = entry.text();
    else if (entry.field() == entry_field::value)
      value = entry.text();
    else
      entry.skip();
  }
  const auto number = [&] {
    uint64_t n = 0;
    bool good = !value.empty();
    for (char c : value)
      good = good && c >= '0' && c <= '9' && !__builtin_mul_overflow(n, uint64_t{10}, &n) &&
             !__builtin_add_overflow(n, static_cast<uint64_t>(c - '0'), &n);
    if (!good)
      wrong(t, "the external data's " + std::string(key) + " is '" + std::string(value) +
                   "', expected a number of bytes");
    return n;
  };
  if (key == "location")
    t.location = value;
  else if (key == "offset")
    t.external_offset = number();
  else if (key == "length")
    t.external_length = number();
  // "checksum" is optional and "basepath" was never specified; neither changes the meaning.
}

uint64_t total_bytes(const std::vector<Bytes>& pieces) {
  uint64_t n = 0;
  for (Bytes b : pieces) n += b.size;
  return n;
}

/// How many entries of the typed field hold so many elements, and which field it is.
struct Typed {
  const char* field;
  uint64_t found;
  uint64_t expected;
};
Typed typed_field(const TensorMessage& t) {
  const auto n = static_cast<uint64_t>(t.elements);
  switch (t.dtype) {
    case TN_FLOAT32:
      return {"float_data", total_bytes(t.floats) / 4, n};
    case TN_COMPLEX64:
      return {"float_data", total_bytes(t.floats) / 4, 2 * n};
    case TN_FLOAT64:
      return {"double_data", total_bytes(t.doubles) / 8, n};
    case TN_COMPLEX128:
      return {"double_data", total_bytes(t.doubles) / 8, 2 * n};
    case TN_INT64:
      return {"int64_data", t.int64s.size(), n};
    case TN_UINT32:
    case TN_UINT64:
      return {"uint64_data", t.uint64s.size(), n};
    case TN_STRING:
      return {"string_data", t.strings.size(), n};
    default:
      return {"int32_data", t.int32s.size(), TN_DTYPE_BITS(t.dtype) < 8 ? t.bytes : n};
  }
}

void check_contents(TensorMessage& t) {
  if (t.external) {
    if (t.dtype == TN_STRING) wrong(t, "strings cannot be external data; store them as string_data");
    if (t.location.empty()) wrong(t, "its data is external, but no location (file name) is given");
    if (t.external_length && *t.external_length != t.bytes)
      wrong(t, format("the external data's length is %llu bytes, expected %llu bytes for its shape and type; "
                      "the model and its data file do not belong together",
                      u(*t.external_length), u(t.bytes)));
    return;
  }
  if (t.has_raw) {
    if (t.dtype == TN_STRING) wrong(t, "strings cannot be raw_data; store them as string_data");
    if (t.raw.size != t.bytes)
      wrong(t, format("raw_data has a size of %llu bytes, expected %llu bytes for its shape and type; the "
                      "file is damaged or was written wrongly",
                      u(t.raw.size), u(t.bytes)));
    return;
  }
  const Typed typed = typed_field(t);
  if (typed.found != typed.expected)
    wrong(t, format("found %llu elements in %s and no raw_data, expected %llu for its shape; the size of the "
                    "data and the shape of the tensor do not match",
                    u(typed.found), typed.field, u(typed.expected)));
}

void join(const std::vector<Bytes>& pieces, char* to) {
  for (Bytes b : pieces) {
    if (b.size) std::memcpy(to, b.data, b.size);
    to += b.size;
  }
}

template <class T>
void store_integers(const TensorMessage& t, const std::vector<int64_t>& from, int64_t low, int64_t high,
                    T* to) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] < low || from[i] > high)
      wrong(t, format("element %llu is %lld, expected a value from %lld to %lld", u(i), s(from[i]), s(low),
                      s(high)));
    to[i] = static_cast<T>(from[i]);
  }
}

}  // namespace

std::string TensorMessage::label() const {
  std::string text = name.empty() ? std::string("unnamed tensor") : "tensor '" + std::string(name) + "'";
  if (dtype != TN_DTYPE_NONE)
    text += std::string(" (") + sdk::dtype_name(dtype) + " " + sdk::dims_text(dims) + ")";
  return text;
}

TensorMessage read_tensor(Reader m, std::string_view fallback_name) {
  TensorMessage t;
  int64_t type = 0;
  bool segmented = false;
  std::vector<Bytes> entries;
  while (m.next()) {
    switch (m.field()) {
      case tensor_field::dims:
        m.integers(t.dims);
        break;
      case tensor_field::data_type:
        type = m.integer();
        break;
      case tensor_field::segment:
        segmented = true;
        m.skip();
        break;
      case tensor_field::float_data:
        t.floats.push_back(m.fixed_piece<float>(Reader::Wire::fixed32));
        break;
      case tensor_field::int32_data:
        m.integers(t.int32s);
        break;
      case tensor_field::string_data:
        t.strings.push_back(m.bytes());
        break;
      case tensor_field::int64_data:
        m.integers(t.int64s);
        break;
      case tensor_field::name:
        t.name = m.text();
        break;
      case tensor_field::raw_data:
        t.raw = m.bytes();
        t.has_raw = true;
        break;
      case tensor_field::double_data:
        t.doubles.push_back(m.fixed_piece<double>(Reader::Wire::fixed64));
        break;
      case tensor_field::uint64_data:
        m.integers(t.uint64s);
        break;
      case tensor_field::external_data:
        entries.push_back(m.bytes());
        break;
      case tensor_field::data_location:
        t.external = m.integer() == 1;
        break;
      default:
        m.skip();
    }
  }
  if (t.name.empty()) t.name = fallback_name;
  t.dtype = dtype_of_onnx(type);
  if (t.dtype == TN_DTYPE_NONE)
    wrong(t,
          "its element type is " + onnx_type_text(type) +
              ", which Tenon has no values for; cast it to another type where the model is made",
          TN_ERR_UNSUPPORTED);
  if (segmented)
    wrong(t, "it is stored in segments, which no ONNX version uses; export the model again",
          TN_ERR_UNSUPPORTED);
  if (t.dims.size() > 64)
    wrong(t, format("it has %llu dimensions, expected at most 64", u(t.dims.size())), TN_ERR_LIMIT);
  for (int64_t d : t.dims)
    if (d < 0) wrong(t, format("a dimension is %lld; the dimensions of a tensor cannot be negative", s(d)));
  try {
    t.elements = sdk::element_count(t.dims);
    t.bytes = t.dtype == TN_STRING ? static_cast<uint64_t>(sdk::checked_mul(t.elements, 16))
                                   : sdk::packed_bytes(t.dtype, t.elements);
  } catch (const sdk::Failure&) {
    wrong(t, "its shape is too large: the number of bytes overflows 63 bits", TN_ERR_LIMIT);
  }
  for (Bytes entry : entries) read_external_entry(Reader(entry, m.file_start()), t);
  check_contents(t);
  return t;
}

std::optional<Bytes> bytes_in_file(const TensorMessage& t) {
  if (t.external) return std::nullopt;
  if (!t.has_raw) {  // a packed field of floats has the same bytes as raw_data
    const auto& pieces = t.dtype == TN_FLOAT32 || t.dtype == TN_COMPLEX64 ? t.floats : t.doubles;
    const bool floating = TN_DTYPE_CODE(t.dtype) == 5 || t.dtype == TN_FLOAT32 || t.dtype == TN_FLOAT64;
    return floating && pieces.size() == 1 ? std::optional<Bytes>(pieces[0]) : std::nullopt;
  }
  if (t.dtype == TN_BOOL)
    for (uint64_t i = 0; i < t.raw.size; ++i)
      if (static_cast<unsigned char>(t.raw.data[i]) > 1) return std::nullopt;
  return t.raw;
}

sdk::OwnedTensor copy_tensor(const TensorMessage& t) {
  sdk::OwnedTensor out(t.dtype, t.dims);
  if (t.has_raw) {
    if (t.raw.size) std::memcpy(out.data<char>(), t.raw.data, t.raw.size);
    if (t.dtype == TN_BOOL)  // any byte but 0 and 1 would be undefined behaviour in C++'s bool
      for (uint64_t i = 0; i < out.bytes(); ++i) out.data<uint8_t>()[i] = out.data<uint8_t>()[i] != 0;
    return out;
  }
  switch (t.dtype) {
    case TN_FLOAT32:
    case TN_COMPLEX64:
      join(t.floats, out.data<char>());
      break;
    case TN_FLOAT64:
    case TN_COMPLEX128:
      join(t.doubles, out.data<char>());
      break;
    case TN_INT64:
      for (size_t i = 0; i < t.int64s.size(); ++i) out.data<int64_t>()[i] = t.int64s[i];
      break;
    case TN_UINT64:
      for (size_t i = 0; i < t.uint64s.size(); ++i)
        out.data<uint64_t>()[i] = static_cast<uint64_t>(t.uint64s[i]);
      break;
    case TN_UINT32:
      store_integers(t, t.uint64s, 0, UINT32_MAX, out.data<uint32_t>());
      break;
    case TN_INT32:
      store_integers(t, t.int32s, INT32_MIN, INT32_MAX, out.data<int32_t>());
      break;
    case TN_INT16:
      store_integers(t, t.int32s, INT16_MIN, INT16_MAX, out.data<int16_t>());
      break;
    case TN_INT8:
      store_integers(t, t.int32s, INT8_MIN, INT8_MAX, out.data<int8_t>());
      break;
    case TN_UINT16:
    case TN_FLOAT16:
    case TN_BFLOAT16:
      store_integers(t, t.int32s, 0, UINT16_MAX, out.data<uint16_t>());
      break;
    case TN_BOOL:
      store_integers(t, t.int32s, 0, 1, out.data<uint8_t>());
      break;
    case TN_INT4:
    case TN_INT2:
      store_integers(t, t.int32s, INT8_MIN, UINT8_MAX, out.data<uint8_t>());
      break;
    default:
      store_integers(t, t.int32s, 0, UINT8_MAX, out.data<uint8_t>());  // uint8, float8, uint4, float4: bytes
  }
  return out;
}

std::vector<tn_str> string_elements(const TensorMessage& t) {
  std::vector<tn_str> out;
  out.reserve(t.strings.size());
  for (Bytes b : t.strings) out.push_back({b.data, static_cast<size_t>(b.size)});
  return out;
}

namespace {

/// Position of entry `k` in the dense tensor; checks every coordinate.
int64_t dense_position(const TensorMessage& values, const sdk::OwnedTensor& indices, const sdk::Dims& dims,
                       int64_t dense_count, int64_t k) {
  const int64_t* index = indices.data<int64_t>();
  if (indices.dims().size() == 1) {
    if (index[k] < 0 || index[k] >= dense_count)
      wrong(values, format("sparse index %lld at position [%lld] is out of range, expected 0 to %lld",
                           s(index[k]), s(k), s(dense_count - 1)));
    return index[k];
  }
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t position = 0;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t i = index[k * rank + axis], size = dims[static_cast<size_t>(axis)];
    if (i < 0 || i >= size)
      wrong(values, format("sparse index %lld at position [%lld,%lld] is out of range, expected 0 to %lld",
                           s(i), s(k), s(axis), s(size - 1)));
    position = position * size + i;
  }
  return position;
}

/// Elements of less than a byte are packed from the lowest bits up; the target's bits are zero before.
void copy_element(const char* from, size_t from_index, uint32_t bits, char* to, size_t to_index) {
  if (bits >= 8) {
    const size_t width = bits / 8;
    std::memcpy(to + to_index * width, from + from_index * width, width);
    return;
  }
  const size_t per_byte = 8 / bits;
  const auto byte = static_cast<unsigned char>(from[from_index / per_byte]);
  const uint32_t element = (byte >> (bits * (from_index % per_byte))) & ((1u << bits) - 1);
  char& target = to[to_index / per_byte];
  target =
      static_cast<char>(static_cast<unsigned char>(target) | (element << (bits * (to_index % per_byte))));
}

}  // namespace

SparseMessage read_sparse_tensor(Reader m, const tn_limits_api* limits, uint64_t& left) {
  SparseMessage result;
  std::optional<TensorMessage> values, indices;
  sdk::Dims dims;
  while (m.next()) {
    switch (m.field()) {
      case sparse_field::values:
        values = read_tensor(m.message());
        break;
      case sparse_field::indices:
        indices = read_tensor(m.message());
        break;
      case sparse_field::dims:
        m.integers(dims);
        break;
      default:
        m.skip();
    }
  }
  if (!values || !indices)
    throw sdk::Failure(TN_ERR_INVALID,
                       std::string("a sparse tensor has no ") + (values ? "indices" : "values"), m.place());
  const TensorMessage& v = *values;
  if (v.external || indices->external)
    wrong(v, "a sparse tensor with external data is not supported; export it dense", TN_ERR_UNSUPPORTED);
  if (v.dtype == TN_STRING)
    wrong(v, "sparse tensors of strings are not supported; export it dense", TN_ERR_UNSUPPORTED);
  if (v.dims.size() != 1)
    wrong(v, "the values of a sparse tensor must have one dimension, found shape " + sdk::dims_text(v.dims));
  if (dims.empty()) wrong(v, "a sparse tensor has no dims of its own; expected the dense shape");
  for (int64_t d : dims)
    if (d < 0)
      wrong(v, format("a dense dimension of the sparse tensor is %lld; it cannot be negative", s(d)));
  uint64_t bytes = 0;
  int64_t dense_count = 0;
  try {
    dense_count = sdk::element_count(dims);
    bytes = sdk::packed_bytes(v.dtype, dense_count);
  } catch (const sdk::Failure&) {
    bytes = UINT64_MAX;
  }
  if (bytes > left)
    wrong(v,
          "the dense shape " + sdk::dims_text(dims) +
              format(" of the sparse tensor is too large, expected at most %llu bytes for all sparse tensors "
                     "of a model, of which %llu are left; store it dense",
                     u(largest_dense_bytes), u(left)),
          TN_ERR_LIMIT);
  left -= bytes;
  if (limits) {
    sdk::DiagBuffer said;
    const std::string what = "the dense copy of sparse " + v.label();
    const tn_status status = limits->may_allocate(bytes, sdk::str(what), said.raw());
    if (status != TN_OK) throw sdk::Failure(status, said.text());
  }
  const int64_t entries = v.dims[0];
  const sdk::Dims linear{entries}, coordinates{entries, static_cast<int64_t>(dims.size())};
  if (indices->dtype != TN_INT64 || (indices->dims != linear && indices->dims != coordinates))
    wrong(v, "the indices of the sparse tensor are " + std::string(sdk::dtype_name(indices->dtype)) + " " +
                 sdk::dims_text(indices->dims) + ", expected int64 of shape " + sdk::dims_text(linear) +
                 " or " + sdk::dims_text(coordinates));
  const sdk::OwnedTensor index = copy_tensor(*indices), value = copy_tensor(v);
  result.dense = sdk::OwnedTensor(v.dtype, dims);
  const uint32_t bits = TN_DTYPE_BITS(v.dtype);
  int64_t previous = -1;
  for (int64_t k = 0; k < entries; ++k) {
    const int64_t position = dense_position(v, index, dims, dense_count, k);
    if (position <= previous)
      wrong(v, format("sparse index at position [%lld] does not come after the one before it; indices must "
                      "ascend without repetition",
                      s(k)));
    previous = position;
    copy_element(value.data<char>(), static_cast<size_t>(k), bits, result.dense.data<char>(),
                 static_cast<size_t>(position));
  }
  result.values = std::move(*values);
  return result;
}

}  // namespace tenon::onnx
