// How a test's model is run: through which passes, on which kernels.
#pragma once
#include <string>
#include <vector>

#include "core/pipeline/manifest.hpp"

namespace tenon::conformance {

struct Mode {
  std::string name;  // "optimised", "unoptimised", "reference", "pass:fold"
  Manifest manifest;
};

// "optimised" is the default pipeline, "unoptimised" an empty one, "reference" an empty one on the reference
// kernels only, and "pass:NAME" one pass of those that the default plugins have. Loads the plugins; throws
// Error.
std::vector<Mode> all_modes();

}  // namespace tenon::conformance
