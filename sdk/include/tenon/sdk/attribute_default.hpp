// What an attribute is where a node says nothing.
#pragma once
#include <algorithm>

#include "base.hpp"
#include "tenon/abi/ops.h"

namespace tenon::sdk {

/// The attribute has the value that its definition gives it by default; texts, numbers and lists of integers.
inline bool is_default(const tn_attr& a, const tn_attr_def& d) noexcept {
  if (!d.has_default || a.kind != d.kind) return false;
  switch (d.kind) {
    case TN_ATTR_INT:
      return a.u.i == d.default_int;
    case TN_ATTR_FLOAT:
      return a.u.f == d.default_float;
    case TN_ATTR_STRING:
      return view(a.u.s) == view(d.default_string);
    case TN_ATTR_INTS:
      return a.count == d.count && std::equal(a.u.ints, a.u.ints + a.count, d.default_ints);
    default:
      return false;
  }
}

}  // namespace tenon::sdk
