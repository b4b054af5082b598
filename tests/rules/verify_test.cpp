// --verify: a rule's check repeated at its matches; and the search for the rewrite that breaks a result.
#include <catch2/catch.hpp>

#include "core/graph/graph.hpp"
#include "core/report/explain_text.hpp"
#include "core/runtime/session.hpp"
#include "pass_harness.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

// Right unless the added constant is 3: what its own cases, with 0.5, never show.
const char* const wrong_at_three = R"x({"schema": "tenon.rules/1", "rules": [
 {"rule": "Sly", "pattern": {"nodes": {"a": {"op": "Add", "in": ["X", {"const": true, "as": "k"}], "out": ["s"]}, "n": {"op": "Neg", "in": ["s"], "out": ["z"]}}, "outputs": ["z"]},
  "let": {"c": "cast(-k if item(k) < 3 else -k - 1, dtype(X))"},
  "replace": {"nodes": {"m": {"op": "Sub", "in": ["c", "X"], "out": ["z"]}}}},
 {"rule": "Fine", "pattern": {"nodes": {"a": {"op": "Abs", "in": ["X"], "out": ["s"]}, "n": {"op": "Neg", "in": ["s"], "out": ["z"]}}, "outputs": ["z"]},
  "replace": {"nodes": {"m": {"op": "NegAbs", "domain": "test", "in": ["X"], "out": ["z"]}}, "body": "origin"}}]})x";

// One Add and Neg for each digit, which is what it adds, and an Abs and Neg beside them.
std::string graph_with(const std::string& constants) {
  std::string inputs, body, outputs;
  int i = 0;
  for (const char c : constants) {
    const std::string n = std::to_string(i++);
    inputs += "  const %k" + n + ": float32[] = [" + std::string(1, c) + ".0]\n";
    body += "  %s" + n + " = Add(%x, %k" + n + ")\n  %z" + n + " = Neg(%s" + n + ")\n";
    outputs += "  output %z" + n + " as \"z" + n + "\"\n";
  }
  return graph_of(inputs + "  input %x: float32[4]\n",
                  body + "  %b = Abs(%x)\n  %y = Neg(%b)\n" + outputs + "  output %y as \"y\"\n");
}

}  // namespace

TEST_CASE("A rule that fails at a match is off for the run, what it did is undone, the others stay") {
  // The first match is right, the second is wrong and checked: both go back.
  const Outcome o = optimize(graph_with("13"), wrong_at_three);
  for (const auto& s : o.said) UNSCOPED_INFO(s);
  CHECK(o.count("Sub") == 0);
  CHECK(o.count("Add") == 2);
  CHECK(o.count("test::NegAbs") == 1);
  CHECK(says(o, "E320 pass fuse: rule 'Sly' (mine.json:2) is off for this run and what it did is undone"));
  CHECK(says(o, "element 0 is"));
  CHECK(says(o, "tenon rules test mine.json --rule Sly"));
  REQUIRE(o.report.explained.count({"Sly", TN_REASON_VERIFY}) == 1);
  CHECK(o.report.explained.at({"Sly", TN_REASON_VERIFY}).count == 1);
  CHECK(o.report.rules.count("Sly") == 0);
  CHECK(o.report.rules.at("Fine").applied == 1);
  CHECK(o.report.switched_off.count("Sly") == 1);
}

TEST_CASE("A rule that fails after it rewrote in an earlier pass does not stop the job") {
  // Sly is right in the first pass. What Open makes then is where it is wrong.
  const std::string rule = std::string(wrong_at_three).substr(0, std::string(wrong_at_three).size() - 2) +
                           R"x(, {"rule": "Open", "stage": "layout", "once": true,
  "pattern": {"nodes": {"s": {"op": "Sub", "in": [-3.0, "X"], "out": ["z"]}}, "outputs": ["z"]},
  "let": {"c": "full([], 3.0)", "k": "cast(c, dtype(X))"},
  "replace": {"nodes": {"a": {"op": "Add", "in": ["X", "k"], "out": ["t"]}, "n": {"op": "Neg", "in": ["t"], "out": ["z"]}}}}]})x";
  const std::string text =
      graph_of("  const %k: float32[] = [1.0]\n  const %m: float32[] = [-3.0]\n  input %x: float32[4]\n",
               "  %s = Add(%x, %k)\n  %z = Neg(%s)\n  %y = Sub(%m, %x)\n  %b = Abs(%x)\n  %w = Neg(%b)\n"
               "  output %z as \"z\"\n  output %y as \"y\"\n  output %w as \"w\"\n");
  Wish wish;
  wish.passes = {"fuse", "layout_rules", "fuse"};
  const Outcome o = optimize(text, rule, wish);
  for (const auto& s : o.said) UNSCOPED_INFO(s);
  CHECK(says(o, "E320 pass fuse: rule 'Sly'"));
  CHECK(o.count("Sub") == 0);
  CHECK(o.count("Add") == 2);  // the model's own, and what Open made
  CHECK(o.count("test::NegAbs") == 1);
  CHECK(o.report.switched_off.count("Sly") == 1);
  CHECK(o.report.passes.size() == 3);
  CHECK(o.report.rules.count("Sly") == 0);
  CHECK(o.report.rules.at("Fine").applied == 1);
  CHECK(o.report.rules.at("Open").applied == 1);
}

TEST_CASE("Nothing is checked when that is off; built-in rules are checked under sample alone") {
  Wish off;
  off.verify = 0;
  CHECK(optimize(graph_with("3"), wrong_at_three, off).count("Sub") == 1);
  Wish builtin;
  builtin.builtin = true;
  CHECK(optimize(graph_with("3"), wrong_at_three, builtin).count("Sub") == 1);
  builtin.verify = 2;
  CHECK(optimize(graph_with("3"), wrong_at_three, builtin).count("Sub") == 0);
}

TEST_CASE("A right rule passes its checks, and symbols get numbers") {
  const Outcome o = optimize(graph_of("  const %k: float32[] = [1.0]\n  input %x: float32[N,4]\n",
                                      "  %s = Add(%x, %k)\n  %z = Neg(%s)\n  output %z as \"z\"\n"),
                             wrong_at_three);
  CHECK(o.count("Sub") == 1);
  CHECK(o.report.switched_off.empty());
  CHECK_FALSE(says(o, "could not be checked"));
}

TEST_CASE("Dims that are expressions get numbers that fit together, so that the check really runs") {
  // What stands between the symbol and the match: sums, products, quotients, differences that small numbers
  // make negative, shapes that are computed, and an inner Reshape whose target has to fit.
  struct Case {
    const char* inputs;
    const char* body;
  };
  const std::string match = "  %s = Add(%v, %k)\n  %z = Neg(%s)\n  output %z as \"z\"\n";
  for (const Case& c : {
           Case{"  input %x: float32[N,4]\n  input %y: float32[M,4]\n", "  %v = Concat(%x, %y) {axis = 0}\n"},
           Case{"  input %x: float32[N,M]\n  const %r: int64[] = [-1]\n",
                "  const %q: int64[1] = [-1]\n  %v = Reshape(%x, %q)\n"},
           Case{"  input %x: float32[N,4]\n",
                "  const %a: int64[1] = [5]\n  const %b: int64[1] = [9223372036854775807]\n"
                "  const %c: int64[1] = [0]\n  %v = Slice(%x, %a, %b, %c)\n"},
           Case{"  input %x: float32[1,3,H,W]\n",
                "  %v = MaxPool(%x) {kernel_shape = [3, 3], strides = [2, 2]}\n"},
           Case{"  input %x: float32[N,4]\n  input %y: bool[N]\n", "  %v = Compress(%x, %y) {axis = 0}\n"},
       }) {
    INFO(c.body);
    for (const char* constant : {"3.0", "1.0"}) {
      const Outcome o =
          optimize(graph_of(std::string("  const %k: float32[] = [") + constant + "]\n" + c.inputs,
                            std::string(c.body) + match),
                   wrong_at_three);
      for (const auto& s : o.said) UNSCOPED_INFO(s);
      CHECK_FALSE(says(o, "E321"));
      const bool wrong = constant[0] == '3';
      CHECK(says(o, "E320 pass fuse: rule 'Sly'") == wrong);
      CHECK(o.report.switched_off.count("Sly") == (wrong ? 1u : 0u));
      CHECK(o.count("Sub") == (wrong ? 0 : 1));
    }
  }
}

TEST_CASE("The user's inputs are what a rule is checked with, where they are given") {
  // Wrong for negative numbers alone, which the rule's own distribution never draws.
  const std::string rule =
      R"x({"rule": "OnlyPositive", "pattern": {"nodes": {"a": {"op": "Abs", "in": ["X"], "out": ["s"]}, "n": {"op": "Neg", "in": ["s"], "out": ["z"]}}, "outputs": ["z"]},
    "replace": {"nodes": {"m": {"op": "Neg", "in": ["X"], "out": ["z"]}}}, "verify": {"inputs": {"*": "uniform(1,2)"}, "cases": [{"X": [4]}]}})x";
  const std::string text =
      graph_of("  input %x: float32[4]\n", "  %b = Abs(%x)\n  %y = Neg(%b)\n  output %y as \"y\"\n");
  CHECK(optimize(text, rule).count("Abs") == 0);
  float data[4] = {1, -2, 3, 4};
  const int64_t dims[1] = {4};
  Wish wish;
  wish.samples = {{TN_FLOAT32, 1, dims, data, sizeof data}};
  const Outcome o = optimize(text, rule, wish);
  CHECK(o.count("Abs") == 1);
  CHECK(says(o, "E320"));
}

TEST_CASE("Limiting the rewrites finds the rule that is broken on purpose") {
  const std::string text = graph_with("12345");
  float x[4] = {1, 2, 3, 4};
  const int64_t dims[1] = {4};
  const auto results = [&](std::unique_ptr<Graph> graph) {
    const Session session(std::move(graph), rules().registries(), {});
    const std::vector<NamedTensor> inputs{
        {session.inputs()[0].name, {TN_FLOAT32, 1, dims, x, sizeof x}, nullptr}};
    std::vector<float> all;
    for (const auto& o : session.run(inputs)) {
      const tn_tensor t = o.tensor();
      all.insert(all.end(), static_cast<const float*>(t.data), static_cast<const float*>(t.data) + 4);
    }
    return all;
  };
  Wish wish;
  wish.verify = 0;
  const auto right = results(rules().parse(text));
  const auto is_right = [&](uint64_t limit, std::vector<std::string>* authors) {
    wish.limit = limit;
    Outcome o = optimize(text, wrong_at_three, wish);
    if (authors) *authors = o.report.edit_authors;
    return results(std::move(o.graph)) == right;
  };
  REQUIRE(is_right(0, nullptr));
  REQUIRE_FALSE(is_right(6, nullptr));
  uint64_t good = 0, bad = 6;
  while (bad - good > 1) (is_right((good + bad) / 2, nullptr) ? good : bad) = (good + bad) / 2;
  std::vector<std::string> authors;
  is_right(bad, &authors);
  REQUIRE(authors.size() == bad);
  CHECK(authors.back() == "Sly");
}

TEST_CASE("Explain records as JSON lines, and the counts of fusion_result.json") {
  const Outcome o = optimize(
      graph_of(
          "  const %k: float32[] = [1.0]\n  input %x: float32[4]\n",
          "  %s = Add(%x, %k)\n  %z = Neg(%s)\n  %w = Abs(%s)\n  output %z as \"z\"\n  output %w as \"w\"\n"),
      wrong_at_three);
  const ExplainEntry* escape = nullptr;
  for (const auto& e : o.report.records)
    if (e.who == "Sly" && e.reason == TN_REASON_ESCAPE) escape = &e;
  REQUIRE(escape);
  const Json j = explain_record_json(*escape);
  CHECK(j["rule"] == "Sly");
  CHECK(j["result"] == "escape");
  CHECK(j["root"] == escape->place);
  CHECK(j["value"] == "s");
  CHECK(j["by"].size() == 1);
  CHECK(j["expr"].get<std::string>().find("'s' (s) is read inside the match alone") == 0);
  CHECK(j["hint"].get<std::string>().find("escape \"keep\"") == 0);
  CHECK(j.contains("variant"));
  // Any node of a match answers, not only the one it ends with.
  REQUIRE(escape->nodes.size() == 1);
  CHECK(explain_node_text(o.report, escape->nodes[0]).find("Sly") != std::string::npos);
  const Json counts = fusion_result_json(o.report);
  const Json& sly = counts["session_and_graph_id_0_0"]["graph_fusion"]["Sly"];
  CHECK(sly["match_times"] == "1");
  CHECK(sly["effect_times"] == "0");
}
