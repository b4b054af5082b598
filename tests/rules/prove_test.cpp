// Every built-in rule is proved: graphs made from its own pattern compute the same before and after.
#include <catch2/catch.hpp>

#include "core/runtime/eval.hpp"
#include "rule_harness.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Line {
  std::string rule, name, text;
  bool passed;
};

std::vector<Line> prove(const std::string& path, const std::string& text) {
  static Evaluator evaluator(rules().host(), rules().registries());
  const auto* engine = rules().registries().rule_engine();
  REQUIRE(engine);
  std::vector<Line> lines;
  const tn_rule_source source{{path.data(), path.size()}, {text.data(), text.size()}, 1, 0};
  const tn_diag diag{sizeof(tn_diag), nullptr, [](void*, tn_severity, tn_str, tn_str where, tn_str what) {
                       UNSCOPED_INFO(std::string(where.data, where.size)
                                     << ": " << std::string(what.data, what.size));
                     }};
  engine->record->test(
      engine->instance, &source, 1, {nullptr, 0}, 1,
      [](void* context, tn_str rule, tn_str name, int passed, tn_str what) {
        static_cast<std::vector<Line>*>(context)->push_back(
            {{rule.data, rule.size}, {name.data, name.size}, {what.data, what.size}, passed != 0});
      },
      &lines, &diag);
  return lines;
}

}  // namespace

TEST_CASE("Every built-in rule computes the same before and after, and keeps off its look-alikes") {
  if (rules().registries().kernels(0).empty() && rules().registries().kernel_ops().empty()) {
    WARN("no kernels are loaded: nothing can be computed");
    return;
  }
  for (const auto& f : RuleHarness::builtin()) {
    const auto lines = prove(f.first, f.second);
    CHECK_FALSE(lines.empty());
    for (const auto& l : lines) {
      INFO(f.first << " " << l.rule << ": " << l.name << ": " << l.text);
      CHECK(l.passed);
    }
  }
}

TEST_CASE("A rule that computes something else is found out") {
  const auto lines = prove(
      "wrong.json",
      R"({"rule": "Wrong", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]}}, "outputs": ["z"]},
     "replace": {"nodes": {"f": {"op": "Sub", "in": ["X", "Y"], "out": ["z"]}}}, "verify": {"cases": [{"X": [4], "Y": [4]}], "must_not_fire": [{"why": "it does", "X": [2, 4]}]}})");
  REQUIRE(lines.size() == 2);
  CHECK_FALSE(lines[0].passed);
  CHECK(lines[0].text.find("element 0 is") != std::string::npos);
  CHECK_FALSE(lines[1].passed);
  CHECK(lines[1].text == "it fired");
}
