// Named constant transforms: what a rule's expressions cannot say, `{"transform": "acme.pack@1", "args":
// {...}}`.
#pragma once
#include "tenon/abi/transforms.h"
#include "tensor.hpp"

namespace tenon::sdk {

/// The arguments of one call, in the order of the parameters.
class TransformArguments {
 public:
  TransformArguments(const tn_tensor* first, uint32_t count) : first_(first), count_(count) {}
  uint32_t count() const noexcept { return count_; }
  /// False: the rule left it out, or what it names is absent in this match.
  bool has(uint32_t i) const noexcept { return i < count_ && first_[i].dtype != TN_DTYPE_NONE; }
  TensorView operator[](uint32_t i) const {
    if (!has(i)) fail("argument " + std::to_string(i) + " is absent");
    return TensorView(first_[i]);
  }

 private:
  const tn_tensor* first_;
  uint32_t count_;
};

/// Makes one record; it must live as long as the plugin:
///   static sdk::TransformBuilder interleave("acme.interleave", 1);
///   p.transform(interleave.parameter("a").parameter("b").run<interleave_rows>());
class TransformBuilder {
 public:
  using Function = OwnedTensor (*)(const TransformArguments&);
  TransformBuilder(const char* name, uint32_t version) {
    record_.size = sizeof record_;
    record_.version = version;
    record_.name = str(name);
  }
  TransformBuilder(const TransformBuilder&) = delete;
  TransformBuilder& operator=(const TransformBuilder&) = delete;
  TransformBuilder& parameter(const char* name) {
    parameters_.push_back(str(name));
    return *this;
  }
  /// F gives the result, or throws Failure.
  template <Function F>
  const tn_transform* run() {
    record_.parameters = parameters_.data();
    record_.parameter_count = static_cast<uint32_t>(parameters_.size());
    record_.apply = [](void*, const tn_tensor* arguments, uint32_t count,
                       void (*sink)(void* context, const tn_tensor* result), void* context,
                       const tn_diag* diag) noexcept {
      return guarded(diag, [&] {
        const OwnedTensor made = F(TransformArguments(arguments, count));
        const tn_tensor view = made.raw();
        sink(context, &view);
      });
    };
    return &record_;
  }

 private:
  std::vector<tn_str> parameters_;
  tn_transform record_{};
};

}  // namespace tenon::sdk
