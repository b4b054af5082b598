// An owned handle of a counted value in a run.
#pragma once
#include "support/moving.hpp"

namespace tenon::reference {

class Any {
 public:
  Any() = default;
  Any(const tn_run_api* api, tn_any* owned) noexcept : api_(api), any_(owned) {}
  Any(Any&& o) noexcept : api_(o.api_), any_(std::exchange(o.any_, nullptr)) {}
  Any& operator=(Any&& o) noexcept {
    std::swap(api_, o.api_);
    std::swap(any_, o.any_);
    return *this;
  }
  Any(const Any&) = delete;
  Any& operator=(const Any&) = delete;
  ~Any() {
    if (any_) api_->release(any_);
  }
  /// Shares a borrowed handle.
  static Any share(const tn_run_api* api, tn_any* borrowed) {
    if (borrowed) api->retain(borrowed);
    return {api, borrowed};
  }
  tn_any* get() const noexcept { return any_; }
  explicit operator bool() const noexcept { return any_ != nullptr; }
  TensorView tensor() const {
    tn_tensor t;
    check(api_->tensor(any_, &t), "reading a tensor of the run");
    return TensorView(t);
  }

 private:
  const tn_run_api* api_ = nullptr;
  tn_any* any_ = nullptr;
};

/// A tensor of the run's own; *data is its memory.
inline Any new_tensor(const Run& run, tn_dtype dtype, Span<const int64_t> dims, void** data) {
  tn_any* any = nullptr;
  check(run.api->new_tensor(run.run, dtype, static_cast<int32_t>(dims.size()), dims.data(), &any, data),
        format("allocating a tensor of shape %s", dims_text(dims).c_str()).c_str());
  return {run.api, any};
}
/// Copies `count` elements from number `from_at` of one tensor to number `to_at` of another; text is given a
/// home in the run. What is left of the last byte of a packed type keeps its bits.
inline void copy_elements(const Run& run, tn_dtype dtype, const void* from, int64_t from_at, void* to,
                          int64_t to_at, int64_t count) {
  const auto bytes = static_cast<int64_t>(dtype_bytes(dtype));
  if (dtype == TN_STRING)
    for (int64_t i = 0; i < count; ++i)
      static_cast<tn_str*>(to)[to_at + i] =
          run.api->keep_text(run.run, static_cast<const tn_str*>(from)[from_at + i]);
  else if (bytes == 0)
    copy_packed(dtype, from, from_at, to, to_at, count);
  else if (count > 0)
    std::memcpy(static_cast<char*>(to) + to_at * bytes, static_cast<const char*>(from) + from_at * bytes,
                static_cast<size_t>(count * bytes));
}
/// Runs region r of the node; the results are owned.
inline std::vector<Any> run_region(const Run& run, uint32_t r, const std::vector<tn_any*>& inputs,
                                   uint32_t output_count) {
  std::vector<tn_any*> raw(output_count, nullptr);
  const tn_status s = run.api->run_region(run.run, r, inputs.data(), static_cast<uint32_t>(inputs.size()),
                                          raw.data(), output_count);
  std::vector<Any> results;
  results.reserve(output_count);
  for (auto* any : raw) results.emplace_back(run.api, any);
  check(s, "running a body");
  return results;
}

}  // namespace tenon::reference
