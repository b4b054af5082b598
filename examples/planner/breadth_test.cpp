// The plan itself, without a host: nothing overlaps, alignment holds, and a chain needs what two steps need.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "breadth.hpp"

using tenon::sdk::Placement;

namespace {

/// Bytes of the arena; fails where two that live together overlap.
uint64_t planned(const std::vector<tn_buffer>& buffers, uint64_t bound = 0) {
  Placement placement{buffers, bound, std::vector<uint64_t>(buffers.size(), 0)};
  acme::plan_by_breadth(placement);
  uint64_t arena = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    CHECK(placement.offset[i] % buffers[i].alignment == 0);
    arena = std::max(arena, placement.offset[i] + buffers[i].bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together =
          buffers[i].first_step <= buffers[j].last_step && buffers[j].first_step <= buffers[i].last_step;
      const bool apart = placement.offset[i] + buffers[i].bytes <= placement.offset[j] ||
                         placement.offset[j] + buffers[j].bytes <= placement.offset[i];
      if (together && !apart) FAIL("buffers " << i << " and " << j << " overlap");
    }
  }
  return arena;
}

}  // namespace

TEST_CASE("a chain takes the space of its widest step") {
  CHECK(planned({{100, 1, 0, 1}, {300, 1, 1, 2}, {200, 1, 2, 3}, {50, 1, 3, 4}}) == 500);
  CHECK(planned({}) == 0);
}

TEST_CASE("random lifetimes: never below what lives at once, never more than all") {
  std::mt19937 random(11);
  for (int problem = 0; problem < 50; ++problem) {
    std::vector<tn_buffer> buffers;
    uint64_t all = 0;
    for (int i = 0; i < 60; ++i) {
      const uint32_t first = random() % 40;
      buffers.push_back({1 + random() % 5000, uint64_t{1} << (random() % 7), first,
                         first + static_cast<uint32_t>(random() % 12)});
      all += buffers.back().bytes + 64;
    }
    uint64_t bound = 0;
    for (uint32_t step = 0; step < 52; ++step) {
      uint64_t live = 0;
      for (const tn_buffer& b : buffers) live += b.first_step <= step && step <= b.last_step ? b.bytes : 0;
      bound = std::max(bound, live);
    }
    const uint64_t arena = planned(buffers, bound);
    CHECK(arena >= bound);
    CHECK(arena <= all);
  }
}

TEST_CASE("too many buffers are declined, with the number") {
  const std::vector<tn_buffer> many(acme::most_buffers + 1, tn_buffer{1, 1, 0, 0});
  Placement placement{many, 0, std::vector<uint64_t>(many.size(), 0)};
  CHECK_THROWS_WITH(acme::plan_by_breadth(placement), "more than 20000 buffers");
}
