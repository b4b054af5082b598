// Which events make queues that work side by side safe: read after write, write after read, write after
// write.
//
// Items are issued in order by one thread. Queue 0 is that thread itself: its items are done when the next
// one is issued. Items of one other queue happen in order, two such queues in any order, unless one waits for
// the other.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace tenon {

struct MemoryAccess {
  uint32_t memory = 0;  // addresses of different memories are not compared
  uint64_t begin = 0, end = 0;
  bool writes = false;
};
struct QueuedItem {
  uint32_t queue = 0;
  std::vector<MemoryAccess> accesses;
};
struct WaitPlan {
  std::vector<std::vector<uint32_t>> waits;  // by item: those (of other queues) it must wait for, ascending
  std::vector<bool> recorded;                // by item: somebody waits for it
};

// Every two items that touch a byte, one of them writing, are ordered as issued; a wait that others imply is
// left out.
WaitPlan plan_waits(std::span<const QueuedItem> items, uint32_t queue_count);

}  // namespace tenon
