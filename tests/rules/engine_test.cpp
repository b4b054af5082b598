// The engine itself: forms of rule files, switches, conflicts, reasons, rollback, speed of growth.
#include <catch2/catch.hpp>

#include "core/graph/edit.hpp"
#include "rule_harness.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

const std::string chain_graph = R"(graph "g" {
  opset "" 28
  input %x: float32[4]
  input %y: float32[4]
  %a = Neg(%x)
  %b = Add(%y, %a)
  %c = LeakyRelu(%b) {alpha = 0.5}
  output %c as "c"
})";

std::string joined(const std::vector<std::string>& all) {
  std::string s;
  for (const auto& x : all) s += x + "\n";
  return s;
}

}  // namespace

TEST_CASE(
    "The articles' form: a chain becomes the fused operator, operands in node and slot order, with its "
    "body") {
  const auto r = rules().run(
      chain_graph,
      R"({"fusion_type": "NegAddLeaky", "pattern": ["Neg", "add", "Relu|leaky_relu"], "fused_op": "acme::NegAddLeaky",
    "constraints": [{"input_dtype": "float32"}, {"activation_type": "leaky_relu"}, {"alpha": {"min": 0.4, "max": 0.6}}]})");
  INFO(r.text());
  REQUIRE(r.status == TN_OK);
  REQUIRE(r.nodes() == 1);
  const tn_node n = r.graph->nodes(0)[0];
  CHECK(r.graph->op_name(n) == "acme::NegAddLeaky");
  REQUIRE(r.graph->node(n).input_count == 2);
  CHECK(r.graph->name(r.graph->node(n).input(0)) == "x");
  CHECK(r.graph->name(r.graph->node(n).input(1)) == "y");
  REQUIRE(r.graph->node(n).attr_count == 1);
  REQUIRE(r.graph->node(n).regions().size() == 1);
  CHECK(r.graph->region(r.graph->node(n).regions()[0]).node_count == 3);
  CHECK(r.graph->type(r.graph->node(n).output(0)).rank == 1);
}

TEST_CASE("Constraints of a chain that are not met are told") {
  const auto dtype = rules().run(
      chain_graph,
      R"({"fusion_type": "A", "pattern": ["Neg", "Add", "LeakyRelu"], "fused_op": "acme::F", "constraints": [{"input_dtype": "float16"}]})");
  CHECK(dtype.nodes() == 3);
  REQUIRE(dtype.why("A", TN_REASON_DTYPE));
  CHECK(dtype.why("A", TN_REASON_DTYPE)->got == "float32");
  const auto attribute = rules().run(
      chain_graph,
      R"({"fusion_type": "A", "pattern": ["Neg", "Add", "LeakyRelu"], "fused_op": "acme::F", "constraints": [{"alpha": {"not": 0.5}}]})");
  CHECK(attribute.nodes() == 3);
  CHECK(attribute.why("A", TN_REASON_GUARD));
}

TEST_CASE("Optional and repeated items of a chain") {
  const std::string rule =
      R"({"fusion_type": "A", "pattern": ["Neg", "Abs?", "Sin{0,3}", "Exp"], "fused_op": "acme::F"})";
  const auto graph = [](const std::string& middle) {
    return "graph \"g\" {\n  opset \"\" 28\n  input %x: float32[4]\n  %a = Neg(%x)\n" + middle +
           "  output %z as \"z\"\n}\n";
  };
  CHECK(rules().run(graph("  %z = Exp(%a)\n"), rule).nodes() == 1);
  CHECK(rules().run(graph("  %b = Abs(%a)\n  %z = Exp(%b)\n"), rule).nodes() == 1);
  CHECK(
      rules().run(graph("  %b = Abs(%a)\n  %s = Sin(%b)\n  %t = Sin(%s)\n  %z = Exp(%t)\n"), rule).nodes() ==
      1);
  CHECK(rules()
            .run(graph("  %s = Sin(%a)\n  %t = Sin(%s)\n  %u = Sin(%t)\n  %v = Sin(%u)\n  %z = Exp(%v)\n"),
                 rule)
            .nodes() == 6);
  CHECK(rules().run(graph("  %b = Abs(%a)\n  %c = Abs(%b)\n  %z = Exp(%c)\n"), rule).nodes() == 4);
}

TEST_CASE("A bare chain makes a group, or switches on the rule that names it") {
  const auto group = rules().run(chain_graph, R"([["neg", "add"]])");
  INFO(group.text());
  CHECK(group.nodes() == 2);
  CHECK(group.count("group::neg_add") == 1);
  const auto named = rules().run(chain_graph, R"({"schema": "tenon.rules/1", "rules": [["neg", "add"],
    {"rule": "Named", "enabled": false, "aliases": ["neg+add"], "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]}}, "outputs": ["z"]},
     "replace": {"nodes": {"f": {"op": "Sub", "in": ["Y", "X"], "out": ["z"]}}}}]})");
  CHECK(named.count("Sub") == 1);
  CHECK(named.nodes() == 2);
}

TEST_CASE("Switches: a rule's name, its switch and its aliases; an explicit off beats enabled") {
  for (const char* name : {"ConvAct", "GraphFusion.ConvAct", "GraphOptimize.FuseConvReLU"}) {
    RunOptions o;
    o.switches[name] = "off";
    const auto r = rules().run(
        "graph \"g\" {\n  opset \"\" 28\n  const %w: float32[1,1,1,1] = [0.5]\n  input %x: "
        "float32[1,1,4,4]\n  %c = Conv(%x, %w)\n  %z = Relu(%c)\n  output %z as \"z\"\n}\n",
        {}, o);
    CHECK(r.nodes() == 2);
    REQUIRE(r.why("ConvAct", TN_REASON_SWITCH));
    CHECK(r.why("ConvAct", TN_REASON_SWITCH)->got == "switched off");
  }
}

TEST_CASE("Precision mode strict runs rules of class exact alone, approx wants fast") {
  const std::string rule =
      R"({"rule": "A", "precision": "CLASS", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]}}, "outputs": ["z"]},
     "replace": {"nodes": {"f": {"op": "Sub", "in": ["Y", "X"], "out": ["z"]}}}})";
  const auto fires = [&](const char* precision, const char* mode) {
    std::string text = rule;
    text.replace(text.find("CLASS"), 5, precision);
    RunOptions o;
    o.precision = mode;
    return rules().run(chain_graph, text, o).applied("A") == 1;
  };
  CHECK(fires("exact", "strict"));
  CHECK_FALSE(fires("reassoc", "strict"));
  CHECK(fires("reassoc", "exact"));
  CHECK(fires("reassoc", "bf16"));
  CHECK_FALSE(fires("approx", "faithful"));
  CHECK(fires("approx", "fast"));
}

TEST_CASE("Each stage has its pass: raise, fuse, layout_rules, device_rules") {
  const std::string rule =
      R"({"rule": "A", "stage": "STAGE", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]}}, "outputs": ["z"]},
     "replace": {"nodes": {"f": {"op": "Sub", "in": ["Y", "X"], "out": ["z"]}}}})";
  const std::vector<std::pair<const char*, const char*>> stages = {
      {"canonicalize", "raise"}, {"fuse", "fuse"}, {"layout", "layout_rules"}, {"device", "device_rules"}};
  for (const auto& [stage, own] : stages)
    for (const auto& [other, pass] : stages) {
      std::string text = rule;
      text.replace(text.find("STAGE"), 5, stage);
      RunOptions o;
      o.pass = pass;
      CHECK((rules().run(chain_graph, text, o).applied("A") == 1) == (std::string(pass) == own));
    }
}

TEST_CASE("Conflicts: priority first, then the larger pattern; the loser is told and tried again") {
  const auto rule = [](const char* name, int priority, const char* op1, const char* op2) {
    return std::string("{\"rule\": \"") + name + "\", \"priority\": " + std::to_string(priority) +
           ", \"pattern\": {\"nodes\": {\"p\": {\"op\": \"" + op1 +
           "\", \"in\": [\"X\"], \"out\": [\"a\"]}, \"q\": {\"op\": \"" + op2 +
           "\", \"in\": [\"a\"], \"out\": [\"z\"]}}, \"outputs\": [\"z\"]}, \"replace\": {\"nodes\": {\"f\": "
           "{\"op\": \"" +
           name + "\", \"domain\": \"acme\", \"in\": [\"X\"], \"out\": [\"z\"]}}, \"body\": \"origin\"}}";
  };
  const std::string graph =
      "graph \"g\" {\n  opset \"\" 28\n  input %x: float32[4]\n  %a = Neg(%x)\n  %b = Abs(%a)\n  %c = "
      "Exp(%b)\n  output %c as \"c\"\n}\n";
  const auto r = rules().run(
      graph, "[" + rule("First", 100, "Abs", "Exp") + "," + rule("Second", 200, "Neg", "Abs") + "]");
  CHECK(r.count("acme::First") == 1);
  CHECK(r.count("acme::Second") == 0);
  REQUIRE(r.why("Second", TN_REASON_LOST));
  CHECK(r.why("Second", TN_REASON_LOST)->got == "lost to First (priority 100) at (unnamed acme::First)");
  const auto turned = rules().run(
      graph, "[" + rule("First", 300, "Abs", "Exp") + "," + rule("Second", 200, "Neg", "Abs") + "]");
  CHECK(turned.count("acme::Second") == 1);
}

TEST_CASE("escape keep: the node that is read elsewhere stays") {
  const auto r = rules().run(
      R"(graph "g" {
  opset "" 28
  input %x: float32[4]
  input %y: float32[4]
  %a = Neg(%x)
  %b = Add(%a, %y)
  output %b as "b"
  output %a as "a"
})",
      R"({"rule": "A", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]}}, "values": {"a": {"escape": "keep"}}, "outputs": ["z"]},
     "replace": {"nodes": {"f": {"op": "Sub", "in": ["Y", "X"], "out": ["z"]}}}})");
  CHECK(r.count("Sub") == 1);
  CHECK(r.count("Neg") == 1);
  CHECK(r.count("Add") == 0);
}

TEST_CASE(
    "A rewrite that changes the type of its output is rolled back, with the reason, and the graph is as "
    "before") {
  const auto before = rules().parse(chain_graph);
  const auto r = rules().run(
      chain_graph,
      R"({"rule": "A", "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]}}, "outputs": ["z"]},
     "replace": {"nodes": {"f": {"op": "Greater", "in": ["Y", "X"], "out": ["z"]}}}})");
  CHECK(r.text() == print(*before));
  REQUIRE(r.why("A", TN_REASON_ROLLBACK));
  CHECK_FALSE(r.why("A", TN_REASON_ROLLBACK)->got.empty());
}

TEST_CASE("once: a rule that lowers nothing does not match what it made") {
  const auto r = rules().run(
      chain_graph,
      R"({"rule": "A", "once": true, "pattern": {"nodes": {"n": {"op": "Neg", "in": ["X"], "out": ["z"]}}, "outputs": ["z"]},
     "replace": {"nodes": {"f": {"op": "Neg", "in": ["X"], "out": ["z"]}}}})");
  CHECK(r.applied("A") == 1);
  CHECK(r.nodes() == 3);
}

TEST_CASE("Same input, same output") {
  const std::string text =
      "graph \"g\" {\n  opset \"\" 28\n  const %w: float32[4,4,1,1] = uniform [0.5]\n  input %x: "
      "float32[1,4,4,4]\n  %a = Conv(%x, %w)\n  %b = Conv(%x, %w)\n  %c = Add(%a, %b)\n  %d = Relu(%c)\n  "
      "output %d as \"d\"\n}\n";
  CHECK(rules().run(text).text() == rules().run(text).text());
}

TEST_CASE("Near misses name the node that broke the pattern") {
  const auto r = rules().run(
      "graph \"g\" {\n  opset \"\" 28\n  input %x: float32[4]\n  %a = Abs(%x) name \"abs\"\n  %b = Exp(%a)\n "
      " output %b as \"b\"\n}\n",
      R"({"fusion_type": "A", "pattern": ["Neg", "Exp"], "fused_op": "acme::F"})");
  const auto* near = r.why("A", TN_REASON_STRUCTURE);
  REQUIRE(near);
  CHECK(near->got == "abs is Abs");
  CHECK(near->expr == "wanted Neg");
}

TEST_CASE("A file with faults gives all of them with line, column, pointer and advice, and nothing runs") {
  const auto said = rules().check(R"({"rule": "Bad", "pattern": {"nodes": {
  "conv": {"op": "Conv", "in": ["X", "W"], "outs": ["c"]}},
  "outputs": ["c"]},
 "where": ["rnk(W) == 4", "W +"],
 "replace": {"nodes": {"f": {"op": "Conv", "in": ["X", "V"], "out": ["c"]}}}})");
  const std::string all = joined(said);
  INFO(all);
  CHECK(all.find("test.json:2:44: E201: unknown key 'outs'  [/pattern/nodes/conv/outs]") !=
        std::string::npos);
  CHECK(all.find("did you mean") != std::string::npos);
  CHECK(all.find("test.json:4:13: E301: unknown function 'rnk'") != std::string::npos);
  CHECK(all.find("did you mean 'rank'?") != std::string::npos);
  CHECK(all.find("E300: expected a value, found the end") != std::string::npos);
  CHECK(all.find("E206: unbound name 'V'") != std::string::npos);
}

TEST_CASE("The built-in rules are without findings, strict") {
  for (const auto& f : RuleHarness::builtin()) {
    const auto said = rules().check(f.second, true);
    INFO(f.first << "\n" << joined(said));
    REQUIRE_FALSE(said.empty());
    CHECK(said[0] == "ok");
    CHECK(said.size() == 1);
  }
}

TEST_CASE("A long chain of blocks is rewritten in one sweep a rule, not one a block") {
  const int blocks = 3000;
  std::string text =
      "graph \"g\" {\n  opset \"\" 28\n  const %w: float32[1,1,1,1] = [0.5]\n  const %p: float32[1] = "
      "[1.0]\n  input %x0: float32[1,1,4,4]\n";
  for (int i = 0; i < blocks; ++i) {
    const std::string n = std::to_string(i);
    text += "  %c" + n + " = Conv(%x" + n + ", %w)\n  %b" + n + " = BatchNormalization(%c" + n +
            ", %p, %p, %p, %p)\n  %s" + n + " = Add(%b" + n + ", %x" + n + ")\n  %x" + std::to_string(i + 1) +
            " = Relu(%s" + n + ")\n";
  }
  text += "  output %x" + std::to_string(blocks) + " as \"z\"\n}\n";
  RunOptions o;
  o.detailed = false;
  const auto r = rules().run(text, {}, o);
  CHECK(r.nodes() == blocks);
  CHECK(r.count("tenon::FusedConv") == blocks);
  CHECK(r.applied("ConvBn") == static_cast<uint64_t>(blocks));
}
