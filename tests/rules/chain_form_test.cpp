// The articles' form: every sentence of its meaning.
#include <catch2/catch.hpp>

#include "core/graph/edit.hpp"
#include "rule_harness.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

std::string graph(const std::string& lines) {
  return "graph \"g\" {\n  opset \"\" 28\n  const %w: float32[2,2,1,1] = uniform [0.5]\n  const %b: "
         "float32[2] = uniform [0.25]\n"
         "  input %x: float32[1,2,4,4]\n  input %y: float32[1,2,4,4]\n" +
         lines + "}\n";
}
std::string rule(const std::string& pattern, const std::string& constraints = "") {
  return R"j({"fusion_type": "A", "pattern": )j" + pattern + R"j(, "fused_op": "acme::F")j" +
         (constraints.empty() ? "" : ", \"constraints\": [" + constraints + "]") + "}";
}
bool fires(const std::string& lines, const std::string& text) {
  const auto r = rules().run(graph(lines), text);
  for (const auto& s : r.said) UNSCOPED_INFO(s);
  return r.count("acme::F") == 1;
}
std::string joined(const std::vector<std::string>& all) {
  std::string s;
  for (const auto& x : all) s += x + "\n";
  return s;
}

const std::string conv_relu = "  %c = Conv(%x, %w, %b)\n  %z = Relu(%c)\n  output %z as \"z\"\n";
const std::string conv_leaky =
    "  %c = Conv(%x, %w)\n  %z = LeakyRelu(%c) {alpha = 0.25}\n  output %z as \"z\"\n";

}  // namespace

TEST_CASE("A chain's inner values have one reader and are no outputs", "[rules][chain]") {
  const std::string text = rule(R"j(["Neg", "Add"])j");
  CHECK(fires("  %a = Neg(%x)\n  %z = Add(%a, %y)\n  output %z as \"z\"\n", text));
  CHECK(fires("  %a = Neg(%x)\n  %z = Add(%y, %a)\n  output %z as \"z\"\n", text));
  CHECK_FALSE(
      fires("  %a = Neg(%x)\n  %z = Add(%a, %y)\n  output %z as \"z\"\n  output %a as \"a\"\n", text));
  CHECK_FALSE(fires(
      "  %a = Neg(%x)\n  %z = Add(%a, %y)\n  %e = Exp(%a)\n  output %z as \"z\"\n  output %e as \"e\"\n",
      text));
  const auto twice =
      rules().run(graph("  %a = Neg(%x)\n  %z = Add(%a, %a) name \"sum\"\n  output %z as \"z\"\n"), text);
  CHECK(twice.nodes() == 2);
  REQUIRE(twice.why("A", TN_REASON_ESCAPE));
  CHECK(twice.why("A", TN_REASON_ESCAPE)->got == "sum reads it twice");
  // Operand 0 is meant, unless the operator commutes.
  CHECK_FALSE(
      fires("  %a = Neg(%x)\n  %z = Sub(%y, %a)\n  output %z as \"z\"\n", rule(R"j(["Neg", "Sub"])j")));
  CHECK(fires("  %a = Neg(%x)\n  %z = Sub(%a, %y)\n  output %z as \"z\"\n", rule(R"j(["Neg", "Sub"])j")));
}

TEST_CASE("Items: alternatives, maybe, some, and at least one", "[rules][chain]") {
  const auto run = [&](const std::string& middle, const std::string& item) {
    std::string lines = "  %v0 = Neg(%x)\n";
    int n = 0;
    for (const char c : middle) {
      lines += "  %v" + std::to_string(n + 1) + " = " + (c == 'a' ? "Abs" : "Exp") + "(%v" +
               std::to_string(n) + ")\n";
      ++n;
    }
    return fires(lines + "  %z = Sin(%v" + std::to_string(n) + ")\n  output %z as \"z\"\n",
                 rule("[\"Neg\", \"" + item + "\", \"Sin\"]"));
  };
  CHECK(run("a", "Abs|Exp"));
  CHECK(run("e", "Abs|Exp"));
  CHECK_FALSE(run("ae", "Abs|Exp"));
  CHECK(run("", "Abs?"));
  CHECK(run("a", "Abs?"));
  CHECK_FALSE(run("aa", "Abs?"));
  CHECK(run("", "Abs*"));
  CHECK(run("aaaaaaaa", "Abs*"));
  CHECK_FALSE(run("aaaaaaaaa", "Abs*"));
  CHECK_FALSE(run("", "Abs+"));
  CHECK(run("aaa", "Abs+"));
  CHECK(run("aea", "Abs|Exp*"));
  CHECK(run("aaa", "Abs{0,3}"));
  CHECK_FALSE(run("aaaa", "Abs{0,3}"));
  CHECK_FALSE(run("a", "Abs{2,3}"));
}

TEST_CASE("Fused attributes are the union; on a clash the first keeps the name", "[rules][chain]") {
  const auto r =
      rules().run(graph("  %a = LeakyRelu(%x) {alpha = 0.25}\n  %b2 = Elu(%a) {alpha = 0.5}\n  %c = Elu(%b2) "
                        "{alpha = 0.75}\n  %z = Elu(%c) {alpha = 2.0}\n  output %z as \"z\"\n"),
                  rule(R"j(["LeakyRelu", "Elu", "Elu", "Elu"])j"));
  INFO(r.text());
  REQUIRE(r.count("acme::F") == 1);
  CHECK(r.text().find("alpha = 0.25") != std::string::npos);
  CHECK(r.text().find("Elu.alpha = 0.5") != std::string::npos);
  CHECK(r.text().find("Elu.alpha.2 = 0.75") != std::string::npos);
  CHECK(r.text().find("Elu.alpha.3 = 2.0") != std::string::npos);
}

TEST_CASE("Constraints of every kind are met and not met", "[rules][chain]") {
  const auto with = [](const std::string& lines, const std::string& constraint) {
    return fires(lines, rule(R"j(["Conv", "Relu|LeakyRelu"])j", constraint));
  };
  CHECK(with(
      conv_relu,
      R"j({"input_dtype": "float32"}, {"weight_dtype": ["float16", "float32"], "output_dtype": {"not": "float16"}})j"));
  CHECK_FALSE(with(conv_relu, R"j({"weight_dtype": "float16"})j"));
  CHECK_FALSE(with(conv_relu, R"j({"output_dtype": {"not": "float32"}})j"));
  CHECK_FALSE(with(conv_relu, R"j({"input_dtype": "float32"}, {"output_dtype": "float16"})j"));  // AND
  CHECK(with(conv_relu, R"j({"input_format": "NCHW"})j"));
  CHECK(with(conv_relu, R"j({"rank": {"min": 3, "max": 5}})j"));
  CHECK_FALSE(with(conv_relu, R"j({"rank": 3})j"));
  CHECK(with(conv_relu, R"j({"group": 1})j"));  // the default of the operator counts
  CHECK_FALSE(with(conv_relu, R"j({"group": {"min": 2}})j"));
  CHECK(with(conv_leaky, R"j({"alpha": [0.1, 0.25]})j"));
  CHECK_FALSE(with(conv_leaky, R"j({"alpha": {"max": 0.2}})j"));
  CHECK(with(conv_leaky, R"j({"activation_type": "leaky_relu"})j"));
  CHECK_FALSE(with(conv_relu, R"j({"activation_type": "leaky_relu"})j"));
  CHECK(with(conv_relu, R"j({"activation_type": {"not": "leaky_relu"}})j"));
  const auto codes = [](const std::string& constraint) {
    return joined(rules().check(rule(R"j(["Conv", "Relu|LeakyRelu"])j", constraint)));
  };
  CHECK(codes(R"j({"alpa": 0.1})j").find("E205: no operator of the chain has an attribute 'alpa'") !=
        std::string::npos);
  CHECK(codes(R"j({"alpa": 0.1})j").find("did you mean 'alpha'?") != std::string::npos);
  CHECK(codes(R"j({"activation_type": "relu6"})j").find("E205: 'activation_type' is never met") !=
        std::string::npos);
  CHECK(codes(R"j({"input_format": "NHWC"})j").find("E205: input_format 'NHWC' is never met") !=
        std::string::npos);
  CHECK(codes(R"j({"input_dtype": "float23"})j").find("E205: 'float23' is no element type") !=
        std::string::npos);
  CHECK(codes(R"j({"rank": {"min": 4, "max": 3}})j").find("E205: min is greater than max") !=
        std::string::npos);
}

TEST_CASE("Lower-case names of operators, and names that several domains have", "[rules][chain]") {
  CHECK(fires(conv_relu, rule(R"j(["conv2d", "relu"])j")));
  const auto said = joined(rules().check(
      R"j({"fusion_patterns": [["matmul", "add", "layernorm"], ["attention", "matmul", "gelu"], ["conv2d", "batchnorm", "silu"]]})j"));
  INFO(said);
  CHECK(said == "ok\n");
}
