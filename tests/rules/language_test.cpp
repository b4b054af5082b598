// What patterns, values and guards of rules mean: each feature fires, and does not where it must not.
#include <catch2/catch.hpp>

#include "core/graph/edit.hpp"
#include "rule_harness.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

std::string graph(const std::string& lines) { return "graph \"g\" {\n  opset \"\" 28\n" + lines + "}\n"; }

// Neg, then Add, becomes Sub.
std::string neg_add(const std::string& values = "", const std::string& more = "") {
  return R"j({"rule": "A", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]}}, "values": {)j" +
         values +
         R"j(}, "outputs": ["z"]}, "replace": {"nodes": {"f": {"op": "Sub", "in": ["Y", "X"], "out": ["z"]}}})j" +
         more + "}";
}
const std::string inputs = "  input %x: float32[2,3]\n  input %y: float32[2,3]\n";
const std::string chain = "  %a = Neg(%x)\n  %z = Add(%a, %y)\n";

const Explained& why(const RuleRun& r, tn_reason reason) {
  const auto* e = r.why("A", reason);
  for (const auto& x : r.explained)
    UNSCOPED_INFO(x.who << " " << int(x.reason) << " " << x.expr << ": " << x.got);
  REQUIRE(e);
  return *e;
}
std::string joined(const std::vector<std::string>& all) {
  std::string s;
  for (const auto& x : all) s += x + "\n";
  return s;
}

}  // namespace

TEST_CASE("escape: an inner value that is read elsewhere", "[rules][escape]") {
  const std::string twice = graph(inputs + chain + "  output %z as \"z\"\n  output %a as \"a\"\n");
  const auto forbid = rules().run(twice, neg_add());
  CHECK(forbid.nodes() == 2);
  CHECK(why(forbid, TN_REASON_ESCAPE).got == "it is an output of the graph or of a body");
  const auto reader = rules().run(
      graph(inputs + chain + "  %e = Exp(%a) name \"exp\"\n  output %z as \"z\"\n  output %e as \"e\"\n"),
      neg_add());
  CHECK(why(reader, TN_REASON_ESCAPE).got == "it is also read by exp");
  CHECK(why(reader, TN_REASON_ESCAPE).hint.find("keep") != std::string::npos);
  const auto keep = rules().run(twice, neg_add(R"j("a": {"escape": "keep"})j"));
  CHECK(keep.count("Neg") == 1);
  CHECK(keep.count("Sub") == 1);
  CHECK(keep.count("Add") == 0);
}

TEST_CASE("escape expose: the replacement yields the value, when somebody reads it", "[rules][escape]") {
  const std::string rule =
      R"j({"rule": "A", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]}},
    "values": {"a": {"escape": "expose"}}, "outputs": ["z"]}, "replace": {"nodes": {"f": {"op": "NegAdd", "domain": "acme", "in": ["X", "Y"], "out": ["z", "a?"]}}, "body": "origin"}})j";
  const auto both = rules().run(
      graph(inputs + chain + "  %e = Exp(%a)\n  output %z as \"z\"\n  output %e as \"e\"\n"), rule);
  INFO(both.text());
  REQUIRE(both.count("acme::NegAdd") == 1);
  CHECK(both.nodes() == 2);
  CHECK(both.graph->node(both.graph->nodes(0)[0]).output_count == 2);
  const auto one = rules().run(graph(inputs + chain + "  output %z as \"z\"\n"), rule);
  CHECK(one.graph->node(one.graph->nodes(0)[0]).output_count == 1);
  CHECK(joined(rules().check(neg_add(R"j("a": {"escape": "expose"})j")))
            .find("E207: 'a' is exposed, but no node of 'replace' yields it") != std::string::npos);
}

TEST_CASE("A rewrite that would read what it yields, around the outside, is refused", "[rules][escape]") {
  const std::string rule =
      R"j({"rule": "A", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]}},
    "values": {"a": {"escape": "expose"}}, "outputs": ["z"]}, "replace": {"nodes": {"f": {"op": "NegAdd", "domain": "acme", "in": ["X", "Y"], "out": ["z", "a?"]}}, "body": "origin"}})j";
  const auto r = rules().run(graph("  input %x: float32[2,3]\n  %a = Neg(%x)\n  %e = Exp(%a)\n  %z = Add(%a, "
                                   "%e)\n  output %z as \"z\"\n"),
                             rule);
  CHECK(r.nodes() == 3);
  CHECK(why(r, TN_REASON_ESCAPE).got ==
        "an operand of 'f' is computed outside the match from what the rule replaces");
}

TEST_CASE("What comes from outside is not a result of the match", "[rules][escape]") {
  const auto r = rules().run(graph("  input %x: float32[2,3]\n  %a = Neg(%x) name \"neg\"\n  %z = Add(%a, "
                                   "%a)\n  output %z as \"z\"\n"),
                             neg_add());
  CHECK(r.nodes() == 2);
  CHECK(why(r, TN_REASON_ESCAPE).got == "it is the result of neg, which the rule replaces");
  RunOptions o;
  const auto conv = rules().run(graph("  const %w: float32[1,1,1,1] = [0.5]\n  input %x: float32[1,1,4,4]\n  "
                                      "%c = Conv(%x, %w)\n  %z = Add(%c, %c)\n  output %z as \"z\"\n"),
                                {}, o);
  CHECK(conv.count("Conv") + conv.count("tenon::FusedConv") == 1);
}

TEST_CASE("shared forbid: a constant with other readers is left alone", "[rules][values]") {
  const std::string rule =
      R"j({"rule": "A", "pattern": {"nodes": {"m": {"op": "Mul", "in": ["X", "W"], "out": ["a"]}, "s": {"op": "Mul", "in": ["a", "V"], "out": ["z"]}},
    "values": {"W": {"const": true, "shared": "SHARED"}, "V": {"const": true}}, "outputs": ["z"]}, "let": {"P": "cast(W * V, dtype(W))"}, "replace": {"nodes": {"f": {"op": "Mul", "in": ["X", "P"], "out": ["z"]}}}})j";
  const auto run = [&](const char* policy, const std::string& more) {
    std::string text = rule;
    text.replace(text.find("SHARED"), 6, policy);
    return rules().run(
        graph("  const %w: float32[3] = [1.0, 2.0, 3.0]\n  const %v: float32[3] = [2.0, 2.0, 2.0]\n  input "
              "%x: float32[2,3]\n  %a = Mul(%x, %w)\n  %z = Mul(%a, %v)\n  output %z as \"z\"\n" +
              more),
        text);
  };
  const std::string reader = "  %e = Exp(%w)\n  output %e as \"e\"\n";
  CHECK(run("forbid", "").count("Mul") == 1);
  CHECK(run("copy", reader).count("Mul") == 1);
  const auto refused = run("forbid", reader);
  CHECK(refused.count("Mul") == 2);
  CHECK(why(refused, TN_REASON_CONST).got == "2 uses");
}

TEST_CASE("Symbols of shapes agree over the whole match; an unknown dimension is no answer",
          "[rules][values]") {
  const std::string values = R"j("X": {"shape": ["M", "..."]}, "Y": {"shape": ["M", "N"]})j";
  CHECK(rules().run(graph(inputs + chain + "  output %z as \"z\"\n"), neg_add(values)).count("Sub") == 1);
  const auto other = rules().run(
      graph("  input %x: float32[1,3]\n  input %y: float32[2,3]\n" + chain + "  output %z as \"z\"\n"),
      neg_add(values));
  CHECK(why(other, TN_REASON_SHAPE).expr == "shape of 'Y' is [M,N]");
  CHECK(why(other, TN_REASON_SHAPE).got == "[2,3]");
  const auto same = rules().run(
      graph("  input %x: float32[B,3]\n  input %y: float32[B,3]\n" + chain + "  output %z as \"z\"\n"),
      neg_add(values));
  CHECK(same.count("Sub") == 1);
  const auto unknown = rules().run(
      graph("  input %x: float32[B,3]\n  input %y: float32[C,3]\n" + chain + "  output %z as \"z\"\n"),
      neg_add(values));
  CHECK(unknown.count("Sub") == 0);
  CHECK(why(unknown, TN_REASON_UNKNOWN).expr == "shape of 'Y' is [M,N]");
}

TEST_CASE("Guards are three-valued: unknown does not fire unless it is accepted", "[rules][guards]") {
  const std::string dynamic =
      graph("  input %x: float32[B,3]\n  input %y: float32[B,3]\n" + chain + "  output %z as \"z\"\n");
  const auto unknown = rules().run(dynamic, neg_add("", R"j(, "where": ["shape(X)[0] == 2"])j"));
  CHECK(unknown.count("Sub") == 0);
  CHECK(why(unknown, TN_REASON_UNKNOWN).expr == "where[0]: shape(X)[0] == 2");
  CHECK(why(unknown, TN_REASON_UNKNOWN).got.find("unknown: ") == 0);
  CHECK(rules()
            .run(dynamic, neg_add("", R"j(, "where": [{"expr": "shape(X)[0] == 2", "unknown": "accept"}])j"))
            .count("Sub") == 1);
  CHECK(rules()
            .run(dynamic, neg_add("", R"j(, "where": ["shape(X)[1] == 3 or shape(X)[0] == 2"])j"))
            .count("Sub") == 1);
  CHECK(rules()
            .run(dynamic, neg_add("", R"j(, "where": ["shape(X)[1] == 4 and shape(X)[0] == 2"])j"))
            .why("A", TN_REASON_GUARD));
  CHECK(rules()
            .run(dynamic, neg_add("", R"j(, "where": ["not (shape(X)[0] == 2)"])j"))
            .why("A", TN_REASON_UNKNOWN));
  const auto told = rules().run(
      dynamic, neg_add("", R"j(, "where": [{"expr": "rank(X) == 4", "why": "X must be an image"}])j"));
  CHECK(why(told, TN_REASON_GUARD).got == "rank(X) = 2");
  CHECK(why(told, TN_REASON_GUARD).hint == "X must be an image");
}

TEST_CASE("Constants match by value within a tolerance that the stored type sets", "[rules][constants]") {
  const std::string rule =
      R"j({"rule": "A", "pattern": {"nodes": {"d": {"op": "Div", "in": ["X", 1.4142135], "out": ["a"]}, "e": {"op": "Erf", "in": ["a"], "out": ["z"]}}, "outputs": ["z"]},
    "replace": {"nodes": {"f": {"op": "F", "domain": "acme", "in": ["X"], "out": ["z"]}}, "body": "origin"}})j";
  const auto fires = [&](const std::string& type, const std::string& constant, const std::string& text) {
    return rules()
               .run(graph("  const %c: " + type + constant + "\n  input %x: " + type +
                          "[2,3]\n  %a = Div(%x, %c)\n  %z = Erf(%a)\n  output %z as \"z\"\n"),
                    text)
               .nodes() == 1;
  };
  CHECK(fires("float32", "[] = [1.414214]", rule));
  CHECK(fires("float32", "[1,1] = [1.414214]", rule));
  CHECK_FALSE(fires("float32", "[1,1,1] = [1.414214]", rule));  // it would widen the result
  CHECK_FALSE(fires("float32", "[] = [1.415]", rule));
  CHECK(fires("float16", "[] = base64 \"qT0=\"", rule));
  CHECK_FALSE(fires("float16", "[] = base64 \"rj0=\"", rule));
  CHECK(fires("bfloat16", "[] = base64 \"tj8=\"", rule));
  CHECK_FALSE(fires("bfloat16", "[] = base64 \"wD8=\"", rule));
  std::string loose = rule;
  loose.replace(loose.find("1.4142135"), 9, R"j({"const": 1.4, "rtol": 0.02, "as": "k"})j");
  CHECK(fires("float32", "[] = [1.42]", loose));
  loose.replace(loose.find("0.02"), 4, "1e-4");
  CHECK_FALSE(fires("float32", "[] = [1.42]", loose));
}

TEST_CASE("A computed constant that is not finite blocks the match", "[rules][constants]") {
  const std::string rule =
      R"j({"rule": "A", "pattern": {"nodes": {"m": {"op": "Mul", "in": ["X", "W"], "out": ["a"]}, "s": {"op": "Div", "in": ["a", "V"], "out": ["z"]}},
    "values": {"W": {"const": true}, "V": {"const": true}}, "outputs": ["z"]}, "let": {"P": "cast(W / V, dtype(W))"}, "replace": {"nodes": {"f": {"op": "Mul", "in": ["X", "P"], "out": ["z"]}}}})j";
  const auto run = [&](const char* v) {
    return rules().run(
        graph("  const %w: float32[2] = [1.0, 2.0]\n  const %v: float32[2] = [4.0, " + std::string(v) +
              "]\n  input %x: float32[2]\n  %a = Mul(%x, %w)\n  %z = Div(%a, %v)\n  output %z as \"z\"\n"),
        rule);
  };
  CHECK(run("8.0").nodes() == 1);
  const auto r = run("0.0");
  CHECK(r.nodes() == 2);
  CHECK(why(r, TN_REASON_GUARD).got == "E310: the computed constant is not finite");
}

TEST_CASE("An attribute that float32 would round is not made where the match computes in float64",
          "[rules][constants]") {
  const std::string rule =
      R"j({"rule": "A", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "l": {"op": "Mul", "in": ["a", {"const": true, "as": "k"}], "out": ["z"]}}, "outputs": ["z"]},
    "replace": {"nodes": {"f": {"op": "LeakyRelu", "in": ["X"], "out": ["z"], "attrs": {"alpha": "item(k)"}}}}})j";
  const auto run = [&](const std::string& type, const char* k) {
    return rules().run(graph("  const %k: " + type + "[] = [" + k + "]\n  input %x: " + type +
                             "[4]\n  %a = Neg(%x)\n  %z = Mul(%a, %k)\n  output %z as \"z\"\n"),
                       rule);
  };
  CHECK(run("float32", "0.1").count("LeakyRelu") == 1);
  CHECK(run("float64", "0.5").count("LeakyRelu") == 1);
  const auto r = run("float64", "0.1");
  CHECK(r.count("LeakyRelu") == 0);
  CHECK(why(r, TN_REASON_DTYPE).expr == "attribute alpha of f is exact in float32");
}

TEST_CASE("A pattern lies in one region; constants come from outside; a capture is a reader",
          "[rules][regions]") {
  const std::string body = "  input %c: bool[]\n  input %x: float32[4]\n  input %y: float32[4]\n";
  const auto inside =
      rules().run(graph(body + "  %r = If(%c) {\n    region \"then_branch\" {\n    %a = Neg(%x)\n    %z = "
                               "Add(%a, %y)\n    output %z as \"zz\"\n    }\n    region \"else_branch\" {\n  "
                               "  %e = Exp(%x)\n    output %e as \"e\"\n    }\n  }\n  output %r as \"r\"\n"),
                  neg_add());
  INFO(inside.text());
  CHECK(inside.applied("A") == 1);
  CHECK(inside.text().find("Sub(%y, %x)") != std::string::npos);
  const auto across =
      rules().run(graph(body + "  %a = Neg(%x)\n  %r = If(%c) {\n    region \"then_branch\" {\n    %z = "
                               "Add(%a, %y)\n    output %z as \"zz\"\n    }\n    region \"else_branch\" {\n  "
                               "  %e = Exp(%x)\n    output %e as \"e\"\n    }\n  }\n  output %r as \"r\"\n"),
                  neg_add());
  CHECK(across.applied("A") == 0);
  const auto captured = rules().run(
      graph(
          body +
          "  %a = Neg(%x) name \"neg\"\n  %z = Add(%a, %y)\n  %r = If(%c) {\n    region \"then_branch\" {\n  "
          "  %e = Exp(%a) name \"inner\"\n    output %e as \"e\"\n    }\n    region \"else_branch\" {\n    "
          "%f = Exp(%x)\n    output %f as \"f\"\n    }\n  }\n  output %r as \"r\"\n  output %z as \"z\"\n"),
      neg_add());
  CHECK(captured.applied("A") == 0);
  CHECK(why(captured, TN_REASON_ESCAPE).got == "it is also read by inner");
  const auto constant =
      rules().run(graph("  const %k: float32[4] = [1.0, 2.0, 3.0, 4.0]\n" + body +
                        "  %r = If(%c) {\n    region \"then_branch\" {\n    %a = Neg(%x)\n    %z = Add(%a, "
                        "%k)\n    output %z as \"zz\"\n    }\n    region \"else_branch\" {\n    %e = "
                        "Exp(%x)\n    output %e as \"e\"\n    }\n  }\n  output %r as \"r\"\n"),
                  neg_add(R"j("Y": {"const": true})j"));
  CHECK(constant.applied("A") == 1);
}

TEST_CASE("A rewrite is undone, with the reason", "[rules][rollback]") {
  const auto reason = [&](const std::string& node, const std::string& more = "") {
    std::string text = neg_add("", more);
    const std::string old = R"j({"op": "Sub", "in": ["Y", "X"], "out": ["z"]})j";
    text.replace(text.find(old), old.size(), node);
    const std::string source = graph(inputs + chain + "  output %z as \"z\"\n");
    const auto r = rules().run(source, text);
    CHECK(r.text() == print(*rules().parse(source)));
    return why(r, TN_REASON_ROLLBACK).got;
  };
  CHECK(reason(R"j({"op": "Less", "in": ["Y", "X"], "out": ["z"]})j").find("bool") != std::string::npos);
  CHECK(reason(R"j({"op": "ReduceSum", "in": ["Y"], "out": ["z"]})j").find("1") != std::string::npos);
  CHECK(reason(R"j({"op": "MatMul", "in": ["Y", "X"], "out": ["z"]})j").find("MatMul") != std::string::npos);
  const auto kernel = rules().run(
      graph(inputs + chain + "  output %z as \"z\"\n"),
      R"j({"rule": "A", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]}}, "outputs": ["z"]}, "replace": {"nodes": {"f": {"op": "Nowhere", "domain": "acme", "in": ["Y", "X"], "out": ["z"]}}}})j");
  CHECK(kernel.nodes() == 2);
  CHECK(why(kernel, TN_REASON_KERNEL).expr == "a kernel for acme::Nowhere");
}

TEST_CASE("needs_kernel: one of the named devices runs the new operator", "[rules][rollback]") {
  const auto run = [](const char* devices) {
    std::string text = neg_add();
    text.insert(text.size() - 2, std::string(", \"needs_kernel\": ") + devices);
    return rules().run(graph(inputs + chain + "  output %z as \"z\"\n"), text);
  };
  CHECK(run("[\"cpu\"]").count("Sub") == 1);
  CHECK(run("[\"npu\", \"cpu\"]").count("Sub") == 1);
  const auto none = run("[\"npu\"]");
  CHECK(none.count("Sub") == 0);
  CHECK(why(none, TN_REASON_KERNEL).got == "no device of this run has one (the rule wants it on npu)");
}

TEST_CASE("before and after order rules; a ring of them is an error, a missing name a warning",
          "[rules][order]") {
  const auto rule = [](const std::string& name, const std::string& to, const std::string& more) {
    return R"j({"rule": ")j" + name +
           R"j(", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]}}, "outputs": ["z"]}, "replace": {"nodes": {"f": {"op": ")j" +
           to + R"j(", "domain": "acme", "in": ["Y", "X"], "out": ["z"]}}, "body": "origin"})j" + more + "}";
  };
  const std::string source = graph(inputs + chain + "  output %z as \"z\"\n");
  CHECK(rules().run(source, "[" + rule("A", "A", "") + "," + rule("B", "B", "") + "]").count("acme::A") == 1);
  CHECK(rules()
            .run(source, "[" + rule("A", "A", R"j(, "after": ["B"])j") + "," + rule("B", "B", "") + "]")
            .count("acme::B") == 1);
  CHECK(rules()
            .run(source, "[" + rule("A", "A", "") + "," + rule("B", "B", R"j(, "before": ["A"])j") + "]")
            .count("acme::B") == 1);
  const auto ring = joined(rules().check("[" + rule("A", "A", R"j(, "after": ["B"])j") + "," +
                                         rule("B", "B", R"j(, "after": ["C"])j") + "," +
                                         rule("C", "C", R"j(, "after": ["A"])j") + "]"));
  INFO(ring);
  CHECK(ring.find("E208: 'before' and 'after' form a cycle: ") != std::string::npos);
  CHECK(ring.find("A -> B") + ring.find("A -> C") != std::string::npos);
  const auto missing = joined(rules().check(rule("A", "A", R"j(, "after": ["Bee"])j")));
  CHECK(missing.find("ok\n") == 0);
  CHECK(missing.find("E206: rule 'A' is ordered against 'Bee', which is not loaded; that has no effect") !=
        std::string::npos);
}

TEST_CASE("A rule ends: fewer nodes, or as many that weigh less, or once", "[rules][termination]") {
  const auto codes = [](const std::string& to, const std::string& more) {
    return joined(rules().check(
        R"j({"rule": "A", "pattern": {"nodes": {"n": {"op": "Pow", "in": ["X", 2.0], "out": ["z"]}}, "outputs": ["z"]}, "replace": {"nodes": {"f": {"op": ")j" +
        to + R"j(", "in": ["X", "X"], "out": ["z"]}}})j" + more + "}"));
  };
  CHECK(codes("Mul", "").find("ok\n") == 0);
  CHECK(codes("Pow", "").find("E209: rule 'A' may replace 1 node(s) by 1 that weigh as much") !=
        std::string::npos);
  CHECK(codes("Pow", R"j(, "once": true)j").find("ok\n") == 0);
  CHECK(
      rules()
          .run(
              graph("  const %two: float32[] = [2.0]\n  input %x: float32[4]\n  %z = Pow(%x, %two)\n  output "
                    "%z as \"z\"\n"),
              R"j({"rule": "A", "pattern": {"nodes": {"n": {"op": "Pow", "in": ["X", 2.0], "out": ["z"]}}, "outputs": ["z"]}, "replace": {"nodes": {"f": {"op": "Mul", "in": ["X", "X"], "out": ["z"]}}}})j")
          .count("Mul") == 1);
}

TEST_CASE("Rules that undo one another through kept values are found when a graph comes back",
          "[rules][termination]") {
  const std::string rule_a =
      R"j({"rule": "A", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]}}, "values": {"a": {"escape": "keep"}}, "outputs": ["z"]}, "replace": {"nodes": {"f": {"op": "Sub", "in": ["Y", "X"], "out": ["z"]}}}})j";
  const std::string rule_b =
      R"j({"rule": "B", "pattern": {"nodes": {"s": {"op": "Sub", "in": ["Y", "X"], "out": ["z"]}, "n": {"op": "Neg", "in": ["X"], "out": ["a"]}}, "values": {"a": {"escape": "keep"}}, "outputs": ["z"]}, "replace": {"nodes": {"f": {"op": "Add", "in": ["a", "Y"], "out": ["z"]}}}})j";
  const auto r = rules().run(graph(inputs + chain + "  output %z as \"z\"\n  output %a as \"a\"\n"),
                             "[" + rule_a + "," + rule_b + "]");
  const std::string all = joined(r.said);
  INFO(all);
  CHECK(all.find("E313") != std::string::npos);
  CHECK(all.find("these rules undo one another: A, B;") != std::string::npos);
}

TEST_CASE("A match that takes too many steps is given up and told", "[rules][budget]") {
  // Operands that are alike, in any order, and one that is not there: every choice would be tried.
  std::string lines = "  input %x: float32[4]\n", list;
  for (int i = 0; i < 64; ++i) {
    lines += "  %l" + std::to_string(i) + " = Neg(%x)\n";
    list += (i ? ", %l" : "%l") + std::to_string(i);
  }
  const auto r = rules().run(
      graph(lines + "  %z = Sum(" + list + ")\n  output %z as \"z\"\n"),
      R"j({"rule": "A", "pattern": {"nodes": {"s": {"op": "Sum", "in": ["a", "b", "c", "e", "...rest"], "out": ["z"]}, "p": {"op": "Neg", "in": ["X"], "out": ["a"]},
    "q": {"op": "Neg", "in": ["X"], "out": ["b"]}, "r": {"op": "Neg", "in": ["X"], "out": ["c"]}, "u": {"op": "Abs", "in": ["X"], "out": ["e"]}}, "outputs": ["z"]},
    "replace": {"nodes": {"f": {"op": "F", "domain": "acme", "in": ["X", "...rest"], "out": ["z"]}}, "body": "origin"}})j");
  CHECK(why(r, TN_REASON_BUDGET).got == "no answer within 10000 steps");
}

TEST_CASE("The budget is an anchor's, whatever the number of variants", "[rules][budget]") {
  std::string lines = "  input %x: float32[4]\n", list;
  for (int i = 0; i < 64; ++i) {
    lines += "  %l" + std::to_string(i) + " = Neg(%x)\n";
    list += (i ? ", %l" : "%l") + std::to_string(i);
  }
  uint64_t steps = 0;
  auto wanted = rules().parse(graph(lines + "  %z = Sum(" + list + ")\n  output %z as \"z\"\n"));
  // Eight variants, each of which alone would use up all of it.
  const auto r = rules().run(
      std::move(wanted),
      R"j({"rule": "A", "pattern": {"nodes": {"s": {"op": "Sum", "in": ["a", "b", "c", "e", "...rest"], "out": ["z"]}, "p": {"op": "Neg", "in": ["X"], "out": ["a"]},
    "q": {"op": "Neg", "in": ["X"], "out": ["b"]}, "r": {"op": "Neg", "in": ["X"], "out": ["c"]}, "u": {"op": "Abs", "in": ["f"], "out": ["e"]},
    "o1": {"op": "Exp", "in": ["g"], "out": ["f"], "optional": true}, "o2": {"op": "Sin", "in": ["h"], "out": ["g"], "optional": true},
    "o3": {"op": "Cos", "in": ["X"], "out": ["h"], "optional": true}}, "outputs": ["z"]},
    "replace": {"nodes": {"f": {"op": "F", "domain": "acme", "in": ["X", "...rest"], "out": ["z"]}}, "body": "origin"}})j");
  for (const auto& s : r.steps) steps += s.second;
  CHECK(why(r, TN_REASON_BUDGET).got == "no answer within 10000 steps");
  CHECK(steps > 10000);
  CHECK(steps < 10200);
}

TEST_CASE("Comments, and a gain that is not reached", "[rules]") {
  const std::string text = neg_add("", R"j(, /* both
    kinds */ "cost": {"gain": "bytes(a)", "min_gain": 1, "measure": "auto"} // to the end
  )j");
  const auto said = joined(rules().check(text));
  INFO(said);
  CHECK(said.find("ok\n") == 0);
  CHECK(rules().run(graph(inputs + chain + "  output %z as \"z\"\n"), text).count("Sub") == 1);
  const auto dear = rules().run(graph(inputs + chain + "  output %z as \"z\"\n"),
                                neg_add("", R"j(, "cost": {"gain": "bytes(a) - 100"})j"));
  CHECK(why(dear, TN_REASON_COST).got == "-76");
}
