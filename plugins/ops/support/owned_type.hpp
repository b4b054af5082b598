// Types that outlive the call that gave them, and what two of them have in common.
#pragma once
#include "support/define.hpp"

namespace tenon::ops {

class OwnedType {
 public:
  OwnedType() = default;
  explicit OwnedType(const tn_type& t) : type_(t), dims_(dims_of(t).copy()) {}
  OwnedType(tn_type_kind kind, tn_dtype dtype, std::vector<tn_dim> dims)
      : type_{static_cast<uint32_t>(kind), dtype, static_cast<int32_t>(dims.size()), 0, nullptr},
        dims_(std::move(dims)) {}
  /// Valid until this dies or changes.
  tn_type view() const {
    tn_type t = type_;
    t.dims = dims_.data();
    return t;
  }
  bool ranked() const { return type_.kind != TN_KIND_NONE && type_.rank >= 0; }
  bool known() const { return type_.kind != TN_KIND_NONE; }
  tn_dtype dtype() const { return type_.dtype; }
  uint32_t kind() const { return type_.kind; }
  void set_kind(tn_type_kind kind) { type_.kind = static_cast<uint32_t>(kind); }
  std::vector<tn_dim>& dims() { return dims_; }
  const std::vector<tn_dim>& dims() const { return dims_; }
  /// After dims() were added or removed.
  void fit_rank() { type_.rank = static_cast<int32_t>(dims_.size()); }
  void forget_rank() {
    type_.rank = -1;
    dims_.clear();
  }

 private:
  tn_type type_{TN_KIND_NONE, TN_DTYPE_NONE, -1, 0, nullptr};
  std::vector<tn_dim> dims_;
};

/// What values of either type have in common. `unknown(axis)` gives the dim where they differ. Failure when
/// kinds or element types differ; `what` begins its message.
template <class F>
OwnedType join_types(Infer& c, const OwnedType& a, const OwnedType& b, const std::string& what, F unknown) {
  if (!a.known()) return b;
  if (!b.known()) return a;
  const auto plain = [](uint32_t kind) {
    return kind == TN_KIND_OPTIONAL            ? TN_KIND_TENSOR
           : kind == TN_KIND_OPTIONAL_SEQUENCE ? TN_KIND_SEQUENCE
                                               : static_cast<tn_type_kind>(kind);
  };
  const auto name = [](uint32_t kind) {
    constexpr const char* names[] = {"nothing", "a tensor", "a sequence", "an optional tensor",
                                     "an optional sequence"};
    return kind < 5 ? names[kind] : "of an unknown kind";
  };
  require(plain(a.kind()) == plain(b.kind()),
          what + ": one is " + name(a.kind()) + ", the other " + name(b.kind()));
  require(a.dtype() == b.dtype() || a.dtype() == TN_DTYPE_NONE || b.dtype() == TN_DTYPE_NONE,
          what + ": found " + dtype_name(a.dtype()) + " and " + dtype_name(b.dtype()));
  OwnedType r = a.dtype() == TN_DTYPE_NONE ? b : a;
  r.set_kind(static_cast<tn_type_kind>(std::max(a.kind(), b.kind())));  // optional where either is
  if (!a.ranked() || !b.ranked() || a.dims().size() != b.dims().size()) {
    r.forget_rank();
    return r;
  }
  for (size_t i = 0; i < r.dims().size(); ++i)
    r.dims()[i] = c.equal(a.dims()[i], b.dims()[i]) ? a.dims()[i] : unknown(static_cast<uint32_t>(i));
  return r;
}

inline bool same_dims(const OwnedType& a, const OwnedType& b) {
  return a.ranked() == b.ranked() && a.dims() == b.dims();
}

}  // namespace tenon::ops
