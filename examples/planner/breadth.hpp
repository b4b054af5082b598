// Greedy by breadth: the step at which most bytes live is placed first, each of its buffers, the largest
// first, into the smallest gap that holds it; then the step with the next most. (After Pisarchyk and Lee,
// "Efficient Memory Management for Deep Neural Net Inference", 2020.)
#pragma once
#include "tenon/sdk/planner.hpp"

namespace acme {

constexpr size_t most_buffers = 20000;  // the work is quadratic: more are left to other planners

/// Sets every offset. Throws Failure (declined) for more than most_buffers.
void plan_by_breadth(tenon::sdk::Placement& placement);

}  // namespace acme
