// Permutations, for all that moves Transposes.
#pragma once
#include "sweep.hpp"

namespace tenon::fusion {

/// What result axis i was before; none when it is unknown or no permutation.
std::optional<sdk::Dims> permutation(const Context& c, const sdk::Node& transpose);
bool is_identity(const sdk::Dims& perm);
/// One permutation that does first `first`, then `second`.
sdk::Dims composed(const sdk::Dims& first, const sdk::Dims& second);
sdk::Dims inverse(const sdk::Dims& perm);

}  // namespace tenon::fusion
