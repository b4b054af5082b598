#include "placement.hpp"

#include <algorithm>
#include <numeric>

namespace tenon_memory {
namespace {
uint64_t aligned_up(uint64_t value, uint64_t alignment) {
  return alignment <= 1 ? value : (value + alignment - 1) / alignment * alignment;
}
}  // namespace

Overlaps::Overlaps(const Problem& problem) : problem_(problem) {
  uint32_t steps = 1;
  for (uint32_t i = 0; i < problem.count; ++i) steps = std::max(steps, problem.buffers[i].last_step + 1);
  while (leaves_ < steps) leaves_ *= 2;
  tree_.resize(2 * static_cast<size_t>(leaves_));
  by_start_.resize(problem.count);
  std::iota(by_start_.begin(), by_start_.end(), 0u);
  std::stable_sort(by_start_.begin(), by_start_.end(), [&](uint32_t a, uint32_t b) {
    return problem.buffers[a].first_step < problem.buffers[b].first_step;
  });
  starts_.assign(static_cast<size_t>(steps) + 1, 0);
  for (uint32_t i = 0; i < problem.count; ++i) ++starts_[problem.buffers[i].first_step + size_t{1}];
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  for (uint32_t i = 0; i < problem.count; ++i) insert(i);
}

void Overlaps::remember(uint64_t limit) {
  std::vector<uint64_t> from(problem_.count + size_t{1}, 0);
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < problem_.count; ++i) {
    for_each(i, [&](uint32_t other) { all.push_back(other); });
    if (all.size() > limit) return;
    from[i + size_t{1}] = all.size();
  }
  remembered_ = std::move(all);
  remembered_from_ = std::move(from);
}

// Into the few nodes whose spans make up the box's interval, bottom up.
void Overlaps::insert(uint32_t i) {
  uint32_t low = problem_.buffers[i].first_step + leaves_, high = problem_.buffers[i].last_step + leaves_ + 1;
  for (; low < high; low /= 2, high /= 2) {
    if (low & 1) tree_[low++].push_back(i);
    if (high & 1) tree_[--high].push_back(i);
  }
}

std::vector<uint32_t> make_order(const Problem& problem, const Overlaps& overlaps, Order by) {
  const tn_buffer* b = problem.buffers;
  std::vector<double> key(problem.count);
  for (uint32_t i = 0; i < problem.count; ++i) {
    const double bytes = static_cast<double>(b[i].bytes),
                 duration = static_cast<double>(b[i].last_step - b[i].first_step) + 1;
    switch (by) {
      case Order::size:
        key[i] = bytes;
        break;
      case Order::area:
        key[i] = bytes * duration;
        break;
      case Order::duration:
        key[i] = duration;
        break;
      case Order::start:
        key[i] = -static_cast<double>(b[i].first_step);
        break;
      case Order::conflicts: {
        double sum = 0;
        overlaps.for_each(i, [&](uint32_t other) { sum += static_cast<double>(b[other].bytes); });
        key[i] = sum;
        break;
      }
    }
  }
  std::vector<uint32_t> order(problem.count);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
    if (key[x] != key[y]) return key[x] > key[y];
    if (b[x].bytes != b[y].bytes) return b[x].bytes > b[y].bytes;
    return b[x].last_step - b[x].first_step > b[y].last_step - b[y].first_step;
  });
  return order;
}

Placement place(const Problem& problem, const Overlaps& overlaps, const std::vector<uint32_t>& order, Fit fit,
                uint64_t limit, uint64_t* work) {
  const tn_buffer* buffers = problem.buffers;
  Placement result;
  result.offsets.assign(problem.count, 0);
  std::vector<bool> placed(problem.count, false);
  std::vector<std::pair<uint64_t, uint64_t>> taken;  // begin, end
  for (const uint32_t i : order) {
    taken.clear();
    *work += 16;
    overlaps.for_each(i, [&](uint32_t other) {
      ++*work;
      if (placed[other] && buffers[other].bytes != 0)
        taken.emplace_back(result.offsets[other], result.offsets[other] + buffers[other].bytes);
    });
    std::sort(taken.begin(), taken.end());
    const uint64_t bytes = buffers[i].bytes;
    uint64_t best = UINT64_MAX, best_gap = UINT64_MAX, free_from = 0;
    for (const auto& [begin, end] : taken) {
      const uint64_t at = aligned_up(free_from, buffers[i].alignment);
      if (at + bytes <= begin && begin - free_from < best_gap) {
        best = at;
        best_gap = begin - free_from;
        if (fit == Fit::lowest) break;
      }
      free_from = std::max(free_from, end);
    }
    if (best == UINT64_MAX) best = aligned_up(free_from, buffers[i].alignment);
    result.offsets[i] = best;
    placed[i] = true;
    result.height = std::max(result.height, best + bytes);
    if (result.height > limit) {
      result.height = UINT64_MAX;
      return result;
    }
  }
  return result;
}

Placement greedy_by_size(const Problem& problem) {
  const Overlaps overlaps(problem);
  uint64_t work = 0;
  return place(problem, overlaps, make_order(problem, overlaps, Order::size), Fit::smallest_gap,
               UINT64_MAX - 1, &work);
}

Placement best_of_orders(const Problem& problem, uint64_t work_limit) {
  const Overlaps overlaps(problem);
  uint64_t work = 0;
  Placement best;
  best.height = UINT64_MAX;
  for (const auto& [by, fit] : all_orders) {
    const uint64_t limit = best.height == UINT64_MAX ? UINT64_MAX - 1 : best.height - 1;
    Placement next = place(problem, overlaps, make_order(problem, overlaps, by), fit, limit, &work);
    if (next.height < best.height) best = std::move(next);
    if (best.height <= problem.lower_bound || work > work_limit) return best;
  }
  return best;
}

}  // namespace tenon_memory
