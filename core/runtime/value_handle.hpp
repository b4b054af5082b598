// tn_any: counted values of a run (tensors, sequences, optionals). Counts are atomic; contents are written
// before a handle is shared and never after.
#pragma once
#include <tenon/abi/graph.h>
#include <tenon/abi/run.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/memory_budget.hpp"

struct tn_any {
  std::atomic<uint32_t> references{1};
  uint32_t kind = TN_KIND_TENSOR;
  tn_dtype dtype = TN_DTYPE_NONE;  // of the tensor, or of the elements of a sequence
  std::vector<int64_t> dims;
  void* data = nullptr;
  uint64_t bytes = 0;
  uint64_t allocated_bytes = 0;  // 0: the memory is somebody else's, kept by `keep`
  std::shared_ptr<const void> keep;
  std::vector<tn_any*> items;                      // owned references; an optional has none or one
  std::unique_ptr<std::deque<std::string>> texts;  // what keep_text copied

  tn_tensor tensor() const { return {dtype, static_cast<int32_t>(dims.size()), dims.data(), data, bytes}; }
};

namespace tenon {

void any_retain(tn_any* any);
void any_release(tn_any* any);  // iterative: nesting never costs stack

// An owned reference.
class AnyRef {
 public:
  AnyRef() = default;
  static AnyRef adopt(tn_any* any) {
    AnyRef r;
    r.any_ = any;
    return r;
  }
  static AnyRef share(tn_any* any) {
    if (any != nullptr) any_retain(any);
    return adopt(any);
  }
  AnyRef(const AnyRef& other) : any_(other.any_) {
    if (any_ != nullptr) any_retain(any_);
  }
  AnyRef(AnyRef&& other) noexcept : any_(std::exchange(other.any_, nullptr)) {}
  AnyRef& operator=(AnyRef other) noexcept {
    std::swap(any_, other.any_);
    return *this;
  }
  ~AnyRef() {
    if (any_ != nullptr) any_release(any_);
  }
  tn_any* get() const { return any_; }
  tn_any* take() { return std::exchange(any_, nullptr); }
  explicit operator bool() const { return any_ != nullptr; }
  tn_any* operator->() const { return any_; }

 private:
  tn_any* any_ = nullptr;
};

// Memory for a tensor, 64-byte aligned, not cleared except for strings (empty texts). Throws Error naming
// `where` when the element count overflows or the machine has not that much memory left ("too large").
AnyRef new_tensor(tn_dtype dtype, std::span<const int64_t> dims, const std::string& where);
AnyRef copy_tensor(const tn_tensor& tensor, const std::string& where);  // texts too
// No copy; `keep` (may be null) is what the bytes need to stay.
AnyRef borrow_tensor(const tn_tensor& tensor, std::shared_ptr<const void> keep);
AnyRef new_sequence(std::span<tn_any* const> items, tn_dtype dtype);  // shares the items
// A copy of a tensor, or of a sequence of tensors, that owns its texts; anything without texts is shared.
AnyRef with_own_texts(tn_any* any);
AnyRef new_optional(tn_any* item);  // shares it; null: empty

// Throws Error "too large" when the size of such a tensor overflows; else its packed size.
uint64_t checked_bytes(tn_dtype dtype, std::span<const int64_t> dims, const std::string& where);
std::string dims_text(std::span<const int64_t> dims);  // "[2,3]"

}  // namespace tenon
