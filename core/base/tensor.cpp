#include "core/base/tensor.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "core/base/diagnostics.hpp"
#include "core/base/text.hpp"

namespace tenon {

namespace {
struct NamedType {
  tn_dtype dtype;
  std::string_view name;
};
constexpr NamedType named_types[] = {{TN_FLOAT32, "float32"},
                                     {TN_INT64, "int64"},
                                     {TN_INT32, "int32"},
                                     {TN_BOOL, "bool"},
                                     {TN_UINT8, "uint8"},
                                     {TN_INT8, "int8"},
                                     {TN_FLOAT16, "float16"},
                                     {TN_FLOAT64, "float64"},
                                     {TN_BFLOAT16, "bfloat16"},
                                     {TN_STRING, "string"},
                                     {TN_INT16, "int16"},
                                     {TN_UINT16, "uint16"},
                                     {TN_UINT32, "uint32"},
                                     {TN_UINT64, "uint64"},
                                     {TN_INT4, "int4"},
                                     {TN_UINT4, "uint4"},
                                     {TN_INT2, "int2"},
                                     {TN_UINT2, "uint2"},
                                     {TN_COMPLEX64, "complex64"},
                                     {TN_COMPLEX128, "complex128"},
                                     {TN_FLOAT8_E4M3FN, "float8e4m3fn"},
                                     {TN_FLOAT8_E4M3FNUZ, "float8e4m3fnuz"},
                                     {TN_FLOAT8_E5M2, "float8e5m2"},
                                     {TN_FLOAT8_E5M2FNUZ, "float8e5m2fnuz"},
                                     {TN_FLOAT8_E8M0, "float8e8m0"},
                                     {TN_FLOAT4_E2M1, "float4e2m1"},
                                     {TN_DTYPE_NONE, "none"}};
}  // namespace

std::string dtype_name(tn_dtype dtype) {
  for (const auto& named : named_types)
    if (named.dtype == dtype) return std::string(named.name);
  return fmt::format("dtype({},{})", TN_DTYPE_CODE(dtype), TN_DTYPE_BITS(dtype));
}
std::optional<tn_dtype> dtype_from_name(std::string_view name) {
  for (const auto& named : named_types)
    if (named.name == name) return named.dtype;
  // ONNX's and C's words for the same.
  if (name == "float") return TN_FLOAT32;
  if (name == "double") return TN_FLOAT64;
  return std::nullopt;
}
bool dtype_is_known(tn_dtype dtype) {
  for (const auto& named : named_types)
    if (named.dtype == dtype) return dtype != TN_DTYPE_NONE;
  return false;
}
bool dtype_is_integer(tn_dtype dtype) { return dtype != TN_DTYPE_NONE && TN_DTYPE_CODE(dtype) <= 1; }
bool dtype_is_signed(tn_dtype dtype) { return dtype != TN_DTYPE_NONE && TN_DTYPE_CODE(dtype) == 0; }
bool dtype_is_float(tn_dtype dtype) {
  const uint32_t code = TN_DTYPE_CODE(dtype);
  return code == 2 || code == 4 || (code >= 10 && code <= 17);
}

bool element_count(std::span<const int64_t> dims, uint64_t* count) {
  uint64_t product = 1;
  bool zero = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return false;
    zero = zero || dim == 0;
  }
  for (const int64_t dim : dims) {
    // A zero among the dims makes the tensor empty, however large the others are.
    if (zero) break;
    if (__builtin_mul_overflow(product, static_cast<uint64_t>(dim), &product) ||
        product > uint64_t(INT64_MAX))
      return false;
  }
  *count = zero ? 0 : product;
  return true;
}

bool tensor_bytes(tn_dtype dtype, std::span<const int64_t> dims, uint64_t* bytes) {
  const uint64_t bits = TN_DTYPE_BITS(dtype);
  uint64_t count = 0, total = 0;
  if (bits == 0 || !element_count(dims, &count)) return false;
  if (bits % 8 == 0) {
    if (__builtin_mul_overflow(count, bits / 8, &total)) return false;
  } else {
    if (__builtin_mul_overflow(count, bits, &total)) return false;
    total = total / 8 + (total % 8 != 0);
  }
  if (total > uint64_t(INT64_MAX)) return false;
  *bytes = total;
  return true;
}

void Tensor::Free::operator()(void* bytes) const { std::free(bytes); }

Tensor::Tensor(tn_dtype dtype, std::vector<int64_t> dims, bool zeroed)
    : dtype_(dtype), dims_(std::move(dims)) {
  if (!tensor_bytes(dtype_, dims_, &bytes_) || !element_count(dims_, &count_))
    throw Error(exit_bad_input, "",
                "a tensor of type " + dtype_name(dtype_) +
                    " has a negative dimension or more bytes than can be addressed");
  // A tensor of no bytes still has an address: many readers take NULL for "absent".
  const uint64_t rounded = bytes_ == 0 ? 64 : (bytes_ + 63) / 64 * 64;
  share_ = MemoryShare(rounded, "", "a tensor of type " + dtype_name(dtype_));
  data_.reset(std::aligned_alloc(64, rounded));
  if (!data_) throw std::bad_alloc();
  if (dtype_ == TN_STRING) {
    strings_ = std::make_unique<std::deque<std::string>>();
    for (tn_str& text : as<tn_str>()) text = tn_str{"", 0};
  } else if (zeroed) {
    std::memset(data_.get(), 0, rounded);
  }
}

Tensor Tensor::copy_of(const tn_tensor& tensor) {
  Tensor copy(tensor.dtype,
              std::vector<int64_t>(tensor.dims, tensor.dims + (tensor.rank > 0 ? tensor.rank : 0)), false);
  if (tensor.dtype == TN_STRING) {
    const auto* const texts = static_cast<const tn_str*>(tensor.data);
    for (uint64_t i = 0; i < copy.count_; ++i) copy.set_string(i, tenon::view(texts[i]));
  } else if (copy.bytes_ != 0) {
    std::memcpy(copy.data_.get(), tensor.data, copy.bytes_);
  }
  return copy;
}

Tensor::Tensor(const Tensor& other) : Tensor() {
  if (other.data_) *this = copy_of(other.view());
}
Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) *this = Tensor(other);
  return *this;
}

void Tensor::set_string(uint64_t index, std::string_view text) {
  const std::string& kept = strings_->emplace_back(text);
  static_cast<tn_str*>(data_.get())[index] = tn_str{kept.data(), kept.size()};
}

tn_tensor Tensor::view() const {
  return {dtype_, static_cast<int32_t>(dims_.size()), dims_.data(), data_.get(), bytes_};
}

}  // namespace tenon
