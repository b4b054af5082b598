// Memory for intermediates: mapped, page-aligned, kept between runs. One arena a running frame, so what is
// held is what ran at once, not what was ever planned.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tenon {

struct ArenaBlock {
  uint8_t* base = nullptr;
  uint64_t bytes = 0;
};

class ArenaPool {
 public:
  ArenaPool() = default;
  ~ArenaPool();
  ArenaPool(const ArenaPool&) = delete;
  ArenaPool& operator=(const ArenaPool&) = delete;

  // At least `bytes`; the block given back last is the first to come again. Throws Error "too large". [any]
  ArenaBlock acquire(uint64_t bytes);
  void release(ArenaBlock block);

 private:
  std::mutex mutex_;
  std::vector<ArenaBlock> free_;
};

// Zeroed, 64-byte aligned, with huge pages when large; counts as memory in use. Throws Error "too large",
// std::bad_alloc.
ArenaBlock map_memory(uint64_t bytes, const std::string& where, const std::string& what);
void unmap_memory(ArenaBlock block);

}  // namespace tenon
