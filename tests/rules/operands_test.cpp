// Operands of patterns: lists ("...name"), copies in a row ("repeat"), orders, several outputs.
#include <catch2/catch.hpp>

#include "core/graph/edit.hpp"
#include "rule_harness.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

std::string graph(const std::string& lines) {
  return "graph \"g\" {\n  opset \"\" 28\n  input %x: float32[4]\n  input %y: float32[4]\n  input %w: "
         "float32[4]\n" +
         lines + "}\n";
}
std::string rule(const std::string& nodes, const std::string& outputs, const std::string& replace,
                 const std::string& more = "") {
  return R"j({"rule": "A", "pattern": {"nodes": {)j" + nodes + R"j(}, "outputs": [)j" + outputs +
         R"j(]}, "replace": {"nodes": {)j" + replace + "}}" + more + "}";
}
std::vector<std::string> operands(const RuleRun& r, const std::string& op) {
  std::vector<std::string> names;
  for (const tn_node n : r.graph->nodes(0))
    if (r.graph->op_name(n) == op)
      for (uint32_t i = 0; i < r.graph->node(n).input_count; ++i)
        names.emplace_back(r.graph->name(r.graph->node(n).input(i)));
  return names;
}
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("...rest takes the operands that are left, in their order, and may be empty", "[rules][rest]") {
  const std::string text = rule(
      R"j("n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "c": {"op": "Concat", "in": ["a", "...rest"], "out": ["z"]})j",
      R"j("z")j",
      R"j("f": {"op": "Joined", "domain": "acme", "in": ["...rest", "X"], "out": ["z"], "attrs": {"n": "len(rest)"
}
})j",
      R"j(, "where": ["c.axis == 0"])j");
  const std::string with_body =
      std::string(text).insert(text.find("}}, \"where\"") + 1, R"j(, "body": "origin")j");
  const auto three = rules().run(
      graph("  %a = Neg(%x)\n  %z = Concat(%a, %y, %w) {axis = 0}\n  output %z as \"z\"\n"), with_body);
  INFO(three.text());
  CHECK(three.count("acme::Joined") == 1);
  CHECK(operands(three, "acme::Joined") == Names{"y", "w", "x"});
  const auto one =
      rules().run(graph("  %a = Neg(%x)\n  %z = Concat(%a) {axis = 0}\n  output %z as \"z\"\n"), with_body);
  CHECK(operands(one, "acme::Joined") == Names{"x"});
  const auto second = rules().run(
      graph("  %a = Neg(%x)\n  %z = Concat(%y, %a) {axis = 0}\n  output %z as \"z\"\n"), with_body);
  CHECK(second.nodes() == 2);  // the first operand is no Neg
}

TEST_CASE(
    "copy_attrs copies what the matched operator takes by default, where the new one takes something else",
    "[rules]") {
  const std::string text =
      rule(R"j("l": {"op": "LeakyRelu", "in": ["X"], "out": ["z"]})j", R"j("z")j",
           R"j("f": {"op": "Elu", "in": ["X"], "out": ["z"], "copy_attrs": ["l"]})j", R"j(, "once": true)j");
  const auto alpha = [&](const std::string& given) {
    const auto r = rules().run(graph("  %z = LeakyRelu(%x)" + given + "\n  output %z as \"z\"\n"), text);
    const size_t at = r.text().find("Elu(%x) {alpha = ");
    INFO(r.text());
    REQUIRE(at != std::string::npos);
    return std::stod(r.text().substr(at + 17));
  };
  CHECK(alpha("") == Approx(0.01));  // Elu's own default is 1
  CHECK(alpha(" {alpha = 0.25}") == 0.25);
}

TEST_CASE("Operands named behind ...rest count from the end", "[rules][rest]") {
  const std::string text = rule(
      R"j("n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "c": {"op": "Concat", "in": ["F", "...rest", "a"], "out": ["z"]})j",
      R"j("z")j",
      R"j("f": {"op": "Concat", "in": ["X", "...rest", "F"], "out": ["z"], "copy_attrs": ["c"]})j");
  const auto r = rules().run(
      graph("  %a = Neg(%x)\n  %z = Concat(%y, %w, %w, %a) {axis = 0}\n  output %z as \"z\"\n"), text);
  INFO(r.text());
  CHECK(operands(r, "Concat") == Names{"x", "w", "w", "y"});
  CHECK(rules()
            .run(graph("  %a = Neg(%x)\n  %z = Concat(%a) {axis = 0}\n  output %z as \"z\"\n"), text)
            .nodes() == 2);
}

TEST_CASE("...rest of an operator that commutes: the named operand may stand anywhere", "[rules][rest]") {
  const std::string text = rule(
      R"j("n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Sum", "in": ["a", "...rest"], "out": ["z"]})j",
      R"j("z")j", R"j("f": {"op": "Sum", "in": ["...rest", "X"], "out": ["z"]})j");
  for (const char* order : {"%a, %y, %w", "%y, %a, %w", "%y, %w, %a"}) {
    const auto r = rules().run(
        graph(std::string("  %a = Neg(%x)\n  %z = Sum(") + order + ")\n  output %z as \"z\"\n"), text);
    CHECK(operands(r, "Sum") == Names{"y", "w", "x"});
  }
  CHECK(rules().run(graph("  %z = Sum(%x, %y, %w)\n  output %z as \"z\"\n"), text).nodes() == 1);
}

TEST_CASE("Three operands of Sum match in every order", "[rules]") {
  const std::string text = rule(
      R"j("n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "m": {"op": "Abs", "in": ["Y"], "out": ["b"]}, "s": {"op": "Sum", "in": ["a", "b", "C"], "out": ["z"]})j",
      R"j("z")j", R"j("f": {"op": "Sum", "in": ["X", "Y", "C"], "out": ["z"]})j");
  for (const char* order : {"%a, %b, %w", "%w, %b, %a", "%b, %w, %a"})
    CHECK(operands(rules().run(graph(std::string("  %a = Neg(%x)\n  %b = Abs(%y)\n  %z = Sum(") + order +
                                     ")\n  output %z as \"z\"\n"),
                               text),
                   "Sum") == Names{"x", "y", "w"});
}

TEST_CASE("What is asked of a list is asked of each of its operands", "[rules][rest]") {
  const std::string text =
      R"j({"rule": "A", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "c": {"op": "Concat", "in": ["a", "...rest"], "out": ["z"]}},
       "values": {"rest": {"const": true, "shape": ["N"]}}, "outputs": ["z"]}, "where": ["all(concat(rest) > 0)", "bytes(rest) == 4 * numel(rest)"],
       "replace": {"nodes": {"f": {"op": "Concat", "in": ["X", "...rest"], "out": ["z"], "copy_attrs": ["c"]}}}})j";
  const auto with = [&](const char* operands, const char* second) {
    return rules().run(
        "graph \"g\" {\n  opset \"\" 28\n  const %p: float32[2] = [1.0, 2.0]\n  const %q: float32" +
            std::string(second) + "\n  input %x: float32[4]\n  %a = Neg(%x)\n  %z = Concat(%a, " + operands +
            ") {axis = 0}\n  output %z as \"z\"\n}\n",
        text);
  };
  CHECK(with("%p, %q", "[2] = [3.0, 4.0]").nodes() == 1);
  const auto shapes = with("%p, %q", "[3] = [3.0, 4.0, 5.0]");
  REQUIRE(shapes.why("A", TN_REASON_SHAPE));
  CHECK(shapes.why("A", TN_REASON_SHAPE)->got == "[3]");
  CHECK(with("%p, %x", "[2] = [3.0, 4.0]").why("A", TN_REASON_CONST));
  CHECK(with("%p, %q", "[2] = [3.0, -4.0]").why("A", TN_REASON_GUARD));
}

TEST_CASE("A tree of Adds with ...rest becomes one Sum", "[rules][rest][assoc]") {
  const std::string text =
      rule(R"j("s": {"op": "Add", "assoc": true, "in": ["A", "B", "C", "...rest"], "out": ["z"]})j",
           R"j("z")j", R"j("f": {"op": "Sum", "in": ["A", "B", "C", "...rest"], "out": ["z"]})j");
  const auto r = rules().run(graph("  %a = Add(%x, %y)\n  %b = Add(%w, %x)\n  %c = Add(%a, %b)\n  %z = "
                                   "Add(%c, %w)\n  output %z as \"z\"\n"),
                             text);
  INFO(r.text());
  CHECK(r.nodes() == 1);
  CHECK(operands(r, "Sum") == Names{"x", "y", "w", "x", "w"});
  CHECK(rules().run(graph("  %z = Add(%x, %w)\n  output %z as \"z\"\n"), text).count("Add") == 1);
}

TEST_CASE("repeat: one operator several times in a row, the copies' other operands as a list",
          "[rules][repeat]") {
  const std::string text = rule(
      R"j("h": {"op": "Neg", "in": ["X"], "out": ["a"]}, "adds": {"op": "Add", "in": ["a", "...b"], "out": ["z"], "repeat": {"min": 2, "max": 4}})j",
      R"j("z")j",
      R"j("n": {"op": "Neg", "in": ["X"], "out": ["m"]}, "f": {"op": "Sum", "in": ["m", "...b"], "out": ["z"]})j",
      R"j(, "where": ["copies(adds) == len(b)", "present(b)"])j");
  const auto adds = [&](int n) {
    std::string lines = "  %v0 = Neg(%x)\n";
    for (int i = 0; i < n; ++i)
      lines += "  %v" + std::to_string(i + 1) + " = Add(" +
               (i % 2 ? "%w, %v" + std::to_string(i) : "%v" + std::to_string(i) + ", %y") + ")\n";
    return rules().run(graph(lines + "  output %v" + std::to_string(n) + " as \"z\"\n"), text);
  };
  CHECK(adds(1).count("Add") == 1);
  const auto three = adds(3);
  INFO(three.text());
  CHECK(three.nodes() == 2);
  CHECK(operands(three, "Sum") == Names{"Neg_out", "y", "w", "y"});
  CHECK(adds(4).nodes() == 2);
  CHECK(adds(5).count("Add") == 1);  // four from the Neg on, the fifth stays
}

TEST_CASE("repeat with min 0 may be missing; operands with one name are one value in each copy",
          "[rules][repeat]") {
  const std::string text = rule(
      R"j("h": {"op": "Neg", "in": ["X"], "out": ["a"]}, "m": {"op": "Mul", "in": ["a", "K"], "out": ["b"], "repeat": {"min": 0, "max": 2}}, "t": {"op": "Abs", "in": ["b"], "out": ["z"]})j",
      R"j("z")j",
      R"j("f": {"op": "F", "domain": "acme", "in": ["X", "K?"], "out": ["z"], "attrs": {"n": "copies(m)"
}
})j");
  const std::string body = std::string(text).insert(text.size() - 2, R"j(, "body": "origin")j");
  const auto count = [&](const std::string& middle) {
    const auto r =
        rules().run(graph("  %a = Neg(%x)\n" + middle + "  %z = Abs(%b)\n  output %z as \"z\"\n"), body);
    return r.nodes() == 1 ? static_cast<int>(r.graph->node(r.graph->nodes(0)[0]).input_count) : -1;
  };
  CHECK(rules().run(graph("  %a = Neg(%x)\n  %z = Abs(%a)\n  output %z as \"z\"\n"), body).nodes() == 1);
  CHECK(count("  %b = Mul(%a, %y)\n") == 2);
  CHECK(count("  %t = Mul(%y, %a)\n  %b = Mul(%t, %y)\n") == 2);
  CHECK(count("  %t = Mul(%y, %a)\n  %b = Mul(%t, %w)\n") == -1);
}

TEST_CASE("Operands of every alternative commute as its operator does", "[rules]") {
  const std::string text = rule(
      R"j("h": {"op": "Neg", "in": ["X"], "out": ["a"]}, "t": {"any_of": [{"op": "Mul", "in": ["a", 2.0]}, {"op": "Div", "in": ["a", 0.5]}], "out": ["z"]})j",
      R"j("z")j",
      R"j("f": {"op": "F", "domain": "acme", "in": ["X"], "out": ["z"], "attrs": {"how": "t.op"}})j");
  const std::string body = std::string(text).insert(text.size() - 2, R"j(, "body": "origin")j");
  const auto fires = [&](const std::string& call) {
    return rules()
               .run(
                   "graph \"g\" {\n  opset \"\" 28\n  const %two: float32[] = [2.0]\n  const %half: "
                   "float32[] = [0.5]\n  input %x: float32[4]\n  %a = Neg(%x)\n  %z = " +
                       call + "\n  output %z as \"z\"\n}\n",
                   body)
               .nodes() == 1;
  };
  CHECK(fires("Mul(%a, %two)"));
  CHECK(fires("Mul(%two, %a)"));
  CHECK(fires("Div(%a, %half)"));
  CHECK_FALSE(fires("Div(%half, %a)"));
  CHECK_FALSE(fires("Mul(%a, %half)"));
}

TEST_CASE("Several outputs: two products of one input become one", "[rules][outputs]") {
  const std::string text =
      R"j({"rule": "A", "pattern": {"nodes": {"p": {"op": "MatMul", "in": ["X", "U"], "out": ["a"]}, "q": {"op": "MatMul", "in": ["X", "V"], "out": ["b"]}},
    "values": {"U": {"const": true, "shape": ["K", "M"]}, "V": {"const": true, "shape": ["K", "N"]}}, "outputs": ["a", "b"]},
    "where": ["not same(U, V)", "shape(U)[1] == shape(V)[1]"], "once": true, "let": {"W": "concat([U, V], 1)"},
    "replace": {"nodes": {"m": {"op": "MatMul", "in": ["X", "W"], "out": ["y"]}, "s": {"op": "Split", "in": ["y"], "out": ["a", "b"], "attrs": {"axis": -1, "num_outputs": 2}}}}})j";
  const auto run = [&](const std::string& lines) {
    return rules().run(
        "graph \"g\" {\n  opset \"\" 28\n  const %u: float32[4,4] = uniform [0.5]\n  const %v: float32[4,4] "
        "= "
        "uniform [0.25]\n  input %x: float32[2,4]\n" +
            lines + "}\n",
        text);
  };
  const auto r =
      run("  %a = MatMul(%x, %u)\n  %n = Neg(%a)\n  %b = MatMul(%x, %v)\n  %z = Add(%n, %b)\n  output %z as "
          "\"z\"\n");
  INFO(r.text());
  CHECK(r.count("MatMul") == 1);
  CHECK(r.count("Split") == 1);
  CHECK(run("  %a = MatMul(%x, %u)\n  output %a as \"a\"\n").count("Split") == 0);
}
