// Kernels that move elements without looking at them, for types packed below 8 bits too.
#pragma once
#include "support/kernel.hpp"

namespace tenon::reference {

/// Plans with every packed operand and result as bytes, one an element, and unpacks and packs around the run.
void plan_unpacked(const PlanView& v, Planned& p, void (*plan)(const PlanView&, Planned&));
bool has_packed_operands(const PlanView& v) noexcept;

/// Elements of a type below 8 bits, from number `from_at` to number `to_at` on; the bits around them stay.
void copy_packed(tn_dtype dtype, const void* from, int64_t from_at, void* to, int64_t to_at,
                 int64_t count) noexcept;

/// Plan, which moves whole bytes, made good for any element type.
template <void (*Plan)(const PlanView&, Planned&)>
void plan_moving(const PlanView& v, Planned& p) {
  if (has_packed_operands(v))
    plan_unpacked(v, p, Plan);
  else
    Plan(v, p);
}

}  // namespace tenon::reference
