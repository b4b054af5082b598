// Files as they come over bad lines and out of bad tools.
#pragma once
#include <string>
#include <vector>

#include "core/check/random.hpp"

namespace tenon::check {

// Lengths to cut a file to: all short ones, then evenly; at most about `count`.
std::vector<size_t> cuts(size_t size, size_t count);
// A few bits, bytes or runs of bytes changed.
std::string flipped(std::string bytes, Random& random);
// More: parts doubled, left out, overwritten, numbers at their limits.
std::string mangled(std::string bytes, Random& random);

}  // namespace tenon::check
