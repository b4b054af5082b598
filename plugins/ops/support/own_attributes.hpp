// Attributes of a node kept for another one.
#pragma once
#include "tenon/sdk/plugin.hpp"

namespace tenon::ops {

/// Attributes of a node by name, those that it has, copied before any edit: for the operator that does its
/// work.
struct OwnAttributes {
  std::deque<sdk::Dims> lists;
  std::deque<std::string> texts;
  std::vector<sdk::AttrValue> values;
  OwnAttributes(const OwnAttributes&) = delete;
  OwnAttributes& operator=(const OwnAttributes&) = delete;
  OwnAttributes(const sdk::Node& n, std::initializer_list<const char*> names) {
    const sdk::Attributes a = n.attrs();
    for (const char* name : names) {
      const tn_attr* found = a.find(name);
      if (!found) continue;
      if (found->kind == TN_ATTR_INTS)
        values.push_back(sdk::AttrValue::of(
            name, sdk::Span<const int64_t>(lists.emplace_back(found->u.ints, found->u.ints + found->count))));
      else if (found->kind == TN_ATTR_STRING)
        values.push_back(
            sdk::AttrValue::of(name, std::string_view(texts.emplace_back(sdk::text(found->u.s)))));
      else if (found->kind == TN_ATTR_FLOAT)
        values.push_back(sdk::AttrValue::of(name, found->u.f));
      else if (found->kind == TN_ATTR_INT)
        values.push_back(sdk::AttrValue::of(name, found->u.i));
    }
  }
};

}  // namespace tenon::ops
