// The harness itself: what counts as equal, what the list says, and that a crash costs one test.
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <thread>

#include "compare.hpp"
#include "expectations.hpp"
#include "workers.hpp"

namespace tenon::conformance {

namespace {

template <typename T>
AnyRef tensor(tn_dtype dtype, std::vector<int64_t> dims, std::vector<T> elements) {
  AnyRef value = new_tensor(dtype, dims, "test");
  REQUIRE(value->bytes == elements.size() * sizeof(T));
  if (!elements.empty()) std::memcpy(value->data, elements.data(), value->bytes);
  return value;
}

std::string compare(const AnyRef& got, const AnyRef& expected, bool shape_only = false) {
  return difference(*got.get(), *expected.get(), {1e-3, 1e-7}, shape_only);
}

AnyRef floats(std::vector<float> elements) {
  return tensor<float>(TN_FLOAT32, {static_cast<int64_t>(elements.size())}, elements);
}

}  // namespace

TEST_CASE("floats are compared within the tolerance, specials exactly", "[conformance]") {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  struct Row {
    float got, expected;
    bool equal;
  };
  const Row rows[] = {{1.0f, 1.0009f, true}, {1.0f, 1.0011f, false}, {0.0f, 9e-8f, true},
                      {0.0f, 2e-7f, false},  {nan, nan, true},       {nan, 1, false},
                      {1, nan, false},       {inf, inf, true},       {inf, -inf, false},
                      {1e38f, inf, false},   {0.0f, -0.0f, true}};
  for (const Row& row : rows) {
    INFO(row.got << " and " << row.expected);
    CHECK(compare(floats({row.got}), floats({row.expected})).empty() == row.equal);
  }
  CHECK(compare(floats({1, 2, 3, 4}), floats({1, 2.5, 3, 5})) ==
        "2 of 4 elements differ, first [1]: 2, expected 2.5; by up to 1 (float32[4])");
}

TEST_CASE("integers and bools have no tolerance, whatever their width", "[conformance]") {
  const auto integer = [](int64_t value) { return tensor<int64_t>(TN_INT64, {}, {value}); };
  CHECK(compare(integer(1'000'000'000'000), integer(1'000'000'000'000)).empty());
  CHECK(compare(integer(-1'000'000'000'001), integer(1'000'000'000'000)) ==
        "1 of 1 elements differ, first []: -1000000000001, expected 1000000000000 (int64[])");
  const auto packed = [](tn_dtype dtype, uint8_t byte) { return tensor<uint8_t>(dtype, {2}, {byte}); };
  CHECK(compare(packed(TN_INT4, 0xf1), packed(TN_INT4, 0x71)) ==
        "1 of 2 elements differ, first [1]: -1, expected 7 (int4[2])");
  CHECK(compare(packed(TN_UINT4, 0xf1), packed(TN_UINT4, 0xf2)) ==
        "1 of 2 elements differ, first [0]: 1, expected 2 (uint4[2])");
  CHECK(compare(packed(TN_UINT2, 0x0d), packed(TN_UINT2, 0x1d)).empty());  // bits behind the last element
}

TEST_CASE("small floats are compared by their value", "[conformance]") {
  struct Row {
    tn_dtype dtype;
    uint16_t got, expected;
    std::string message;
  };
  const Row rows[] = {
      {TN_FLOAT16, 0x3c00, 0x3c01, ""},
      {TN_FLOAT16, 0x3c00, 0x3c02, "first [0]: 1, expected 1.00195312"},
      {TN_FLOAT16, 0x7c00, 0x7c00, ""},
      {TN_FLOAT16, 0x0001, 0x0001, ""},
      {TN_BFLOAT16, 0x3f80, 0x3f82, ""},
      {TN_BFLOAT16, 0x3f80, 0x3f83, "first [0]: 1, expected 1.0234375"},
      {TN_FLOAT8_E4M3FN, 0x7f, 0xff, ""},
      {TN_FLOAT8_E4M3FN, 0x7e, 0x7d, "first [0]: 448, expected 416"},
      {TN_FLOAT8_E4M3FNUZ, 0x80, 0x00, "first [0]: nan, expected 0"},
      {TN_FLOAT8_E5M2, 0x7c, 0xfc, "first [0]: inf, expected -inf"},
      {TN_FLOAT8_E5M2FNUZ, 0x7f, 0x7e, "first [0]: 57344, expected 49152"},
      {TN_FLOAT8_E8M0, 0x7f, 0x80, "first [0]: 1, expected 2"},
      {TN_FLOAT8_E8M0, 0xff, 0xff, ""},
      {TN_FLOAT4_E2M1, 0x07, 0x0f, "first [0]: 6, expected -6"},
      {TN_FLOAT4_E2M1, 0x01, 0x02, "first [0]: 0.5, expected 1"},
  };
  for (const Row& row : rows) {
    const auto value = [&](uint16_t code) {
      return TN_DTYPE_BITS(row.dtype) == 16 ? tensor<uint16_t>(row.dtype, {1}, {code})
                                            : tensor<uint8_t>(row.dtype, {1}, {static_cast<uint8_t>(code)});
    };
    INFO("codes " << row.got << " and " << row.expected << " of dtype " << row.dtype);
    const std::string found = compare(value(row.got), value(row.expected));
    if (row.message.empty())
      CHECK(found.empty());
    else
      CHECK_THAT(found, Catch::Contains(row.message + (row.message.find("nan") != std::string::npos ||
                                                               row.message.find("inf") != std::string::npos
                                                           ? ""
                                                           : ";")));
  }
}

TEST_CASE("types, shapes and kinds must be the same", "[conformance]") {
  CHECK(compare(floats({1}), tensor<float>(TN_FLOAT32, {1, 1}, {1})) ==
        "type float32[1], expected float32[1,1]");
  CHECK(compare(floats({1}), tensor<int32_t>(TN_INT32, {1}, {1})) == "type float32[1], expected int32[1]");
  CHECK(compare(floats({1}), floats({2}), true).empty());
  CHECK(compare(floats({1}), floats({1, 2}), true) == "type float32[1], expected float32[2]");

  AnyRef one = floats({1}), two = floats({2});
  tn_any* items[] = {one.get(), two.get()};
  AnyRef both = new_sequence(items, TN_FLOAT32), first = new_sequence({items, 1}, TN_FLOAT32);
  CHECK(compare(both, both).empty());
  CHECK(compare(both, first) == "a sequence of 2, expected 1");
  CHECK(compare(one, first) == "a tensor, expected a sequence");
  std::swap(items[0], items[1]);
  CHECK_THAT(compare(new_sequence(items, TN_FLOAT32), both),
             Catch::StartsWith("item 0: 1 of 1 elements differ"));

  AnyRef full = new_optional(one.get()), empty = new_optional(nullptr);
  CHECK(compare(full, full).empty());
  CHECK(compare(empty, empty).empty());
  CHECK(compare(full, one).empty());
  CHECK(compare(full, empty) == "a tensor, expected an empty optional");
  CHECK(compare(empty, both) == "an empty optional, expected a sequence");
}

TEST_CASE("the list of expectations", "[conformance]") {
  const auto list = ExpectationList::parse("list", R"(# a comment
shape  node/test_bernoulli*         draws random numbers

fails  node/test_a@pass:*           an operator is missing
skip   node/test_bernoulli_seed     takes an hour
)");
  CHECK(list.of("node/test_bernoulli", "optimised") == Expectation::shape_only);
  CHECK(list.of("node/test_bernoulli_seed", "optimised") == Expectation::not_run);  // the last one decides
  CHECK(list.of("node/test_a", "pass:fold") == Expectation::fails);
  CHECK(list.of("node/test_a", "optimised") == Expectation::passes);
  CHECK(list.of("node/test_ab", "pass:fold") == Expectation::passes);
  CHECK(list.find("node/test_a", "pass:fold")->reason == "an operator is missing");

  std::vector<Case> cases(2);
  cases[0].name = "node/test_a";
  cases[1].name = "node/test_bernoulli";
  CHECK(list.stale(cases) ==
        std::vector<std::string>{"list:5: no test is called node/test_bernoulli_seed; remove the entry"});

  CHECK_THROWS_WITH(ExpectationList::parse("list", "perhaps node/a why\nfails node/b\nskip c why\n"),
                    "list:1: 'perhaps' is none of shape, fails, skip\n"
                    "list:2: no reason is given for node/b\n"
                    "list:3: 'c' is no test: expected SUITE/NAME, as in node/test_abs");
}

TEST_CASE("a job that crashes, ends or hangs is named, and the others are done", "[conformance]") {
  std::map<size_t, std::string> results;
  std::map<size_t, bool> lost;
  const auto work = [](size_t job) -> std::string {
    if (job == 3) std::raise(SIGKILL);
    if (job == 5) _exit(7);
    if (job == 8)
      while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
    return std::string(job * 10'000, 'x');
  };
  const auto done = [&](size_t job, const std::string& text, bool was_lost) {
    CHECK(results.count(job) == 0);
    results[job] = text;
    lost[job] = was_lost;
  };
  for (const unsigned workers : {1u, 3u}) {
    results.clear();
    run_in_workers({{0, 6}, {6, 7}, {7, 10}}, workers, std::chrono::seconds(1), work, done);
    REQUIRE(results.size() == 10);
    for (size_t job = 0; job < 10; ++job) {
      INFO("job " << job << ": " << results[job].substr(0, 100));
      CHECK(lost[job] == (job == 3 || job == 5 || job == 8));
    }
    CHECK(results[3] == "crashed: SIGKILL (Killed)");
    CHECK(results[5] == "ended the process with code 7");
    CHECK(results[8] == "did not end within 1 s");
    CHECK(results[9] == std::string(90'000, 'x'));
  }
}

}  // namespace tenon::conformance
