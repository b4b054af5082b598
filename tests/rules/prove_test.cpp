// `tenon rules test`: every built-in rule is proved, and rules that are wrong are found out.
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

const Line* failure(const std::vector<Line>& lines) {
  for (const auto& l : lines)
    if (!l.passed) return &l;
  return nullptr;
}
const Line* line(const std::vector<Line>& lines, const std::string& name) {
  for (const auto& l : lines)
    if (l.name == name) return &l;
  return nullptr;
}

/// A rule in one line: pattern nodes, outputs, replacement, and what else it has.
std::string rule(const std::string& nodes, const std::string& replace, const std::string& more = {},
                 bool body = false) {
  return R"({"rule": "R", "pattern": {"nodes": {)" + nodes +
         R"(}, "outputs": ["z"]}, "replace": {"nodes": {)" + replace + "}" +
         (body ? R"(, "body": "origin")" : "") + "}" + (more.empty() ? "" : ", " + more) + "}";
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

TEST_CASE("What a case does not show is looked for: every kind of mistake") {
  struct Wrong {
    const char* what;
    std::string text;
    const char* where;  // the line that finds it
    const char* said;
  };
  const std::string swap =
      R"("t": {"op": "Transpose", "in": ["X"], "out": ["a"]}, "u": {"op": "Transpose", "in": ["a"], "out": ["z"]})";
  const Wrong all[] = {
      {"a scale that is lost",
       rule(
           R"("m": {"op": "MatMul", "in": ["A", "B"], "out": ["p"]}, "mul": {"op": "Mul", "in": ["p", {"const": true, "as": "k"}], "out": ["z"]})",
           R"("f": {"op": "MatMul", "in": ["A", "B"], "out": ["z"]})",
           R"("verify": {"cases": [{"A": [2, 3], "B": [3, 4], "k": 0.5}]})"),
       "case 1", "element 0 is"},
      {"a constant that is wrong",
       rule(
           R"("d": {"op": "Div", "in": ["X", 2.0], "out": ["a"]}, "n": {"op": "Neg", "in": ["a"], "out": ["z"]})",
           R"("f": {"op": "Mul", "in": ["X", "k"], "out": ["z"]})",
           R"x("let": {"k": "cast(-2.0, dtype(X))"}, "verify": {"cases": [{"X": [4]}]})x"),
       "case 1", "element 0 is"},
      {"axes that no guard looks at",
       rule(
           R"("e": {"op": "Exp", "in": ["X"], "out": ["a"]}, "s": {"op": "ReduceSum", "in": ["a", "ax"], "out": ["b"]}, "d": {"op": "Div", "in": ["a", "b"], "out": ["z"]})",
           R"("f": {"op": "Softmax", "in": ["X"], "out": ["z"]})",
           R"("verify": {"cases": [{"X": [2, 3, 4], "axes": [-1]}]})"),
       "beyond the cases", "with axes = "},
      {"an attribute that no guard looks at",
       rule(
           R"("s": {"op": "Softmax", "in": ["X"], "out": ["a"]}, "l": {"op": "Log", "in": ["a"], "out": ["z"]})",
           R"("f": {"op": "LogSoftmax", "in": ["X"], "out": ["z"]})",
           R"("verify": {"cases": [{"X": [2, 3]}]})"),
       "beyond the cases", "with s.axis = 0: "},
      {"a permutation that no guard looks at",
       R"({"rule": "R", "pattern": {"nodes": {)" + swap +
           R"(}, "outputs": ["z"]}, "replace": {"nodes": {"f": {"op": "Identity", "in": ["X"], "out": ["z"]}}},
         "verify": {"cases": [{"X": [3, 3, 3]}]}})",
       "beyond the cases", "perm = "},
      {"integers, where the cases have reals",
       rule(
           R"("d": {"op": "Div", "in": ["X", "Y"], "out": ["a"]}, "m": {"op": "Mul", "in": ["a", "Y"], "out": ["z"]})",
           R"("f": {"op": "Identity", "in": ["X"], "out": ["z"]})",
           R"x("verify": {"inputs": {"*": "uniform(1,2)"}, "cases": [{"X": [4], "Y": [4]}]})x"),
       "beyond the cases", "with type int"},
      {"an optional node that is forgotten",
       rule(
           R"("m": {"op": "MatMul", "in": ["A", "B"], "out": ["p"]}, "b": {"op": "Add", "in": ["p", "C"], "out": ["q"], "optional": true}, "r": {"op": "Relu", "in": ["q"], "out": ["z"]})",
           R"("f": {"op": "FusedMatMul", "domain": "tenon", "in": ["A", "B"], "out": ["z"], "attrs": {"activation": "'Relu'"}})",
           R"("verify": {"cases": [{"A": [2, 3], "B": [3, 4], "absent": ["b"]}]})"),
       "case 1", "element"},
      {"operands that do not commute",
       rule(
           R"("s": {"op": "Sub", "in": ["X", {"const": true, "as": "k"}], "out": ["a"], "commute": true}, "n": {"op": "Neg", "in": ["a"], "out": ["z"]})",
           R"("f": {"op": "Sub", "in": ["k", "X"], "out": ["z"]})",
           R"("verify": {"cases": [{"X": [4], "k": 0.5}]})"),
       "case 1", "[s swapped]"},
      {"one operator of a list",
       rule(
           R"("m": {"op": "Neg", "in": ["X"], "out": ["a"]}, "r": {"op": ["Abs", "Relu"], "in": ["a"], "out": ["z"]})",
           R"("f": {"op": "Abs", "in": ["X"], "out": ["z"]})", R"("verify": {"cases": [{"X": [6]}]})"),
       "case 1", "element"},
      {"a shape that is broadcast",
       rule(
           R"("s": {"op": "Add", "in": ["X", "Y"], "out": ["a"]}, "m": {"op": "ReduceSum", "in": ["a"], "out": ["z"]})",
           R"("u": {"op": "ReduceSum", "in": ["X"], "out": ["b"]}, "v": {"op": "ReduceSum", "in": ["Y"], "out": ["c"]}, "f": {"op": "Add", "in": ["b", "c"], "out": ["z"]})",
           R"("once": true, "verify": {"cases": [{"X": [2, 3], "Y": [2, 3]}]})"),
       "beyond the cases", "of shape"},
      {"a number that only this case has",
       rule(
           R"("p": {"op": "Pow", "in": ["X", {"const": true, "as": "e"}], "out": ["a"]}, "n": {"op": "Neg", "in": ["a"], "out": ["z"]})",
           R"("m": {"op": "Mul", "in": ["X", "X"], "out": ["b"]}, "f": {"op": "Neg", "in": ["b"], "out": ["z"]})",
           R"x("once": true, "verify": {"inputs": {"*": "uniform(1,2)"}, "cases": [{"X": [4], "e": 2.0}]})x"),
       "beyond the cases", "with e times"},
      {"no case at all",
       rule(
           R"("n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]})",
           R"("f": {"op": "Sub", "in": ["X", "Y"], "out": ["z"]})"),
       "invented graphs", "element 0 is"},
  };
  for (const Wrong& w : all) {
    const auto lines = prove("wrong.json", w.text);
    std::string said;
    for (const auto& l : lines) said += (l.passed ? "ok " : "FAIL ") + l.name + ": " + l.text + "\n";
    INFO(w.what << "\n" << said);
    const Line* found = failure(lines);
    REQUIRE(found);
    CHECK(found->name == w.where);
    CHECK(found->text.find(w.said) != std::string::npos);
  }
}

TEST_CASE("A rule without cases is proved on invented graphs; one that nothing proves fails") {
  const auto good = prove(
      "good.json",
      rule(
          R"("m": {"op": "MatMul", "in": ["A", "B"], "out": ["p"]}, "s": {"op": "Add", "in": ["p", "C"], "out": ["q"]}, "r": {"op": "Relu", "in": ["q"], "out": ["z"]})",
          R"("f": {"op": "MyFused", "domain": "test", "in": ["A", "B", "C"], "out": ["z"]})", {}, true));
  for (const auto& l : good) INFO(l.name << ": " << l.text);
  CHECK_FALSE(failure(good));
  REQUIRE(line(good, "invented graphs"));
  CHECK(line(good, "invented graphs")->text.find("graphs equal") != std::string::npos);

  const auto never = prove(
      "never.json",
      rule(R"("n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "m": {"op": "Neg", "in": ["a"], "out": ["z"]})",
           R"("f": {"op": "Identity", "in": ["X"], "out": ["z"]})",
           R"("where": [{"expr": "rank(X) == 77", "why": "not so many axes"}])"));
  REQUIRE(never.size() == 1);
  CHECK_FALSE(never[0].passed);
  CHECK(never[0].text.find("nothing was proved: ") == 0);
  CHECK(never[0].text.find("not so many axes") != std::string::npos);
}

TEST_CASE("The articles' chains are proved too") {
  const auto lines = prove(
      "chain.json",
      R"({"fusion_type": "ConvAct", "pattern": ["Conv", "BatchNormalization?", "Relu|LeakyRelu"], "fused_op": "MyFused"})");
  std::string said;
  for (const auto& l : lines) said += l.name + ": " + l.text + "\n";
  INFO(said);
  CHECK_FALSE(failure(lines));
  CHECK(line(lines, "invented graphs"));
}

TEST_CASE("Variants that no graph made fire are named") {
  const auto lines = prove(
      "v.json",
      rule(
          R"("n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "o": {"op": "Abs", "in": ["a"], "out": ["b"], "optional": true}, "m": {"op": "Relu", "in": ["b"], "out": ["z"]})",
          R"("f": {"op": "MyFused", "domain": "test", "in": ["X"], "out": ["z"]})",
          R"x("where": ["present(o)"], "verify": {"cases": [{"X": [4]}]})x", true));
  CHECK_FALSE(failure(lines));
  REQUIRE(line(lines, "variants"));
  CHECK(line(lines, "variants")->text ==
        "1 of 2 proved; never fired: without o (where[0]: present(o): present(o) = false)");
}

TEST_CASE("Rules with lists of operands and with copies are proved, with cases and without",
          "[rules][rest][repeat]") {
  struct Case {
    const char* what;
    std::string text;
    const char* wrong;  // what the proof says; empty: right
  };
  const std::string concat =
      R"("n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "c": {"op": "Concat", "in": ["a", "...rest"], "out": ["z"]})";
  const std::string concat_again =
      R"("c": {"op": "Concat", "in": ["X", "...rest"], "out": ["y"], "copy_attrs": ["c"]}, "n": {"op": "Neg", "in": ["y"], "out": ["z"]})";
  const std::string kept =
      R"("n": {"op": "Neg", "in": ["X"], "out": ["y"]}, "c": {"op": "Concat", "in": ["y", "...rest"], "out": ["z"], "copy_attrs": ["c"]})";
  const std::string adds =
      R"("h": {"op": "Neg", "in": ["X"], "out": ["a"]}, "adds": {"op": "Add", "in": ["a", "...b"], "out": ["z"], "repeat": {"min": 1, "max": 4}})";
  const std::string summed =
      R"("n": {"op": "Neg", "in": ["X"], "out": ["m"]}, "f": {"op": "Sum", "in": ["m", "...b"], "out": ["z"]})";
  const std::string cases = R"("verify": {"cases": [)";
  const std::string once = R"("once": true)";
  const std::string maxima =
      R"("n": {"op": "Exp", "in": ["X"], "out": ["a"]}, "m": {"op": "Max", "in": ["a", "...rest"], "out": ["z"]})";
  const std::string muls =
      R"("h": {"op": "Neg", "in": ["X"], "out": ["a"]}, "m": {"op": "Mul", "in": ["a", "K"], "out": ["b"], "repeat": {"min": 0, "max": 3}}, "t": {"op": "Abs", "in": ["b"], "out": ["z"]})";
  const std::string f_of_muls = R"("f": {"op": "F", "domain": "acme", "in": ["X", "K?"], "out": ["z"]})";
  const Case all[] = {
      {"a list, no cases", rule(concat, kept, once), ""},
      {"a list, its shapes each",
       rule(
           concat, kept,
           once + ", " + cases +
               R"({"X": [2, 4], "rest": [[3, 4], [1, 4], [2, 4]], "c.axis": 0}, {"X": [2, 4], "absent": ["rest"], "c.axis": 0}]})"),
       ""},
      {"a list, one shape for all",
       rule(concat, kept, once + ", " + cases + R"({"X": [2, 4], "rest": [2, 4], "c.axis": 1}]})"), ""},
      {"a list that is forgotten", rule(concat, concat_again, once), "element"},
      {"a list that is forgotten beyond the case",
       rule(concat, concat_again,
            once + ", " + cases + R"({"X": [2, 4], "absent": ["rest"], "c.axis": 0}]})"),
       "of rest"},
      {"a list of constants",
       R"({"rule": "R", "pattern": {"nodes": {)" + concat +
           R"(}, "values": {"rest": {"const": true, "shape": ["N", "..."]}}, "outputs": ["z"]}, "once": true, "where": ["c.axis == 0"], "replace": {"nodes": {)" +
           kept + "}}}",
       ""},
      {"a list that commutes",
       rule(
           maxima,
           R"("n": {"op": "Exp", "in": ["X"], "out": ["y"]}, "m": {"op": "Max", "in": ["...rest", "y"], "out": ["z"]})",
           once),
       ""},
      {"a list of a tree",
       rule(R"("s": {"op": "Add", "assoc": true, "in": ["A", "B", "C", "...rest"], "out": ["z"]})",
            R"("f": {"op": "Sum", "in": ["A", "B", "C", "...rest"], "out": ["z"]})"),
       ""},
      {"a list of a tree, forgotten",
       rule(R"("s": {"op": "Add", "assoc": true, "in": ["A", "B", "C", "...rest"], "out": ["z"]})",
            R"("f": {"op": "Sum", "in": ["A", "B", "C"], "out": ["z"]})"),
       "element"},
      {"copies, no cases", rule(adds, summed, once), ""},
      {"copies, with a case", rule(adds, summed, once + ", " + cases + R"({"X": [2, 4], "b": [2, 4]}]})"),
       ""},
      {"copies of one shape each",
       rule(adds, summed, once + ", " + cases + R"({"X": [2, 4], "b": [[4], [2, 1], [1, 4], [2, 4]]}]})"),
       ""},
      {"copies, the last forgotten",
       rule(
           adds,
           R"("n": {"op": "Neg", "in": ["X"], "out": ["m"]}, "f": {"op": "Add", "in": ["m", "c"], "out": ["z"]})",
           once + R"(, "let": {"c": "b[0]"})"),
       "element"},
      {"copies that read one value", rule(muls, f_of_muls, once, true), ""},
      {"copies that read one value, not as often",
       rule(muls, R"("f": {"op": "Abs", "in": ["X"], "out": ["z"]})", once), "element"},
  };
  for (const Case& c : all) {
    INFO(c.what << "\n" << c.text);
    const auto lines = prove("lists.json", c.text);
    for (const auto& l : lines) UNSCOPED_INFO((l.passed ? "ok " : "NO ") << l.name << ": " << l.text);
    REQUIRE_FALSE(lines.empty());
    const Line* bad = failure(lines);
    CHECK((bad != nullptr) == (c.wrong[0] != 0));
    if (bad && c.wrong[0]) CHECK((bad->name + " " + bad->text).find(c.wrong) != std::string::npos);
  }
}
