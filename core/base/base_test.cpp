#include <catch2/catch.hpp>

#include "core/base/diagnostics.hpp"
#include "core/base/tensor.hpp"
#include "core/base/text.hpp"

using namespace tenon;

TEST_CASE("Sizes are checked before they are used") {
  uint64_t bytes = 0;
  const std::vector<int64_t> huge{int64_t(1) << 40, int64_t(1) << 40}, negative{2, -1},
      zero{0, int64_t(1) << 40, int64_t(1) << 40}, odd{3};
  CHECK_FALSE(tensor_bytes(TN_FLOAT32, huge, &bytes));
  CHECK_FALSE(tensor_bytes(TN_FLOAT32, negative, &bytes));
  CHECK_FALSE(tensor_bytes(TN_DTYPE_NONE, odd, &bytes));
  const std::vector<int64_t> edge{int64_t(1) << 61};
  CHECK_FALSE(tensor_bytes(TN_FLOAT32, edge, &bytes));
  CHECK(tensor_bytes(TN_FLOAT32, zero, &bytes));
  CHECK(bytes == 0);
  CHECK(tensor_bytes(TN_INT4, odd, &bytes));
  CHECK(bytes == 2);
  CHECK(tensor_bytes(TN_FLOAT32, {}, &bytes));
  CHECK(bytes == 4);
  CHECK_THROWS_AS(Tensor(TN_FLOAT32, huge), Error);
}

TEST_CASE("Tensors own what they hold, texts too") {
  Tensor texts(TN_STRING, {2});
  texts.set_string(1, "long enough not to be held in place");
  const Tensor copy = texts;
  texts = Tensor();
  CHECK(view(copy.as<tn_str>()[0]).empty());
  CHECK(view(copy.as<tn_str>()[1]) == "long enough not to be held in place");
  const Tensor zeros(TN_INT64, {3});
  CHECK(zeros.as<int64_t>()[2] == 0);
  CHECK(reinterpret_cast<uintptr_t>(zeros.data()) % 64 == 0);
  CHECK(Tensor(TN_FLOAT32, {0}).data() != nullptr);
}

TEST_CASE("Element types have names both ways") {
  for (const tn_dtype dtype :
       {TN_FLOAT32, TN_BFLOAT16, TN_INT4, TN_FLOAT8_E4M3FN, TN_STRING, TN_BOOL, TN_COMPLEX64})
    CHECK(dtype_from_name(dtype_name(dtype)) == dtype);
  CHECK_FALSE(dtype_from_name("float31"));
  CHECK(dtype_name(TN_DTYPE(99, 3)) == "dtype(99,3)");
  CHECK(dtype_is_float(TN_BFLOAT16));
  CHECK_FALSE(dtype_is_integer(TN_BOOL));
}

TEST_CASE("Near names are offered, far ones are not") {
  const std::vector<std::string> known{"shapes", "level", "pipeline", "plugins"};
  CHECK(nearest_names("shpaes", known) == std::vector<std::string>{"shapes"});
  CHECK(did_you_mean("Pipelines", known) == "; did you mean 'pipeline'?");
  CHECK(did_you_mean("zzzzzz", known).empty());
  CHECK(did_you_mean("", known).empty());
}

TEST_CASE("Text helpers") {
  CHECK(format_bytes(512) == "512 B");
  CHECK(format_bytes(18300000) == "18.3 MB");
  CHECK(format_bytes(999999) == "1.0 MB");
  CHECK(format_count(1234567) == "1,234,567");
  CHECK(format_count(999) == "999");
  CHECK(quoted("a\"b\n\x01") == "\"a\\\"b\\n\\u0001\"");
  CHECK(glob_match("/head/*", "/head/a/b"));
  CHECK(glob_match("*a*b?", "xxaxxbbc"));
  CHECK_FALSE(glob_match("/head/*", "/tail"));
  CHECK(glob_match(std::string(1000, '*') + "x", std::string(5000, 'y') + "x"));
  CHECK(split("a,,b", ',').size() == 3);
  CHECK(join(std::vector<std::string>{"a", "b"}, ", ") == "a, b");
  CHECK(hex64(255) == "00000000000000ff");
}

TEST_CASE("Findings are collected through the boundary and thrown together") {
  Diagnostics found;
  report(found.abi(), TN_SEVERITY_WARNING, "W1", "here", "careful");
  CHECK_FALSE(found.has_errors());
  found.throw_if_errors(2);
  report(found.abi(), TN_SEVERITY_ERROR, "E1", "file:1:2", "wrong");
  Diagnostics moved = std::move(found);
  report(moved.abi(), TN_SEVERITY_ERROR, "", "", "and this");
  CHECK(moved.error_count() == 2);
  try {
    moved.throw_if_errors(2);
    FAIL("nothing thrown");
  } catch (const Error& error) {
    CHECK(error.exit_code == 2);
    CHECK(error.diagnostics.size() == 3);
    CHECK(std::string(error.what()) == "error E1: file:1:2: wrong\nerror: and this");
  }
  CHECK(moved.empty());
}
