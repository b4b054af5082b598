// Views of tensors in memory, and one that owns its bytes.
#pragma once
#include <memory>

#include "dtype.hpp"

namespace tenon::sdk {

using Dims = std::vector<int64_t>;

/// Product of dims; Failure(TN_ERR_LIMIT) when it does not fit, or a dim is negative.
inline int64_t element_count(Span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) {
    if (d < 0) fail("a dimension is not known where a number is needed");
    if (d == 0) return 0;
  }
  for (int64_t d : dims) n = checked_mul(n, d);
  return n;
}
/// Packed bytes of so many elements.
inline uint64_t packed_bytes(tn_dtype dtype, int64_t count) {
  return (static_cast<uint64_t>(checked_mul(count, static_cast<int64_t>(TN_DTYPE_BITS(dtype)))) + 7) / 8;
}
inline std::string dims_text(Span<const int64_t> dims) {
  std::string s = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    s += (i ? "," : "") + (dims[i] < 0 ? std::string("?") : std::to_string(dims[i]));
  return s + "]";
}

class TensorView {
 public:
  TensorView() = default;
  TensorView(const tn_tensor& t) noexcept : t_(t) {}
  tn_dtype dtype() const noexcept { return t_.dtype; }
  Span<const int64_t> dims() const noexcept { return {t_.dims, static_cast<size_t>(t_.rank)}; }
  int32_t rank() const noexcept { return t_.rank; }
  int64_t count() const { return element_count(dims()); }
  uint64_t bytes() const noexcept { return t_.bytes; }
  template <class T>
  const T* data() const noexcept {
    return static_cast<const T*>(t_.data);
  }
  template <class T>
  T* mutable_data() const noexcept {
    return static_cast<T*>(t_.data);
  }
  const tn_tensor& raw() const noexcept { return t_; }
  /// Element i of an integer or bool tensor (8 bits and more) as int64.
  int64_t int_at(int64_t i) const {
    int64_t r = 0;
    bool ok = visit_number(
        t_.dtype, [&](auto x) { r = static_cast<int64_t>(static_cast<const decltype(x)*>(t_.data)[i]); });
    if (!ok) fail(format("expected a number tensor, found %s", dtype_name(t_.dtype)));
    return r;
  }
  double float_at(int64_t i) const {
    double r = 0;
    bool ok = visit_number(
        t_.dtype, [&](auto x) { r = static_cast<double>(static_cast<const decltype(x)*>(t_.data)[i]); });
    if (!ok) fail(format("expected a number tensor, found %s", dtype_name(t_.dtype)));
    return r;
  }

 private:
  tn_tensor t_{TN_DTYPE_NONE, 0, nullptr, nullptr, 0};
};

/// A tensor that owns its bytes (not for strings).
class OwnedTensor {
 public:
  OwnedTensor() = default;
  OwnedTensor(tn_dtype dtype, Dims dims)
      : dtype_(dtype), dims_(std::move(dims)), bytes_(packed_bytes(dtype, element_count(dims_))) {
    data_.reset(static_cast<uint8_t*>(::operator new[](bytes_ ? bytes_ : 1, std::align_val_t(64))));
    std::memset(data_.get(), 0, bytes_);
  }
  explicit OwnedTensor(const tn_tensor& t) : OwnedTensor(t.dtype, Dims(t.dims, t.dims + t.rank)) {
    if (bytes_) std::memcpy(data_.get(), t.data, bytes_);
  }
  tn_tensor raw() const noexcept {
    return {dtype_, static_cast<int32_t>(dims_.size()), dims_.data(), data_.get(), bytes_};
  }
  TensorView view() const noexcept { return TensorView(raw()); }
  tn_dtype dtype() const noexcept { return dtype_; }
  const Dims& dims() const noexcept { return dims_; }
  int64_t count() const { return element_count(dims_); }
  uint64_t bytes() const noexcept { return bytes_; }
  template <class T>
  T* data() noexcept {
    return reinterpret_cast<T*>(data_.get());
  }
  template <class T>
  const T* data() const noexcept {
    return reinterpret_cast<const T*>(data_.get());
  }

 private:
  struct Delete {
    void operator()(uint8_t* p) const noexcept { ::operator delete[](p, std::align_val_t(64)); }
  };
  tn_dtype dtype_ = TN_DTYPE_NONE;
  Dims dims_;
  uint64_t bytes_ = 0;
  std::unique_ptr<uint8_t[], Delete> data_;
};

}  // namespace tenon::sdk
