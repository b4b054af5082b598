// A run allocates nothing per node: global operator new is counted.
#include <catch2/catch.hpp>

#include <atomic>
#include <cstdlib>
#include <new>

#include "core/runtime/test_fakes.hpp"

namespace {
std::atomic<uint64_t> allocations{0};
void* counted(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
  throw std::bad_alloc();
}
}  // namespace

// Not inlined: GCC 12 would take free() in a caller for the wrong partner of its new.
#define REPLACED __attribute__((noinline))
REPLACED void* operator new(std::size_t bytes) { return counted(bytes); }
REPLACED void* operator new[](std::size_t bytes) { return counted(bytes); }
// std::stable_sort takes its buffer by the form that does not throw, and gives it back by the plain one.
REPLACED void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes == 0 ? 1 : bytes);
}
REPLACED void* operator new[](std::size_t bytes, const std::nothrow_t& tag) noexcept {
  return ::operator new(bytes, tag);
}
REPLACED void operator delete(void* p) noexcept { std::free(p); }
REPLACED void operator delete[](void* p) noexcept { std::free(p); }
REPLACED void operator delete(void* p, std::size_t) noexcept { std::free(p); }
REPLACED void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

using namespace tenon;
using namespace tenon::fakes;

TEST_CASE("the number of allocations of a run does not depend on the number of nodes") {
  const auto all = registries();
  const auto per_run = [&](int nodes) {
    Builder b(*all);
    const tn_value x = b.input("x", TN_FLOAT32, {"64"});
    tn_value v = b.node("Add", {x, x});
    for (int i = 0; i < nodes; ++i)
      v = b.node(i % 2 == 0 ? "Twice" : "Add",
                 i % 2 == 0 ? std::vector<tn_value>{v} : std::vector<tn_value>{v, x});
    b.outputs({v});
    RuntimeOptions options;
    options.threads = 2;
    const Session session(b.finish(), *all, options);
    Floats input{std::vector<float>(64, 1), {64}};
    const std::vector<NamedTensor> given = {{"x", input.tensor(), nullptr}};
    for (int i = 0; i < 3; ++i) session.run(given);
    const uint64_t before = allocations;
    session.run(given);
    return allocations - before;
  };
  const uint64_t few = per_run(4), many = per_run(400);
  CHECK(few == many);
  CHECK(many < 24);
}
