// Tensors in host memory that own their bytes, and checked sizes.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/memory_budget.hpp"
#include "tenon/abi/types.h"

namespace tenon {

// "float32", "int4", "bfloat16", "string"; "none" for TN_DTYPE_NONE; "dtype(code,bits)" for an unknown one.
std::string dtype_name(tn_dtype dtype);
std::optional<tn_dtype> dtype_from_name(std::string_view name);
bool dtype_is_known(tn_dtype dtype);
bool dtype_is_integer(tn_dtype dtype);  // signed or unsigned, bool excluded
bool dtype_is_signed(tn_dtype dtype);   // signed integers
bool dtype_is_float(tn_dtype dtype);    // all widths, 8 and 4 bits included

// False when a dim is negative or the number does not fit in 63 bits.
bool element_count(std::span<const int64_t> dims, uint64_t* count);
// Packed size of a dense tensor; false as above, and for an unknown dtype.
bool tensor_bytes(tn_dtype dtype, std::span<const int64_t> dims, uint64_t* bytes);

// An owning dense buffer, 64-byte aligned. Copying shares nothing; moving is cheap and keeps data().
class Tensor {
 public:
  Tensor() = default;
  // Throws Error when the size overflows, std::bad_alloc when it cannot be had. Strings are empty at first.
  Tensor(tn_dtype dtype, std::vector<int64_t> dims, bool zeroed = true);
  static Tensor copy_of(const tn_tensor& tensor);  // strings are copied too

  Tensor(const Tensor& other);
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor& other);
  Tensor& operator=(Tensor&&) noexcept = default;

  tn_dtype dtype() const { return dtype_; }
  std::span<const int64_t> dims() const { return dims_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t count() const { return count_; }  // elements
  void* data() { return data_.get(); }
  const void* data() const { return data_.get(); }
  template <class T>
  std::span<T> as() {
    return {static_cast<T*>(data()), static_cast<size_t>(bytes_ / sizeof(T))};
  }
  template <class T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data()), static_cast<size_t>(bytes_ / sizeof(T))};
  }
  void set_string(uint64_t index, std::string_view text);
  // Borrowed: valid as long as this tensor stays where it is.
  tn_tensor view() const;

 private:
  struct Free {
    void operator()(void* bytes) const;
  };
  tn_dtype dtype_ = TN_DTYPE_NONE;
  std::vector<int64_t> dims_;
  uint64_t bytes_ = 0;
  uint64_t count_ = 0;
  MemoryShare share_;
  std::unique_ptr<void, Free> data_;
  std::unique_ptr<std::deque<std::string>> strings_;
};

}  // namespace tenon
