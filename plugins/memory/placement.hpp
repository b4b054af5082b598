// Offset calculation: each buffer is a box of `bytes` over its steps; boxes that share a step must not
// overlap in space. (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020,
// for greedy by size.)
#pragma once
#include <tenon/abi/memory.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tenon_memory {

struct Problem {
  const tn_buffer* buffers;
  uint32_t count;
  uint64_t lower_bound;
};

// Which boxes share a step with a given one, in O(log steps + answers): a segment tree over time for those
// that are alive when it begins, and the boxes sorted by their first step for those that begin while it
// lives.
class Overlaps {
 public:
  explicit Overlaps(const Problem& problem);
  // Writes the answers down, for many placements over the same boxes; nothing when there are more than
  // `limit`.
  void remember(uint64_t limit);
  template <class F>
  void for_each(uint32_t i, F&& visit) const {
    if (!remembered_from_.empty()) {
      for (uint64_t k = remembered_from_[i]; k < remembered_from_[i + size_t{1}]; ++k) visit(remembered_[k]);
      return;
    }
    const tn_buffer& box = problem_.buffers[i];
    uint32_t node = 1, low = 0, high = leaves_;
    while (true) {  // boxes that contain box.first_step and begin before it
      for (const uint32_t other : tree_[node]) {
        if (other != i && problem_.buffers[other].first_step < box.first_step) visit(other);
      }
      if (high - low == 1) break;
      const uint32_t middle = (low + high) / 2;
      const bool right = box.first_step >= middle;
      node = 2 * node + (right ? 1 : 0);
      (right ? low : high) = middle;
    }
    for (uint32_t k = starts_[box.first_step]; k < starts_[box.last_step + size_t{1}]; ++k) {
      if (by_start_[k] != i) visit(by_start_[k]);
    }
  }

 private:
  void insert(uint32_t i);
  Problem problem_;
  uint32_t leaves_ = 1;
  std::vector<std::vector<uint32_t>> tree_;
  std::vector<uint32_t> by_start_, starts_, remembered_;
  std::vector<uint64_t> remembered_from_;
};

enum class Fit { smallest_gap, lowest };
enum class Order { size, area, duration, start, conflicts };

// In the order worth trying: by size is best on networks, by start is exact when all boxes are equal.
inline constexpr std::pair<Order, Fit> all_orders[] = {
    {Order::size, Fit::smallest_gap}, {Order::start, Fit::lowest},    {Order::size, Fit::lowest},
    {Order::area, Fit::smallest_gap}, {Order::area, Fit::lowest},     {Order::conflicts, Fit::smallest_gap},
    {Order::conflicts, Fit::lowest},  {Order::duration, Fit::lowest}, {Order::duration, Fit::smallest_gap},
    {Order::start, Fit::smallest_gap}};

struct Placement {
  std::vector<uint64_t> offsets;
  uint64_t height = 0;
};

std::vector<uint32_t> make_order(const Problem& problem, const Overlaps& overlaps, Order by);

// Places boxes one after another. Gives up (height UINT64_MAX) as soon as `limit` would be passed. `work`
// counts the boxes looked at, and each box placed as some more.
Placement place(const Problem& problem, const Overlaps& overlaps, const std::vector<uint32_t>& order, Fit fit,
                uint64_t limit, uint64_t* work);

Placement greedy_by_size(const Problem& problem);
// Ends early, with the best so far, once `work_limit` boxes were looked at.
Placement best_of_orders(const Problem& problem, uint64_t work_limit = UINT64_MAX);
// Starts from the best of all orders, then moves boxes that stand at the top to earlier places in the order,
// with some moves to the worse allowed at first. Bounded by work, not by time: the same problem gives the
// same answer.
Placement search(const Problem& problem, uint64_t work_limit);

}  // namespace tenon_memory
