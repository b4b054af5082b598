#include "core/runtime/thread_pool.hpp"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <map>
#include <mutex>

#include "core/base/crash_report.hpp"
#include "core/runtime/cpu_features.hpp"

namespace tenon {
namespace {

constexpr uint64_t open_bit = uint64_t{1} << 31;
constexpr auto spin_time = std::chrono::microseconds(30);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

uint32_t generation_of(uint64_t door) { return static_cast<uint32_t>(door >> 32); }

// Pinning helps only when each thread gets a processor of its own; two pools pinned to the same one would
// starve.
void pin(std::thread& thread, unsigned number) {
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  unsigned seen = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || seen++ != number) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(thread.native_handle(), sizeof one, &one);
    return;
  }
#else
  (void)thread;
  (void)number;
#endif
}

}  // namespace

ThreadPool::ThreadPool(unsigned threads)
    : threads_(threads == 0 ? usable_processors() : threads), ranges_(new Range[threads_]) {
  workers_.reserve(threads_ - 1);
  const bool one_each = threads_ == usable_processors();
  for (uint32_t worker = 1; worker < threads_; ++worker) {
    workers_.emplace_back([this, worker] { work(worker); });
    if (one_each) pin(workers_.back(), worker);
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_seq_cst);
  wake_.fetch_add(1, std::memory_order_seq_cst);
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

// Each participant begins with its own share of the tiles, so that neighbouring steps find their data in the
// same core's cache, and then helps the others.
void ThreadPool::run_tiles(uint32_t participant) {
  const TileFunction function = function_;
  void* const context = context_;
  for (uint32_t k = 0; k < threads_; ++k) {
    Range& range = ranges_[(participant + k) % threads_];
    while (range.next.load(std::memory_order_relaxed) < range.end) {
      const uint32_t tile = range.next.fetch_add(1, std::memory_order_relaxed);
      if (tile >= range.end || failure_.load(std::memory_order_relaxed) != 0) break;
      const int result = function(context, tile, participant);
      if (result != 0) failure_.store(result, std::memory_order_relaxed);
    }
  }
}

void ThreadPool::work(uint32_t worker) {
  const CrashStack stack;
  uint32_t last = 0;
  while (true) {
    // Read before the door: a job published after this changes it, so the sleep below returns at once.
    const uint32_t wake = wake_.load(std::memory_order_seq_cst);
    const auto begin = std::chrono::steady_clock::now();
    uint64_t door = 0;
    bool found = false;
    for (uint32_t spins = 0; !found; ++spins) {
      if (stop_.load(std::memory_order_relaxed)) return;
      door = door_.load(std::memory_order_acquire);
      found = generation_of(door) != last && (door & open_bit) != 0;
      if (found) break;
      pause();
      if (spins % 64 == 63 && std::chrono::steady_clock::now() - begin > spin_time) break;
    }
    if (!found) {
      sleeping_.fetch_add(1, std::memory_order_seq_cst);
      wake_.wait(wake, std::memory_order_seq_cst);
      sleeping_.fetch_sub(1, std::memory_order_relaxed);
      continue;
    }
    // The door shuts behind the last tile: whoever comes late finds another word there and does not enter.
    if (!door_.compare_exchange_weak(door, door + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
      continue;
    last = generation_of(door);
    set_fp_control(fp_control_);
    run_tiles(worker);
    door_.fetch_sub(1, std::memory_order_release);
  }
}

int ThreadPool::parallel(uint32_t tiles, TileFunction function, void* context) {
  if (tiles <= 1 || threads_ == 1 || busy_.exchange(true, std::memory_order_acquire)) {
    for (uint32_t tile = 0; tile < tiles; ++tile) {
      const int result = function(context, tile, 0);
      if (result != 0) return result;
    }
    return 0;
  }
  function_ = function;
  context_ = context;
  fp_control_ = fp_control();
  failure_.store(0, std::memory_order_relaxed);
  for (uint32_t i = 0; i < threads_; ++i) {
    ranges_[i].next.store(static_cast<uint32_t>(uint64_t{tiles} * i / threads_), std::memory_order_relaxed);
    ranges_[i].end = static_cast<uint32_t>(uint64_t{tiles} * (i + 1) / threads_);
  }
  // Generation 0 is what workers start with, so it is left out when the count wraps.
  uint32_t generation = generation_of(door_.load(std::memory_order_relaxed)) + 1;
  if (generation == 0) generation = 1;
  const uint64_t closed = uint64_t{generation} << 32;
  door_.store(closed | open_bit, std::memory_order_release);
  wake_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) > 0) wake_.notify_all();

  run_tiles(0);
  uint64_t door = closed | open_bit;
  for (uint32_t spins = 0;
       !door_.compare_exchange_weak(door, closed, std::memory_order_acq_rel, std::memory_order_relaxed);
       ++spins) {
    door = closed | open_bit;
    if (spins < 4096) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
  const int failure = failure_.load(std::memory_order_relaxed);
  busy_.store(false, std::memory_order_release);
  return failure;
}

std::shared_ptr<ThreadPool> ThreadPool::shared(unsigned threads) {
  static std::mutex mutex;
  static std::map<unsigned, std::weak_ptr<ThreadPool>> pools;
  const unsigned count = threads == 0 ? usable_processors() : threads;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<ThreadPool> pool = pools[count].lock();
  if (pool == nullptr) pools[count] = pool = std::make_shared<ThreadPool>(count);
  return pool;
}

}  // namespace tenon
