#include "core/runtime/queue_waits.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace tenon {
namespace {

constexpr uint32_t nobody = UINT32_MAX;

// Who touched these bytes last: one writer, then at most one reader a queue that counts.
struct LastAccess {
  uint64_t end = 0;
  uint32_t writer = nobody;
  std::vector<uint32_t> readers;
};
using Memory = std::map<uint64_t, LastAccess>;  // by begin; pieces do not overlap

// Makes piece borders at `at`, where a piece spans it.
void split(Memory& memory, uint64_t at) {
  auto next = memory.upper_bound(at);
  if (next == memory.begin()) return;
  auto piece = std::prev(next);
  if (piece->first == at || piece->second.end <= at) return;
  LastAccess rest = piece->second;
  piece->second.end = at;
  memory.emplace_hint(next, at, std::move(rest));
}

class Waits {
 public:
  Waits(std::span<const QueuedItem> items, uint32_t queues)
      : items_(items), clocks_(queues, std::vector<uint32_t>(queues, 0)), at_item_(items.size()) {
    plan_.waits.resize(items.size());
    plan_.recorded.resize(items.size(), false);
  }

  WaitPlan run() {
    for (uint32_t i = 0; i < items_.size(); ++i) {
      const uint32_t queue = items_[i].queue;
      // What the issuing thread has seen done is done for whatever it issues.
      merge(clocks_[queue], clocks_[0]);
      std::vector<uint32_t> before = conflicts(i);
      // The latest first: its wait may imply the others.
      std::sort(before.begin(), before.end(), std::greater<>());
      for (const uint32_t other : before) {
        const uint32_t of = items_[other].queue;
        if (of == 0 || of == queue || clocks_[queue][of] > other) continue;
        plan_.waits[i].push_back(other);
        plan_.recorded[other] = true;
        merge(clocks_[queue], at_item_[other]);
      }
      std::sort(plan_.waits[i].begin(), plan_.waits[i].end());
      clocks_[queue][queue] = i + 1;
      at_item_[i] = clocks_[queue];
    }
    return std::move(plan_);
  }

 private:
  // clock[q] = one more than the last item of queue q that is known to be done.
  using Clock = std::vector<uint32_t>;
  static void merge(Clock& into, const Clock& from) {
    for (size_t q = 0; q < into.size(); ++q) into[q] = std::max(into[q], from[q]);
  }

  std::vector<uint32_t> conflicts(uint32_t i) {
    std::vector<uint32_t> found;
    for (const MemoryAccess& access : items_[i].accesses) {
      if (access.begin >= access.end) continue;
      Memory& memory = memories_[access.memory];
      split(memory, access.begin);
      split(memory, access.end);
      uint64_t at = access.begin;
      for (auto piece = memory.lower_bound(access.begin); at < access.end;) {
        if (piece == memory.end() || piece->first > at) {  // bytes that nobody has touched
          const uint64_t end = piece == memory.end() ? access.end : std::min(piece->first, access.end);
          piece = memory.emplace_hint(piece, at, LastAccess{end, nobody, {}});
        }
        touch(piece->second, i, access.writes, found);
        at = piece->second.end;
        ++piece;
      }
    }
    return found;
  }

  void touch(LastAccess& last, uint32_t i, bool writes, std::vector<uint32_t>& found) {
    const auto conflict = [&](uint32_t other) {
      if (other != nobody && other != i) found.push_back(other);
    };
    conflict(last.writer);
    if (writes) {
      for (const uint32_t reader : last.readers) conflict(reader);
      last.writer = i;
      last.readers.clear();
      return;
    }
    if (last.writer == i) return;  // reads what it writes itself
    // A later reader of the same queue stands for an earlier one.
    std::erase_if(last.readers, [&](uint32_t other) { return items_[other].queue == items_[i].queue; });
    last.readers.push_back(i);
  }

  std::span<const QueuedItem> items_;
  std::vector<Clock> clocks_, at_item_;
  std::unordered_map<uint32_t, Memory> memories_;
  WaitPlan plan_;
};

}  // namespace

WaitPlan plan_waits(std::span<const QueuedItem> items, uint32_t queue_count) {
  return Waits(items, queue_count).run();
}

}  // namespace tenon
