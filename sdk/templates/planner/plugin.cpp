// The planner @NAME@: each buffer at the lowest place where nothing that lives with it lies, the
// longest-lived first.
#include <algorithm>
#include <numeric>

#include "tenon/sdk/planner.hpp"
#include "tenon/sdk/plugin.hpp"

namespace {

using namespace tenon::sdk;

bool live_together(const tn_buffer& a, const tn_buffer& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

uint64_t aligned(uint64_t offset, uint64_t alignment) { return (offset + alignment - 1) & ~(alignment - 1); }

void plan(Placement& placement) {
  const Span<const tn_buffer> buffers = placement.buffers;
  if (buffers.size() > 20000) decline("quadratic work: more than 20000 buffers are left to others");
  std::vector<uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return buffers[a].last_step - buffers[a].first_step > buffers[b].last_step - buffers[b].first_step;
  });
  std::vector<uint32_t> placed;  // by offset
  for (const uint32_t i : order) {
    uint64_t at = 0;
    for (const uint32_t other : placed) {
      if (!live_together(buffers[i], buffers[other])) continue;
      if (at + buffers[i].bytes <= placement.offset[other]) break;  // the gap before it
      at = std::max(at, aligned(placement.offset[other] + buffers[other].bytes, buffers[i].alignment));
    }
    placement.offset[i] = at;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), at,
                                   [&](uint64_t offset, uint32_t p) { return offset < placement.offset[p]; }),
                  i);
  }
}

void provide(Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  plugin.vendor("@VENDOR@").license("Apache-2.0").summary("the memory planner @NAME@");
  static PlannerBuilder planner("@ID@.longest-first/1",
                                "the longest-lived first, each at the lowest free place", 40);
  plugin.planner(planner.plan<plan>().record());
}

}  // namespace

TENON_PLUGIN(provide)
