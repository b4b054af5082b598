#include "core/runtime/thread_pool.hpp"

#include <catch2/catch.hpp>

#include <tenon/abi/kernels.h>
#include "core/base/memory_budget.hpp"
#include "core/runtime/cpu_features.hpp"

using namespace tenon;

namespace {
struct Job {
  std::vector<std::atomic<int>> hits;
  std::atomic<uint32_t> highest_worker{0};
  explicit Job(size_t tiles) : hits(tiles) {}
  static int run(void* context, uint32_t tile, uint32_t worker) {
    auto* job = static_cast<Job*>(context);
    ++job->hits[tile];
    uint32_t highest = job->highest_worker;
    while (worker > highest && !job->highest_worker.compare_exchange_weak(highest, worker)) {
    }
    return 0;
  }
};
bool each_once(const Job& job) {
  for (const auto& hit : job.hits) {
    if (hit != 1) return false;
  }
  return true;
}
}  // namespace

TEST_CASE("every tile runs once, whatever the number of threads") {
  for (const unsigned threads : {1u, 2u, 3u, 7u}) {
    ThreadPool pool(threads);
    for (const uint32_t tiles : {0u, 1u, 2u, 5u, 64u, 1000u}) {
      Job job(tiles);
      CHECK(pool.parallel(tiles, Job::run, &job) == 0);
      CHECK(each_once(job));
      CHECK(job.highest_worker < threads);
    }
  }
}

TEST_CASE("workers wake again after they slept") {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Job job(16);
    pool.parallel(16, Job::run, &job);
    CHECK(each_once(job));
  }
}

TEST_CASE("several callers and calls from inside tiles") {
  ThreadPool pool(2);
  std::vector<std::thread> callers;
  std::atomic<int> bad{0};
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        Job job(8);
        pool.parallel(8, Job::run, &job);
        if (!each_once(job)) ++bad;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(bad == 0);
  struct Nested {
    ThreadPool* pool;
    Job job{12};
  } nested{&pool};
  const auto outer = [](void* context, uint32_t tile, uint32_t) {
    auto* n = static_cast<Nested*>(context);
    return tile == 0 ? n->pool->parallel(12, Job::run, &n->job) : 0;
  };
  CHECK(pool.parallel(2, outer, &nested) == 0);
  CHECK(each_once(nested.job));
}

TEST_CASE("a tile's failure is the job's") {
  ThreadPool pool(2);
  const auto fail_at_five = [](void*, uint32_t tile, uint32_t) { return tile == 5 ? 42 : 0; };
  CHECK(pool.parallel(10, fail_at_five, nullptr) == 42);
  CHECK(pool.parallel(4, fail_at_five, nullptr) == 0);
}

TEST_CASE("workers take over the caller's floating-point control") {
  ThreadPool pool(2);
  static std::atomic<int> differing{0};
  differing = 0;
  const uint64_t before = fp_control();
  {
    const FpScope scope(true);
    static uint64_t expected;
    expected = fp_control_flushing(before);
    pool.parallel(
        64,
        [](void*, uint32_t, uint32_t) {
          constexpr uint64_t sticky = 0x3f;  // flags that arithmetic sets
          if ((fp_control() & ~sticky) != (expected & ~sticky)) ++differing;
          return 0;
        },
        nullptr);
  }
  CHECK(differing == 0);
  CHECK((fp_control() & ~uint64_t{0x3f}) == (before & ~uint64_t{0x3f}));
}

TEST_CASE("the cap on instruction sets takes features away and adds none") {
  const uint64_t all = cpu_features_capped("");
  CHECK((cpu_features_capped("avx2") & TN_CPU_AVX512) == 0);
  CHECK((cpu_features_capped("sse42") & TN_CPU_AVX2) == 0);
  CHECK((cpu_features_capped("avx2") & ~all) == 0);
  CHECK(cpu_features_capped("amx") == all);
  CHECK(usable_processors() >= 1);
  CHECK(available_memory_bytes() > 0);
}
