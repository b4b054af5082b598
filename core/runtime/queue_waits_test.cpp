#include "core/runtime/queue_waits.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace tenon;
namespace {

// By definition: who is certainly done when item j begins.
std::vector<std::vector<bool>> order_of(const std::vector<QueuedItem>& items, const WaitPlan& plan) {
  const size_t n = items.size();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));
  std::vector<bool> seen_by_host(n, false);  // done, as the issuing thread knows
  const auto also = [&](std::vector<bool>& into, size_t other) {
    into[other] = true;
    for (size_t k = 0; k < n; ++k) into[k] = into[k] || before[other][k];
  };
  for (size_t j = 0; j < n; ++j) {
    before[j] = seen_by_host;
    for (size_t i = 0; i < j; ++i) {
      if (items[i].queue == items[j].queue) also(before[j], i);
    }
    for (const uint32_t other : plan.waits[j]) also(before[j], other);
    if (items[j].queue == 0) {
      seen_by_host = before[j];
      also(seen_by_host, j);
    }
  }
  return before;
}

bool conflict(const QueuedItem& a, const QueuedItem& b) {
  for (const MemoryAccess& x : a.accesses) {
    for (const MemoryAccess& y : b.accesses) {
      if (x.begin >= x.end || y.begin >= y.end) continue;  // no byte at all
      if (x.memory == y.memory && x.begin < y.end && y.begin < x.end && (x.writes || y.writes)) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("every conflict is ordered as issued, and no wait is needless: random queues") {
  std::mt19937 random(5);
  uint64_t waits = 0, conflicts = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const uint32_t queues = 1 + random() % 5;
    std::vector<QueuedItem> items(random() % 24);
    for (QueuedItem& item : items) {
      item.queue = random() % queues;
      for (uint32_t a = random() % 4; a > 0; --a) {
        const uint64_t begin = random() % 12;
        item.accesses.push_back(
            {static_cast<uint32_t>(random() % 2), begin, begin + random() % 5, random() % 3 == 0});
      }
    }
    const WaitPlan plan = plan_waits(items, queues);
    const auto before = order_of(items, plan);
    INFO("trial " << trial);
    for (size_t j = 0; j < items.size(); ++j) {
      for (size_t i = 0; i < j; ++i) {
        if (!conflict(items[i], items[j])) continue;
        ++conflicts;
        REQUIRE((before[j][i] || items[i].queue == 0));
      }
      for (const uint32_t other : plan.waits[j]) {
        REQUIRE(other < j);
        REQUIRE(items[other].queue != 0);
        REQUIRE(items[other].queue != items[j].queue);
        REQUIRE(plan.recorded[other]);
        ++waits;
        WaitPlan without = plan;
        std::erase(without.waits[j], other);
        const auto weaker = order_of(items, without);
        bool needed = false;
        for (size_t i = 0; i < j; ++i)
          needed = needed || (conflict(items[i], items[j]) && items[i].queue != 0 && !weaker[j][i]);
        REQUIRE(needed);
      }
    }
  }
  CHECK(waits > 500);
  CHECK(conflicts > 2 * waits);  // most orders are implied
}

TEST_CASE("one queue, and items of the issuing thread, need no event") {
  const MemoryAccess write{0, 0, 8, true}, read{0, 4, 6, false};
  const std::vector<QueuedItem> alone = {{1, {write}}, {1, {read}}, {1, {write}}};
  for (const auto& waits : plan_waits(alone, 2).waits) CHECK(waits.empty());
  const std::vector<QueuedItem> mixed = {{0, {write}}, {1, {read}}, {0, {write}}, {1, {read}}};
  const WaitPlan plan = plan_waits(mixed, 2);
  CHECK(plan.waits[1].empty());
  CHECK(plan.waits[2] == std::vector<uint32_t>{1});  // the thread must not write over what is being read
  CHECK(plan.waits[3].empty());
}

TEST_CASE("reuse of memory waits for the copy that still reads it") {
  // compute writes A, the copy queue reads it, compute writes B over it, the thread reads what was copied.
  const std::vector<QueuedItem> items = {{1, {{0, 0, 64, true}}},
                                         {2, {{0, 0, 64, false}, {1, 0, 64, true}}},
                                         {1, {{0, 32, 96, true}}},
                                         {0, {{1, 0, 64, false}}}};
  const WaitPlan plan = plan_waits(items, 3);
  CHECK(plan.waits[1] == std::vector<uint32_t>{0});
  CHECK(plan.waits[2] == std::vector<uint32_t>{1});
  CHECK(plan.waits[3] == std::vector<uint32_t>{1});
}
