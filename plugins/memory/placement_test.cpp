#include "placement.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <random>

using namespace tenon_memory;

namespace {

uint64_t live_bound(const std::vector<tn_buffer>& buffers) {
  uint64_t bound = 0;
  uint32_t steps = 0;
  for (const tn_buffer& b : buffers) steps = std::max(steps, b.last_step + 1);
  for (uint32_t step = 0; step < steps; ++step) {
    uint64_t live = 0;
    for (const tn_buffer& b : buffers) {
      if (b.first_step <= step && step <= b.last_step) live += b.bytes;
    }
    bound = std::max(bound, live);
  }
  return bound;
}

std::string fault(const std::vector<tn_buffer>& buffers, const Placement& placement) {
  uint64_t height = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    height = std::max(height, placement.offsets[i] + buffers[i].bytes);
    if (placement.offsets[i] % buffers[i].alignment != 0) return "alignment of " + std::to_string(i);
    for (size_t j = 0; j < i; ++j) {
      const bool in_time =
          buffers[i].first_step <= buffers[j].last_step && buffers[j].first_step <= buffers[i].last_step;
      const bool in_space = placement.offsets[i] < placement.offsets[j] + buffers[j].bytes &&
                            placement.offsets[j] < placement.offsets[i] + buffers[i].bytes;
      if (in_time && in_space) return std::to_string(i) + " overlaps " + std::to_string(j);
    }
  }
  return height == placement.height ? "" : "height";
}

std::vector<tn_buffer> random_buffers(uint32_t seed, uint32_t count, uint32_t steps, uint32_t longest) {
  std::mt19937 random(seed);
  std::vector<tn_buffer> buffers;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t first = random() % steps;
    buffers.push_back({64 * (1 + random() % 200), 64, first,
                       std::min(steps - 1, first + static_cast<uint32_t>(random() % longest))});
  }
  return buffers;
}

using Solver = std::function<Placement(const Problem&)>;
const std::vector<std::pair<std::string, Solver>> solvers = {
    {"greedy", greedy_by_size},
    {"orders", [](const Problem& p) { return best_of_orders(p); }},
    {"search", [](const Problem& p) { return search(p, 300'000); }},
};

}  // namespace

TEST_CASE("planners never overlap boxes and never go below the bound") {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const std::vector<tn_buffer> buffers = random_buffers(seed, 5 + seed * 5, 4 + seed * 3, 1 + seed % 17);
    const uint64_t bound = live_bound(buffers);
    for (const auto& [name, solve] : solvers) {
      INFO(name << " seed " << seed);
      const Placement placement = solve({buffers.data(), static_cast<uint32_t>(buffers.size()), bound});
      CHECK(fault(buffers, placement).empty());
      CHECK(placement.height >= bound);
    }
  }
}

TEST_CASE("a chain needs its two largest neighbours") {
  std::vector<tn_buffer> buffers;
  for (uint32_t i = 0; i < 50; ++i) buffers.push_back({64 * (1 + (i * 7) % 13), 64, i, i + 1});
  const uint64_t bound = live_bound(buffers);
  for (const auto& [name, solve] : solvers) {
    INFO(name);
    CHECK(solve({buffers.data(), 50, bound}).height <= bound + bound / 8);
  }
  CHECK(search({buffers.data(), 50, bound}, 5'000'000).height == bound);
}

TEST_CASE("search is at least as good as any order and repeats itself") {
  for (uint32_t seed = 100; seed < 110; ++seed) {
    const std::vector<tn_buffer> buffers = random_buffers(seed, 150, 60, 12);
    const Problem problem{buffers.data(), 150, live_bound(buffers)};
    const Placement first = search(problem, 500'000), second = search(problem, 500'000);
    CHECK(first.offsets == second.offsets);
    CHECK(first.height <= best_of_orders(problem).height);
    CHECK(best_of_orders(problem).height <= greedy_by_size(problem).height);
  }
}

TEST_CASE("alignment, empty buffers and no buffers") {
  const std::vector<tn_buffer> buffers = {
      {100, 256, 0, 3}, {10, 1, 0, 1}, {0, 64, 1, 2}, {300, 128, 2, 3}, {50, 4096, 1, 3}};
  for (const auto& [name, solve] : solvers) {
    INFO(name);
    CHECK(fault(buffers, solve({buffers.data(), 5, 0})).empty());
    CHECK(solve({nullptr, 0, 0}).height == 0);
  }
}

TEST_CASE("overlaps are those that share a step") {
  const std::vector<tn_buffer> buffers = random_buffers(7, 200, 90, 40);
  const Overlaps overlaps({buffers.data(), 200, 0});
  for (uint32_t i = 0; i < 200; ++i) {
    std::vector<uint32_t> found, expected;
    overlaps.for_each(i, [&](uint32_t other) { found.push_back(other); });
    for (uint32_t j = 0; j < 200; ++j) {
      if (j != i && buffers[i].first_step <= buffers[j].last_step &&
          buffers[j].first_step <= buffers[i].last_step)
        expected.push_back(j);
    }
    std::sort(found.begin(), found.end());
    CHECK(found == expected);
    Overlaps written({buffers.data(), 200, 0});
    written.remember(100'000);
    std::vector<uint32_t> again;
    written.for_each(i, [&](uint32_t other) { again.push_back(other); });
    std::sort(again.begin(), again.end());
    CHECK(again == expected);
  }
}

TEST_CASE("equal boxes are placed at the bound, however many") {
  std::vector<tn_buffer> buffers = random_buffers(5, 20'000, 20'000, 6);
  for (tn_buffer& b : buffers) b.bytes = 64;
  std::vector<uint64_t> live(20'001, 0);
  for (const tn_buffer& b : buffers) {
    for (uint32_t step = b.first_step; step <= b.last_step; ++step) live[step] += 64;
  }
  const uint64_t bound = *std::max_element(live.begin(), live.end());
  CHECK(best_of_orders({buffers.data(), 20'000, bound}).height == bound);
}

TEST_CASE("a hundred thousand short-lived buffers are placed") {
  const std::vector<tn_buffer> buffers = random_buffers(3, 100'000, 100'000, 4);
  const Placement placement = greedy_by_size({buffers.data(), 100'000, 0});
  CHECK(placement.offsets.size() == 100'000);
  CHECK(placement.height > 0);
}
