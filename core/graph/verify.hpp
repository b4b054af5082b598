// The full check of a graph's invariants, O(nodes + uses): for tests, `verify` runs and the fuzzers. A
// correct edit never makes it fail, so each finding is an internal error of the host and names what is
// broken.
#pragma once
#include "core/base/diagnostics.hpp"
#include "core/graph/graph.hpp"

namespace tenon {

// True when nothing was found.
bool verify(const Graph& graph, Diagnostics& diagnostics);

}  // namespace tenon
