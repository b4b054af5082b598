// Named transforms: a plugin makes a constant that expressions cannot say.
#include <catch2/catch.hpp>

#include "core/graph/edit.hpp"
#include "rule_harness.hpp"
#include "test_paths.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

RuleHarness& harness() {
  static RuleHarness h({build_dir() + "/tests/plugins/libtransforms.so"});
  return h;
}

std::string rule(const std::string& let) {
  return R"({"rule": "A", "once": true, "pattern": {"nodes": {"p": {"op": "Mul", "in": ["U", "V"], "out": ["a"]}, "q": {"op": "Add", "in": ["a", "X"], "out": ["z"]}},
    "values": {"U": {"const": true}, "V": {"const": true}}, "outputs": ["z"]}, "let": {"W": )" +
         let + R"(}, "replace": {"nodes": {"f": {"op": "Add", "in": ["W", "X"], "out": ["z"]}}}})";
}
std::string text(const char* type) {
  return std::string(
             "graph \"g\" {\n  opset \"\" 28\n  const %u: float32[2] = [1.0, 2.0]\n  const %v: float32[2] = "
             "[3.0, 4.0]\n  input %x: ") +
         type + "\n  %a = Mul(%u, %v)\n  %z = Add(%a, %x)\n  output %z as \"z\"\n}\n";
}
std::string joined(const std::vector<std::string>& all) {
  std::string s;
  for (const auto& x : all) s += x + "\n";
  return s;
}

}  // namespace

TEST_CASE("A transform of a plugin makes the constant of a replacement", "[rules][transform]") {
  const std::string folded =
      R"({"rule": "A", "pattern": {"nodes": {"c": {"op": "Concat", "in": ["U", "V"], "out": ["a"]}, "q": {"op": "Add", "in": ["a", "X"], "out": ["z"]}},
    "values": {"U": {"const": true}, "V": {"const": true}}, "outputs": ["z"]}, "let": {"W": {"transform": "test.interleave@1", "args": {"a": "U", "b": "V * 2", "reversed": "REVERSED"}}, "S": "cast(W + 1, dtype(U)) "},
    "where": ["sum(W) == 17"], "replace": {"nodes": {"f": {"op": "Add", "in": ["S", "X"], "out": ["z"]}}}})";
  const std::string g =
      "graph \"g\" {\n  opset \"\" 28\n  const %u: float32[2] = [1.0, 2.0]\n  const %v: float32[2] = [3.0, "
      "4.0]\n  input %x: float32[4]\n  %a = Concat(%u, %v) {axis = 0}\n  %z = Add(%a, %x)\n  output %z as "
      "\"z\"\n}\n";
  const auto run = [&](const char* reversed) {
    std::string t = folded;
    t.replace(t.find("REVERSED"), 8, reversed);
    return harness().run(g, t);
  };
  const auto r = run("none");
  INFO(r.text());
  REQUIRE(r.nodes() == 1);
  CHECK(r.text().find("[2.0, 7.0, 3.0, 9.0]") != std::string::npos);
  CHECK(run("1").text().find("[7.0, 2.0, 9.0, 3.0]") != std::string::npos);
}

TEST_CASE("What a transform makes goes into the graph bit by bit", "[rules][transform]") {
  const auto r = harness().run(
      "graph \"g\" {\n  opset \"\" 28\n  input %x: int64[1]\n  %a = Neg(%x)\n  %z = Abs(%a)\n  output %z as "
      "\"z\"\n}\n",
      R"({"rule": "A", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "m": {"op": "Abs", "in": ["a"], "out": ["z"]}}, "outputs": ["z"]},
       "let": {"W": {"transform": "test.big@1"}}, "replace": {"nodes": {"f": {"op": "Add", "in": ["X", "W"], "out": ["z"]}}}})");
  INFO(r.text());
  CHECK(r.text().find("1152921504606846977") != std::string::npos);
}

TEST_CASE("A transform that fails refuses the match and says so", "[rules][transform]") {
  const auto r = harness().run(text("float32[2]"), rule(R"({"transform": "test.broken@1"})"));
  CHECK(r.nodes() == 2);
  REQUIRE(r.why("A", TN_REASON_UNKNOWN));
  CHECK(r.why("A", TN_REASON_UNKNOWN)->got == "transform test.broken@1 failed: it is broken on purpose");
}

TEST_CASE("A missing transform, version or argument is found when the rule is loaded", "[rules][transform]") {
  const auto said = [&](const std::string& let) { return joined(harness().check(rule(let))); };
  CHECK(said(R"({"transform": "test.interleaf@1"})")
            .find("E404: no loaded plugin exports the transform 'test.interleaf'") != std::string::npos);
  CHECK(said(R"({"transform": "test.interleaf@1"})").find("did you mean 'test.interleave'?") !=
        std::string::npos);
  CHECK(said(R"({"transform": "test.interleave@2"})")
            .find("E404: transform 'test.interleave' has no version 2; there is 1, 3") != std::string::npos);
  CHECK(said(R"({"transform": "test.interleave"})").find("E202: 'test.interleave' names no transform") !=
        std::string::npos);
  CHECK(said(R"({"transform": "test.interleave@3", "args": {"a": "U"}})")
            .find("E405: transform 'test.interleave@3' is not given 'b'") != std::string::npos);
  CHECK(said(R"({"transform": "test.interleave@3", "args": {"a": "U", "b": "V", "c": "V"}})")
            .find("E405: transform 'test.interleave@3' has no parameter 'c'") != std::string::npos);
  CHECK(said(R"({"transform": "test.interleave@3", "args": {"a": "U", "b": "Q"}})")
            .find("E302: unknown name 'Q'") != std::string::npos);
  CHECK(said(R"({"transform": "test.interleave@3", "args": {"a": "U", "b": "V"}})").find("ok") == 0);
  CHECK(joined(rules().check(rule(R"({"transform": "test.interleave@3"})")))
            .find("name its plugin in the manifest") != std::string::npos);
}
