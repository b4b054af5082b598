// The host's pool: the caller and N-1 workers run the tiles of one job. A worker that has nothing to do spins
// about 30 us, then sleeps on a futex. Several threads may call at once: one has the workers, the others run
// their tiles themselves. Nothing is allocated in parallel().
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace tenon {

class ThreadPool {
 public:
  // One tile on one worker, both counted from 0; worker 0 is the caller. Non-zero: failed, tiles not begun
  // are skipped.
  using TileFunction = int (*)(void* context, uint32_t tile, uint32_t worker);

  // 0: usable_processors(). Workers are pinned when the pool has as many threads as there are processors.
  explicit ThreadPool(unsigned threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned size() const { return threads_; }  // the caller included
  // Returns when all tiles have run: 0, or the result of one that failed. Workers take over the caller's
  // floating-point control word. May be called from inside a tile (those tiles then run on the calling
  // thread). [any]
  int parallel(uint32_t tiles, TileFunction function, void* context);

  // In a process that was forked off, which has no workers: all tiles run on the caller from here on.
  void forget_workers() { busy_.store(true, std::memory_order_relaxed); }

  // The pool that sessions with this thread count share in this process.
  static std::shared_ptr<ThreadPool> shared(unsigned threads = 0);

 private:
  struct alignas(64) Range {
    std::atomic<uint32_t> next{0};
    uint32_t end = 0;
  };
  void work(uint32_t worker);
  void run_tiles(uint32_t participant);

  const unsigned threads_;
  std::unique_ptr<Range[]> ranges_;
  // The job; written only while it is closed, read only by participants.
  TileFunction function_ = nullptr;
  void* context_ = nullptr;
  uint64_t fp_control_ = 0;
  alignas(64) std::atomic<int> failure_{0};
  // generation << 32 | open bit << 31 | workers inside.
  alignas(64) std::atomic<uint64_t> door_{0};
  alignas(64) std::atomic<uint32_t> wake_{0};  // changes with each job, and at the end; workers sleep on it
  std::atomic<uint32_t> sleeping_{0};
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<bool> busy_{false};
  std::vector<std::thread> workers_;
};

}  // namespace tenon
