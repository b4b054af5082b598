// CANN's rule files, {"Rules": [...]}.
#include <catch2/catch.hpp>

#include "core/graph/edit.hpp"
#include "rule_harness.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

const std::string conv_bias_relu = R"({"Rules": [{"RuleName": "conv-bias-relu",
  "OuterInputs": [{"name": "x"}, {"name": "filter"}, {"name": "bias"}],
  "OuterOutputs": [{"name": "y"}],
  "OriginGraph": {
    "Nodes": [{"name": "conv", "type": ["Conv2D"]}, {"name": "add", "type": ["BiasAdd"]}, {"name": "act", "type": ["Relu", "LeakyRelu"]}],
    "Edges": [{"src": "x", "dst": "conv:0"}, {"src": "filter", "dst": "conv:1"}, {"src": "conv:0", "dst": "add:0"},
              {"src": "bias", "dst": "add:1"}, {"src": "add:0", "dst": "act:0"}, {"src": "act:0", "dst": "y"}]},
  "FusionGraph": {
    "Nodes": [{"name": "fused", "type": ["ConvBiasAct"]}],
    "Edges": [{"src": "x", "dst": "fused:0"}, {"src": "filter", "dst": "fused:1"}, {"src": "bias", "dst": "fused:2"},
              {"src": "fused:0", "dst": "y"}],
    "Attrs": [{"attr": "fused.group", "value": "conv.group", "expr": "="}, {"attr": "fused.slope", "value": 2}, {"attr": "fused.kind", "value": "bias"}]}}]})";

std::string conv_graph(const std::string& add) {
  return "graph \"g\" {\n  opset \"\" 28\n  const %w: float32[2,1,1,1] = uniform [0.5]\n  const %b: "
         "float32[2,1,1] = uniform [0.5]\n"
         "  input %x: float32[1,1,4,4]\n  %c = Conv(%x, %w)\n  %s = Add(" +
         add + ")\n  %z = Relu(%s)\n  output %z as \"z\"\n}\n";
}

std::string joined(const std::vector<std::string>& all) {
  std::string s;
  for (const auto& x : all) s += x + "\n";
  return s;
}

}  // namespace

TEST_CASE("A rule of CANN fires, operands matched by index, attributes taken over", "[rules][cann]") {
  const auto r = rules().run(conv_graph("%c, %b"), conv_bias_relu);
  INFO(r.text());
  REQUIRE(r.nodes() == 1);
  const tn_node n = r.graph->nodes(0)[0];
  CHECK(r.graph->op_name(n) == "fused::ConvBiasAct");
  CHECK(r.graph->node(n).input_count == 3);
  CHECK(r.graph->node(n).regions().size() == 1);
  CHECK(r.text().find("group = 1") != std::string::npos);
  CHECK(r.text().find("slope = 2") != std::string::npos);
  CHECK(r.text().find("kind = \"bias\"") != std::string::npos);
  CHECK(rules().run(conv_graph("%b, %c"), conv_bias_relu).nodes() == 3);  // CANN counts operands
  std::string commuting = conv_bias_relu;
  commuting.insert(commuting.find("[\"BiasAdd\"]") + 11, ", \"commute\": true");
  CHECK(rules().run(conv_graph("%b, %c"), commuting).nodes() == 1);
}

TEST_CASE("A rule of CANN with two new nodes and two outputs", "[rules][cann]") {
  const std::string text =
      R"({"Rules": [{"RuleName": "swap", "OuterInputs": [{"name": "p", "src": "data:0"}, {"name": "q", "src": "data:0"}], "OuterOutputs": [{"name": "s"}, {"name": "d"}],
    "OriginGraph": {"Nodes": [{"name": "n", "type": ["Neg"]}, {"name": "add", "type": ["Add"]}, {"name": "sub", "type": ["Sub"]}],
      "Edges": [{"src": "p", "dst": "n:0"}, {"src": "n:0", "dst": "add:0"}, {"src": "q", "dst": "add:1"}, {"src": "n:0", "dst": "sub:0"}, {"src": "p", "dst": "sub:1"}, {"src": "add:0", "dst": "s"}, {"src": "sub:0", "dst": "d"}]},
    "FusionGraph": {"Nodes": [{"name": "d2", "type": ["Mul"]}, {"name": "s2", "type": ["Abs"]}],
      "Edges": [{"src": "p", "dst": "s2:0"}, {"src": "s2:0", "dst": "d2:0"}, {"src": "q", "dst": "d2:1"}, {"src": "s2:0", "dst": "s"}, {"src": "d2:0", "dst": "d"}]}}]})";
  const auto run = [&](const char* other) {
    return rules().run(std::string("graph \"g\" {\n  opset \"\" 28\n  input %x: float32[4]\n  input %y: "
                                   "float32[4]\n  %n = Neg(%x)\n  %a = Add(%n, ") +
                           other + ")\n  %b = Sub(%n, %x)\n  output %a as \"a\"\n  output %b as \"b\"\n}\n",
                       text);
  };
  const auto r = run("%x");
  INFO(r.text());
  CHECK(r.nodes() == 2);
  CHECK(r.count("Abs") == 1);
  CHECK(r.count("Mul") == 1);
  CHECK(run("%y").count("Neg") == 1);  // both outer inputs have one source
}

TEST_CASE("What is wrong in a file of CANN is said at its place", "[rules][cann]") {
  const std::string all = joined(rules().check(R"({"Rules": [
 {"RuleName": "a", "OuterInputs": [{"name": "x"}], "OuterOutputs": [{"name": "y"}, {"name": "w"}],
  "OriginGraph": {"Nodes": [{"name": "n", "type": ["Neg"]}, {"name": "n", "type": []}], "Edges": [{"src": "x", "dst": "n:0"}]},
  "FusionGraph": {"Nodes": [{"name": "f", "type": ["Abs", "Neg"], "kind": 1}], "Edges": []}},
 {"RuleName": "b", "OuterInputs": [{"name": "x"}], "OuterOutputs": [{"name": "y"}],
  "OriginGraph": {"Nodes": [{"name": "n", "type": ["Neg"]}, {"name": "m", "type": ["Abs"]}],
    "Edges": [{"src": "x", "dst": "n:0"}, {"src": "n:0", "dst": "m:0"}, {"src": "m:0", "dst": "z"}]},
  "FusionGraph": {"Nodes": [{"name": "f", "type": ["Abs"]}], "Edges": [{"src": "xx", "dst": "f:0"}, {"src": "f:0", "dst": "y"}],
    "Attrs": [{"attr": "g.a", "value": 1}, {"attr": "f.a", "value": 1, "expr": "+"}]}}]})"));
  INFO(all);
  CHECK(all.find("test.json:3:70: E220: node 'n' is defined twice  [/Rules/0/OriginGraph/Nodes/1/name]") !=
        std::string::npos);
  CHECK(all.find("test.json:3:83: E203: 'type' is empty") != std::string::npos);
  CHECK(all.find("test.json:4:51: E220: a node of 'FusionGraph' has one type, found 2") != std::string::npos);
  CHECK(all.find("test.json:4:67: E201: unknown key 'kind'") != std::string::npos);
  CHECK(all.find("test.json:7:95: E220: 'z' is neither a node nor an outer output") != std::string::npos);
  CHECK(all.find("test.json:8:80: E220: 'xx' is neither a node nor an outer input") != std::string::npos);
  CHECK(all.find("test.json:9:24: E220: 'g.a' is no attribute of a node of 'FusionGraph'") !=
        std::string::npos);
  CHECK(all.find("E220: 'expr' is") != std::string::npos);
  CHECK(all.find("did you mean 'x'?") != std::string::npos);
}
