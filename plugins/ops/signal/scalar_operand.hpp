// Sizes that operators of this folder take as scalar operands.
#pragma once
#include "support/define.hpp"

namespace tenon::ops {

/// The number of scalar operand i, which must be `low` or more; unset when it is not known.
inline std::optional<tn_dim> scalar_operand(Infer& c, uint32_t i, const char* name, int64_t low) {
  one_number(c, i, name);
  const auto e = c.elements(i);
  if (!e || e->size() != 1) return std::nullopt;
  if (const auto v = c.number(e->front()))
    require(*v >= low && *v <= INT64_MAX / 16, std::string("operand ") + name + " is " + text_of(*v) +
                                                   "; expected a size of " + text_of(low) + " or more");
  return e->front();
}

}  // namespace tenon::ops
