#include "breadth.hpp"

#include <algorithm>
#include <numeric>

namespace acme {

using namespace tenon::sdk;

namespace {

bool live_together(const tn_buffer& a, const tn_buffer& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

uint64_t aligned(uint64_t offset, uint64_t alignment) { return (offset + alignment - 1) & ~(alignment - 1); }

/// Buffers in the order in which they are placed.
std::vector<uint32_t> order_of(Span<const tn_buffer> buffers) {
  uint32_t steps = 0;
  for (const tn_buffer& b : buffers) steps = std::max(steps, b.last_step + 1);
  std::vector<uint64_t> live(steps + 1, 0);  // bytes, by step; from differences
  for (const tn_buffer& b : buffers) {
    live[b.first_step] += b.bytes;
    live[b.last_step + 1] -= b.bytes;  // wraps, and back in the sum
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  // A buffer comes with the widest step of its life.
  std::vector<uint64_t> breadth(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i)
    breadth[i] =
        *std::max_element(live.begin() + buffers[i].first_step, live.begin() + buffers[i].last_step + 1);
  std::vector<uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return breadth[a] != breadth[b] ? breadth[a] > breadth[b] : buffers[a].bytes > buffers[b].bytes;
  });
  return order;
}

}  // namespace

void plan_by_breadth(Placement& placement) {
  const Span<const tn_buffer> buffers = placement.buffers;
  if (buffers.size() > most_buffers) decline(format("more than %zu buffers", most_buffers));
  std::vector<uint32_t> placed;  // by offset
  for (const uint32_t i : order_of(buffers)) {
    uint64_t free_from = 0, best = UINT64_MAX, best_gap = UINT64_MAX;
    for (const uint32_t other : placed) {
      if (!live_together(buffers[i], buffers[other])) continue;
      const uint64_t begins = placement.offset[other];
      if (free_from + buffers[i].bytes <= begins && begins - free_from < best_gap) {
        best = free_from;
        best_gap = begins - free_from;
      }
      free_from = std::max(free_from, aligned(begins + buffers[other].bytes, buffers[i].alignment));
    }
    placement.offset[i] = best != UINT64_MAX ? best : free_from;  // no gap: behind all
    placed.insert(std::upper_bound(placed.begin(), placed.end(), placement.offset[i],
                                   [&](uint64_t offset, uint32_t p) { return offset < placement.offset[p]; }),
                  i);
  }
}

}  // namespace acme
