// Targets of Reshapes, for all that makes one.
#pragma once
#include "sweep.hpp"

namespace tenon::fusion {

/// A target that turns `from` into `to` and needs no computing: numbers, 0 for an axis that stays, one -1.
/// None when the types do not say enough. `before`: the known elements of a target that it replaces. (A -1
/// beside an axis of no elements is an error at run time: only where it was one before.)
std::optional<sdk::Dims> constant_target(const Context& c, const tn_type& from, const tn_type& to,
                                         sdk::Span<const tn_dim> before = {});

}  // namespace tenon::fusion
