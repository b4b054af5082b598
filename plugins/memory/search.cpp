#include <algorithm>
#include <cmath>

#include "placement.hpp"

namespace tenon_memory {
namespace {

// Xorshift64*: small, and the same everywhere.
struct Random {
  uint64_t state = 0x2545f4914f6cdd1du;
  uint64_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1du;
  }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(next() % n); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
};

struct Candidate {
  std::vector<uint32_t> order;
  Fit fit = Fit::smallest_gap;
  Placement placement;
};

// Boxes that reach above the bound: one of them has to move for the arena to shrink.
std::vector<uint32_t> boxes_above(const Problem& problem, const Placement& placement) {
  std::vector<uint32_t> found;
  const uint64_t line = std::max(problem.lower_bound, placement.height - placement.height / 16);
  for (uint32_t i = 0; i < problem.count; ++i) {
    if (placement.offsets[i] + problem.buffers[i].bytes > std::min(line, placement.height - 1))
      found.push_back(i);
  }
  return found;
}

}  // namespace

Placement search(const Problem& problem, uint64_t work_limit) {
  constexpr uint64_t most_remembered = 8'000'000;
  Overlaps overlaps(problem);
  overlaps.remember(most_remembered);
  uint64_t work = 0;
  Candidate current;
  current.placement.height = UINT64_MAX;
  for (const auto& [by, fit] : all_orders) {
    const std::vector<uint32_t> order = make_order(problem, overlaps, by);
    Placement next = place(problem, overlaps, order, fit, UINT64_MAX - 1, &work);
    if (next.height < current.placement.height) current = {order, fit, std::move(next)};
    if (current.placement.height <= problem.lower_bound) return current.placement;
  }
  Placement best = current.placement;
  Random random;
  std::vector<uint32_t> top = boxes_above(problem, current.placement);
  while (work < work_limit && best.height > problem.lower_bound && !top.empty()) {
    Candidate next = current;
    const uint32_t box = top[random.below(static_cast<uint32_t>(top.size()))];
    const auto position =
        static_cast<uint32_t>(std::find(next.order.begin(), next.order.end(), box) - next.order.begin());
    // Mostly the box at the top goes earlier; sometimes two places are swapped, to leave a plateau.
    if (position != 0 && random.below(4) != 0) {
      const uint32_t target = random.below(position);
      std::rotate(next.order.begin() + target, next.order.begin() + position,
                  next.order.begin() + position + 1);
    } else {
      std::swap(next.order[position], next.order[random.below(problem.count)]);
    }
    if (random.below(16) == 0) next.fit = next.fit == Fit::lowest ? Fit::smallest_gap : Fit::lowest;
    const double heat = 1.0 - static_cast<double>(work) / static_cast<double>(work_limit);
    const double allowed =
        static_cast<double>(current.placement.height) * (1.0 + 0.03 * heat * random.unit());
    next.placement = place(problem, overlaps, next.order, next.fit, static_cast<uint64_t>(allowed), &work);
    work += problem.count;  // copying the order is work too, and makes the loop end
    if (next.placement.height == UINT64_MAX) continue;
    current = std::move(next);
    top = boxes_above(problem, current.placement);
    if (current.placement.height < best.height) best = current.placement;
  }
  return best;
}

}  // namespace tenon_memory
