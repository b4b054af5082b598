// Where the intermediates of a plan live: the largest live sum, and the best arena that the planners find.
#pragma once
#include <tenon/abi/memory.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/plugin/registries.hpp"

namespace tenon {

struct ArenaPlan {
  std::vector<uint64_t> offsets;  // one a buffer
  uint64_t arena_bytes = 0;
  uint64_t live_bound_bytes = 0;  // no arena can be smaller
  std::string planner;            // id of the one whose answer was taken
};

// The largest sum of bytes (rounded to the alignments) that live in one step.
uint64_t live_bound(std::span<const tn_buffer> buffers);
// Empty when no two buffers that share a step overlap in space and all are aligned; else what is wrong.
std::string check_placement(std::span<const tn_buffer> buffers, std::span<const uint64_t> offsets);

// Asks every planner until one reaches the bound; a planner whose answer fails the check is reported as
// misbehaving and ignored. Without any planner that answers, buffers are placed first fit in order of size.
ArenaPlan plan_arena(std::span<const tn_buffer> buffers, std::span<const PlannerEntry> planners,
                     Diagnostics& diagnostics);

}  // namespace tenon
