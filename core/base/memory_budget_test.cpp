#include "core/base/memory_budget.hpp"

#include <catch2/catch.hpp>

#include "core/base/diagnostics.hpp"
#include "core/base/tensor.hpp"

using namespace tenon;
using Catch::Matchers::Contains;

TEST_CASE("amounts of memory are read with their units") {
  const std::pair<const char*, uint64_t> good[] = {{"0", 0},
                                                   {"4096", 4096},
                                                   {"10B", 10},
                                                   {"1k", 1000},
                                                   {"500MB", 500'000'000},
                                                   {"500 mb", 500'000'000},
                                                   {"2GiB", uint64_t{2} << 30},
                                                   {"1.5 GB", 1'500'000'000},
                                                   {"1KiB", 1024},
                                                   {"3T", 3'000'000'000'000}};
  for (const auto& [text, bytes] : good) {
    INFO(text);
    REQUIRE(parse_memory_size(text));
    CHECK(*parse_memory_size(text) == bytes);
  }
  for (const char* text : {"", "MB", ".", "-1", "1..2", "5 quux", "1e9", "99999999999T", "1 2", "0x10"}) {
    INFO(text);
    CHECK_FALSE(parse_memory_size(text));
  }
}

TEST_CASE(
    "what goes beyond the limit is an error that says what wanted how much; what is given back can be had "
    "again") {
  const uint64_t before = memory_in_use();
  set_memory_limit(before + 1'000'000);
  {
    const MemoryShare first(600'000, "here", "the first");
    CHECK(memory_in_use() == before + 600'000);
    try {
      const MemoryShare second(600'000, "node 'n'", "float32 [150000]");
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.exit_code == exit_job_failed);
      CHECK_THAT(error.what(), Contains("node 'n'") && Contains("float32 [150000] is too large") &&
                                   Contains("600.0 kB needed") && Contains("--memory-limit"));
    }
    CHECK_THROWS_AS(require_memory(UINT64_MAX, "", "everything"), Error);
    CHECK_THROWS_AS(Tensor(TN_FLOAT32, {200'000}), Error);
    CHECK(memory_in_use() == before + 600'000);
  }
  {
    const Tensor fits(TN_FLOAT32, {200'000});
    CHECK(memory_in_use() >= before + 800'000);
    const auto bytes = counted_bytes(100'000, "", "some");
    CHECK(memory_in_use() >= before + 900'000);
  }
  CHECK(memory_in_use() == before);
  set_memory_limit(0);
  CHECK_NOTHROW(MemoryShare(uint64_t{1} << 20, "", "more"));
}
