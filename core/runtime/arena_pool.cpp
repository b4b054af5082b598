#include "core/runtime/arena_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "core/base/memory_budget.hpp"

namespace tenon {
namespace {
constexpr uint64_t huge_page = uint64_t{2} << 20;
constexpr uint64_t page = 4096;
}  // namespace

ArenaBlock map_memory(uint64_t bytes, const std::string& where, const std::string& what) {
  const uint64_t rounded = bytes >= huge_page ? (bytes + huge_page - 1) / huge_page * huge_page
                                              : (std::max<uint64_t>(bytes, 1) + page - 1) / page * page;
  MemoryShare share(rounded, where, what);
  void* base = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (rounded >= huge_page) madvise(base, rounded, MADV_HUGEPAGE);
#endif
  return {static_cast<uint8_t*>(base), share.release()};
}

void unmap_memory(ArenaBlock block) {
  if (block.base == nullptr) return;
  munmap(block.base, block.bytes);
  give_memory_back(block.bytes);
}

ArenaPool::~ArenaPool() {
  for (const ArenaBlock& block : free_) unmap_memory(block);
}

ArenaBlock ArenaPool::acquire(uint64_t bytes) {
  if (bytes == 0) return {};
  ArenaBlock outgrown;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = free_.size(); i-- > 0;) {
      if (free_[i].bytes < bytes) continue;
      const ArenaBlock block = free_[i];
      free_.erase(free_.begin() + static_cast<ptrdiff_t>(i));
      return block;
    }
    if (!free_.empty()) {  // the larger one takes its place
      outgrown = free_.back();
      free_.pop_back();
    }
    free_.reserve(free_.size() + 8);  // so that release never allocates in a run
  }
  unmap_memory(outgrown);
  return map_memory(bytes, "memory of intermediates", "the arena of this run");
}

void ArenaPool::release(ArenaBlock block) {
  if (block.base == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(block);
}

}  // namespace tenon
