#include "core/runtime/memory_lifetimes.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/base/text.hpp"

namespace tenon {
namespace {

uint64_t aligned_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}
uint64_t footprint(const tn_buffer& buffer) {
  return aligned_up(buffer.bytes, std::max<uint64_t>(buffer.alignment, 1));
}
bool share_a_step(const tn_buffer& a, const tn_buffer& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

// Without planners: largest first, each in the lowest gap between those placed that share a step with it.
std::vector<uint64_t> place_first_fit(std::span<const tn_buffer> buffers) {
  std::vector<uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<uint64_t> offsets(buffers.size(), 0);
  std::vector<uint32_t> placed, overlapping;
  for (const uint32_t i : order) {
    if (buffers[i].bytes == 0) continue;
    overlapping.clear();
    for (const uint32_t j : placed) {
      if (share_a_step(buffers[i], buffers[j])) overlapping.push_back(j);
    }
    std::sort(overlapping.begin(), overlapping.end(),
              [&](uint32_t a, uint32_t b) { return offsets[a] < offsets[b]; });
    const uint64_t alignment = std::max<uint64_t>(buffers[i].alignment, 1);
    uint64_t offset = 0;
    for (const uint32_t j : overlapping) {
      if (offset + buffers[i].bytes <= offsets[j]) break;
      offset = std::max(offset, aligned_up(offsets[j] + buffers[j].bytes, alignment));
    }
    offsets[i] = offset;
    placed.push_back(i);
  }
  return offsets;
}

uint64_t height_of(std::span<const tn_buffer> buffers, std::span<const uint64_t> offsets) {
  uint64_t height = 0;
  for (size_t i = 0; i < buffers.size(); ++i) height = std::max(height, offsets[i] + buffers[i].bytes);
  return height;
}

struct Answer {
  std::vector<uint64_t> offsets;
  std::vector<bool> given;
  bool out_of_range = false;
};

}  // namespace

uint64_t live_bound(std::span<const tn_buffer> buffers) {
  uint32_t steps = 0;
  for (const tn_buffer& buffer : buffers) steps = std::max(steps, buffer.last_step + 1);
  std::vector<uint64_t> born(steps + size_t{1}, 0), freed(steps + size_t{1}, 0);
  for (const tn_buffer& buffer : buffers) {
    born[buffer.first_step] += footprint(buffer);
    freed[buffer.last_step + size_t{1}] += footprint(buffer);
  }
  uint64_t live = 0, bound = 0;
  for (size_t step = 0; step < steps; ++step) {
    live = live - freed[step] + born[step];
    bound = std::max(bound, live);
  }
  return bound;
}

// Sweeps over time with the live buffers ordered by offset: a new one can only collide with its two
// neighbours.
std::string check_placement(std::span<const tn_buffer> buffers, std::span<const uint64_t> offsets) {
  const auto count = static_cast<uint32_t>(buffers.size());
  for (uint32_t i = 0; i < count; ++i) {
    if (buffers[i].alignment > 1 && offsets[i] % buffers[i].alignment != 0) {
      return fmt::format("buffer {} is at offset {}, which is no multiple of its alignment {}", i, offsets[i],
                         buffers[i].alignment);
    }
    if (offsets[i] > UINT64_MAX - buffers[i].bytes) return fmt::format("buffer {} ends beyond 64 bits", i);
  }
  std::vector<uint32_t> births, deaths;
  for (uint32_t i = 0; i < count; ++i) {
    if (buffers[i].bytes != 0) births.push_back(i);
  }
  deaths = births;
  std::sort(births.begin(), births.end(),
            [&](uint32_t a, uint32_t b) { return buffers[a].first_step < buffers[b].first_step; });
  std::sort(deaths.begin(), deaths.end(),
            [&](uint32_t a, uint32_t b) { return buffers[a].last_step < buffers[b].last_step; });
  std::set<std::pair<uint64_t, uint32_t>> live;
  size_t dead = 0;
  for (const uint32_t i : births) {
    while (dead < deaths.size() && buffers[deaths[dead]].last_step < buffers[i].first_step) {
      live.erase({offsets[deaths[dead]], deaths[dead]});
      ++dead;
    }
    const auto next = live.lower_bound({offsets[i], 0});
    const auto clash = [&](uint32_t other) {
      return fmt::format("buffers {} and {} overlap in space and both live in step {}", other, i,
                         buffers[i].first_step);
    };
    if (next != live.end() && offsets[i] + buffers[i].bytes > next->first) return clash(next->second);
    if (next != live.begin()) {
      const auto before = std::prev(next);
      if (before->first + buffers[before->second].bytes > offsets[i]) return clash(before->second);
    }
    live.insert({offsets[i], i});
  }
  return {};
}

ArenaPlan plan_arena(std::span<const tn_buffer> buffers, std::span<const PlannerEntry> planners,
                     Diagnostics& diagnostics) {
  ArenaPlan best;
  best.live_bound_bytes = live_bound(buffers);
  if (buffers.empty()) return best;
  std::vector<const PlannerEntry*> order;
  for (const PlannerEntry& planner : planners) order.push_back(&planner);
  std::stable_sort(order.begin(), order.end(), [](const PlannerEntry* a, const PlannerEntry* b) {
    return a->record->rank > b->record->rank;
  });
  bool found = false;
  for (const PlannerEntry* planner : order) {
    Answer answer{std::vector<uint64_t>(buffers.size(), 0), std::vector<bool>(buffers.size(), false)};
    const std::string id = string(planner->record->id);
    const auto place = [](void* context, uint32_t i, uint64_t offset) {
      auto& a = *static_cast<Answer*>(context);
      if (i >= a.offsets.size()) {
        a.out_of_range = true;
        return;
      }
      a.offsets[i] = offset;
      a.given[i] = true;
    };
    Diagnostics said;
    const tn_status status =
        planner->record->plan(planner->instance, buffers.data(), static_cast<uint32_t>(buffers.size()),
                              best.live_bound_bytes, place, &answer, said.abi());
    if (status == TN_DECLINED) continue;
    std::string fault;
    const auto missing = std::find(answer.given.begin(), answer.given.end(), false);
    if (status != TN_OK) {
      fault = fmt::format("it failed with status {} {}", status, said.first_error());
    } else if (answer.out_of_range) {
      fault = "it placed a buffer that does not exist";
    } else if (missing != answer.given.end()) {
      fault = fmt::format("it placed no buffer {}", missing - answer.given.begin());
    } else {
      fault = check_placement(buffers, answer.offsets);
    }
    if (!fault.empty()) {
      diagnostics.add(TN_SEVERITY_PLUGIN_MISBEHAVING, "", "memory planner " + id,
                      fault + "; its answer is ignored, another planner is used");
      continue;
    }
    const uint64_t height = height_of(buffers, answer.offsets);
    if (!found || height < best.arena_bytes) {
      best.offsets = std::move(answer.offsets);
      best.arena_bytes = height;
      best.planner = id;
      found = true;
    }
    if (best.arena_bytes <= best.live_bound_bytes) break;
  }
  if (!found) {
    best.offsets = place_first_fit(buffers);
    best.arena_bytes = height_of(buffers, best.offsets);
    best.planner = "first fit of the host";
  }
  return best;
}

}  // namespace tenon
