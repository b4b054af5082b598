// Local functions: calls in a circle and calls that multiply are bounded; overloads, defaults and imports
// hold.
#include <catch2/catch.hpp>

#include "messages.hpp"
#include "offer.hpp"

using namespace tenon::hostile;
using Catch::Matchers::Contains;
using tenon::onnx::testing::function;
using tenon::onnx::testing::opset;
using tenon::onnx::testing::reference;

namespace {
std::string calling(const std::vector<std::string>& functions, std::vector<std::string> nodes) {
  return model(graph({std::move(nodes), {}, {}, {x2}, {y}, {}}), 17, 8, functions, {opset("local", 1)});
}
std::string call(std::string_view name, std::string_view from, std::string_view to) {
  return node(name, {from}, {to}, {}, {}, "local");
}
}  // namespace

TEST_CASE("recursion, direct, mutual and through a subgraph") {
  const std::string branch = graph({{call("A", "p", "o")}, {}, {}, {}, {typed("o", 1)}, {}});
  const std::string cond = node("Cast", {"s"}, {"c"}, {int_attribute("to", 9)});
  const std::vector<std::vector<std::string>> all = {
      {function("A", {"p"}, {"r"}, {call("A", "p", "r")})},
      {function("A", {"p"}, {"r"}, {call("B", "p", "r")}),
       function("B", {"p"}, {"r"}, {call("A", "p", "r")})},
      {function("A", {"p"}, {"r"}, {call("B", "p", "r")}), function("B", {"p"}, {"r"}, {call("C", "p", "r")}),
       function("C", {"p"}, {"r"}, {call("B", "p", "r")})},
      {function("A", {"p"}, {"r"},
                {node("ReduceSum", {"p"}, {"s"}, {int_attribute("keepdims", 0)}), cond,
                 node("If", {"c"}, {"r"},
                      {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)})})},
  };
  for (const auto& functions : all) {
    const Outcome outcome = offer(calling(functions, {call("A", "x", "y")}));
    INFO(outcome.said);
    CHECK_FALSE(outcome.ran);
    CHECK_THAT(outcome.said, Contains("recurs") && Contains("->"));
  }
}

TEST_CASE("functions that call others twice meet a limit, whether they hold nodes or not") {
  for (const bool empty : {true, false}) {
    std::vector<std::string> functions{empty ? function("F0", {"p"}, {"p"}, {})
                                             : function("F0", {"p"}, {"r"}, {node("Relu", {"p"}, {"r"})})};
    for (int i = 1; i < 40; ++i) {
      const std::string callee = "F" + std::to_string(i - 1);
      functions.push_back(
          function("F" + std::to_string(i), {"p"}, {"r"}, {call(callee, "p", "m"), call(callee, "m", "r")}));
    }
    const Outcome outcome = offer(calling(functions, {call("F39", "x", "y")}));
    INFO(outcome.said);
    CHECK_FALSE(outcome.ran);
    CHECK_THAT(outcome.said, Contains("calls"));
  }
}

TEST_CASE("one large function called many times meets a limit") {
  std::vector<std::string> body;
  for (int i = 0; i < 20000; ++i)
    body.push_back(node("Relu", {i == 0 ? "p" : "t" + std::to_string(i)},
                        {i == 19999 ? "r" : "t" + std::to_string(i + 1)}));
  std::vector<std::string> calls;
  for (int i = 0; i < 60; ++i)
    calls.push_back(
        call("W", i == 0 ? "x" : "q" + std::to_string(i), i == 59 ? "y" : "q" + std::to_string(i + 1)));
  const Outcome outcome = offer(calling({function("W", {"p"}, {"r"}, body)}, calls));
  INFO(outcome.said);
  CHECK_FALSE(outcome.ran);
  CHECK_THAT(outcome.said, Contains("1000000 nodes"));
}

TEST_CASE("calls that do not fit") {
  const std::string f = function("F", {"p"}, {"r"}, {node("Relu", {"p"}, {"r"})});
  const struct {
    const char* what;
    std::vector<std::string> functions;
    std::string call;
    const char* said;
  } all[] = {
      {"too many operands", {f}, node("F", {"x", "x"}, {"y"}, {}, {}, "local"), "passes 2 inputs"},
      {"too many results", {f}, node("F", {"x"}, {"y", "z"}, {}, {}, "local"), "takes 2 outputs"},
      {"defined twice", {f, f}, call("F", "x", "y"), "twice"},
      {"output it does not make",
       {function("F", {"p"}, {"r"}, {node("Relu", {"p"}, {"q"})})},
       call("F", "x", "y"),
       "'r'"},
      {"reads what it has not",
       {function("F", {"p"}, {"r"}, {node("Relu", {"x"}, {"r"})})},
       call("F", "x", "y"),
       "'x'"},
      {"unknown overload",
       {f},
       node("F", {"x"}, {"y"}, {}, {}, "local") + std::string("\x42\x01z", 3),
       "local::F"},
  };
  for (const auto& one : all) {
    const Outcome outcome = offer(calling(one.functions, {one.call}));
    INFO(one.what << ": " << outcome.said);
    CHECK_FALSE(outcome.ran);
    CHECK_THAT(outcome.said, Contains(one.said));
  }
}
