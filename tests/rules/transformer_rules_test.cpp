// The built-in rules of transformers.
#include <algorithm>
#include <catch2/catch.hpp>

#include "rule_harness.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

RunOptions raise() {
  RunOptions o;
  o.pass = "raise";
  return o;
}

const std::string gelu_head = R"(graph "g" {
  opset "" 28
  const %s2: float32[] = [1.4142135]
  const %r2: float32[1] = [0.70710678]
  const %one: float32[] = [1.0]
  const %half: float32[] = [0.5]
  const %four: float32[] = [0.4]
  const %three: float32[] = [3.0]
  const %k: float32[] = [0.044715]
  const %sp: float32[] = [0.7978845608]
  input %x: float32[2,5]
)";

std::string layer_norm(const std::string& axes1, const std::string& axes2, const std::string& g,
                       const std::string& tail) {
  return R"(graph "g" {
  opset "" 28
  const %two: float32[] = [2.0]
  const %eps: float32[] = [1e-05]
  const %a1: int64[)" +
         std::to_string(1 + std::count(axes1.begin(), axes1.end(), ',')) + "] = [" + axes1 + R"(]
  const %a2: int64[)" +
         std::to_string(1 + std::count(axes2.begin(), axes2.end(), ',')) + "] = [" + axes2 + R"(]
  const %g: float32)" +
         g + R"( = uniform [2.0]
  const %b: float32)" +
         g + R"( = uniform [0.5]
  input %x: float32[N,3,3]
  %mu = ReduceMean(%x, %a1)
  %d = Sub(%x, %mu)
  %sq = Pow(%d, %two)
  %va = ReduceMean(%sq, %a2)
  %ve = Add(%va, %eps)
  %sd = Sqrt(%ve)
  %nm = Div(%d, %sd)
)" + tail +
         "}\n";
}
const std::string scale_shift = "  %gm = Mul(%nm, %g)\n  %y = Add(%b, %gm)\n  output %y as \"y\"\n";

}  // namespace

TEST_CASE("Gelu is found in every association and operand order") {
  const char* const scale[] = {"Div(%x, %s2)", "Mul(%x, %r2)", "Mul(%r2, %x)"};
  const char* const plus[] = {"Add(%e, %one)", "Add(%one, %e)"};
  const char* const tail[] = {
      "%m = Mul(%x, %half)\n  %z = Mul(%m, %p)", "%m = Mul(%p, %x)\n  %z = Mul(%half, %m)",
      "%m = Mul(%half, %p)\n  %z = Mul(%x, %m)", "%m = Mul(%x, %p)\n  %z = Mul(%m, %half)"};
  for (const char* s : scale)
    for (const char* p : plus)
      for (const char* t : tail) {
        const auto r = rules().run(gelu_head + "  %d = " + s + "\n  %e = Erf(%d)\n  %p = " + p + "\n  " + t +
                                       "\n  output %z as \"z\"\n}\n",
                                   {}, raise());
        INFO(r.text());
        CHECK(r.nodes() == 1);
        CHECK(r.count("Gelu") == 1);
      }
}

TEST_CASE("What is only nearly a Gelu stays") {
  const auto other_scale = rules().run(gelu_head +
                                           "  %d = Div(%x, %one)\n  %e = Erf(%d)\n  %p = Add(%e, %one)\n  %m "
                                           "= Mul(%x, %p)\n  %z = Mul(%m, %half)\n  output %z as \"z\"\n}\n",
                                       {}, raise());
  CHECK(other_scale.count("Gelu") == 0);
  const auto other_half = rules().run(gelu_head +
                                          "  %d = Div(%x, %s2)\n  %e = Erf(%d)\n  %p = Add(%e, %one)\n  %m = "
                                          "Mul(%x, %p)\n  %z = Mul(%m, %four)\n  output %z as \"z\"\n}\n",
                                      {}, raise());
  CHECK(other_half.count("Gelu") == 0);
  const auto read =
      rules().run(gelu_head +
                      "  %d = Div(%x, %s2)\n  %e = Erf(%d)\n  %p = Add(%e, %one)\n  %m = Mul(%x, %p)\n  %z = "
                      "Mul(%m, %half)\n  output %z as \"z\"\n  output %e as \"e\"\n}\n",
                  {}, raise());
  CHECK(read.count("Gelu") == 0);
  CHECK(read.why("GeluErf", TN_REASON_ESCAPE));
}

TEST_CASE("A constant of higher rank than its partner would widen the result, so it does not match") {
  const auto r = rules().run(R"(graph "g" {
  opset "" 28
  const %s2: float32[1,1,1] = [1.4142135]
  const %one: float32[] = [1.0]
  const %half: float32[] = [0.5]
  input %x: float32[2,5]
  %d = Div(%x, %s2)
  %e = Erf(%d)
  %p = Add(%e, %one)
  %m = Mul(%x, %p)
  %z = Mul(%m, %half)
  output %z as "z"
})",
                             {}, raise());
  CHECK(r.count("Gelu") == 0);
}

TEST_CASE("Gelu by tanh, as three exporters spell it") {
  const char* const inner[] = {
      "%c = Pow(%x, %three)\n  %kc = Mul(%c, %k)\n  %i = Add(%x, %kc)\n  %a = Mul(%i, %sp)",
      "%q = Mul(%x, %x)\n  %c = Mul(%q, %x)\n  %kc = Mul(%k, %c)\n  %i = Add(%kc, %x)\n  %a = Mul(%sp, %i)",
      "%u = Mul(%x, %k)\n  %v = Mul(%u, %x)\n  %i = Add(%v, %one)\n  %w = Mul(%x, %sp)\n  %a = Mul(%w, %i)"};
  for (const char* i : inner) {
    const auto r = rules().run(gelu_head + "  " + i +
                                   "\n  %e = Tanh(%a)\n  %p = Add(%e, %one)\n  %m = Mul(%x, %half)\n  %z = "
                                   "Mul(%m, %p)\n  output %z as \"z\"\n}\n",
                               {}, raise());
    INFO(i << "\n" << r.text());
    CHECK(r.nodes() == 1);
    CHECK(r.applied("GeluTanh") == 1);
  }
}

TEST_CASE("Swish, with and without a factor") {
  const auto plain = rules().run(
      gelu_head + "  %s = Sigmoid(%x)\n  %z = Mul(%s, %x)\n  output %z as \"z\"\n}\n", {}, raise());
  CHECK(plain.count("Swish") == 1);
  CHECK(plain.nodes() == 1);
  const auto scaled = rules().run(
      gelu_head + "  %t = Mul(%x, %three)\n  %s = Sigmoid(%t)\n  %z = Mul(%s, %x)\n  output %z as \"z\"\n}\n",
      {}, raise());
  CHECK(scaled.count("Swish") == 1);
  CHECK(scaled.nodes() == 1);
  const auto other = rules().run(
      gelu_head + "  %n = Neg(%x)\n  %s = Sigmoid(%n)\n  %z = Mul(%s, %x)\n  output %z as \"z\"\n}\n", {},
      raise());
  CHECK(other.count("Swish") == 0);
}

TEST_CASE("LayerNormalization over trailing axes alone") {
  CHECK(rules().run(layer_norm("-1", "-1", "[3]", scale_shift), {}, raise()).nodes() == 1);
  CHECK(rules().run(layer_norm("1, 2", "-1, -2", "[3,3]", scale_shift), {}, raise()).nodes() == 1);
  CHECK(rules().run(layer_norm("1", "1", "[3]", scale_shift), {}, raise()).count("LayerNormalization") == 0);
  CHECK(rules().run(layer_norm("-1", "-2", "[3]", scale_shift), {}, raise()).count("LayerNormalization") ==
        0);
  CHECK(
      rules().run(layer_norm("0, 2", "0, 2", "[3]", scale_shift), {}, raise()).count("LayerNormalization") ==
      0);
  CHECK(rules()
            .run(layer_norm("0, 1, 2", "0, 1, 2", "[3]", scale_shift), {}, raise())
            .count("LayerNormalization") == 0);
  const auto r = rules().run(layer_norm("1", "1", "[3]", scale_shift), {}, raise());
  REQUIRE(r.why("LayerNormDecomposed", TN_REASON_GUARD));
  CHECK(r.why("LayerNormDecomposed", TN_REASON_GUARD)->hint ==
        "both means must reduce the same trailing axes");
}

TEST_CASE("A normalisation in float64 stays as it is: the operator's epsilon is a float32") {
  const auto in_double = [](std::string text) {
    for (size_t at = 0; (at = text.find("float32", at)) != std::string::npos;) text.replace(at, 7, "float64");
    return text;
  };
  const std::string text = layer_norm("-1", "-1", "[3]", scale_shift);
  CHECK(rules().run(text, {}, raise()).count("LayerNormalization") == 1);
  CHECK(rules().run(in_double(text), {}, raise()).count("LayerNormalization") == 0);
  const std::string rms = R"(graph "g" {
  opset "" 28
  const %two: float32[] = [2.0]
  const %eps: float32[] = [1e-06]
  const %a: int64[1] = [-1]
  const %g: float32[8] = uniform [2.0]
  input %x: float32[N,8]
  %sq = Pow(%x, %two)
  %ms = ReduceMean(%sq, %a)
  %ve = Add(%ms, %eps)
  %sd = Sqrt(%ve)
  %n = Div(%x, %sd)
  %y = Mul(%n, %g)
  output %y as "y"
})";
  CHECK(rules().run(rms, {}, raise()).count("RMSNormalization") == 1);
  CHECK(rules().run(in_double(rms), {}, raise()).count("RMSNormalization") == 0);
}

TEST_CASE("On data of rank 1, scale and normalised value are told apart by who they are") {
  const auto r = rules().run(R"(graph "g" {
  opset "" 28
  const %two: float32[] = [2.0]
  const %eps: float32[] = [1e-05]
  const %a: int64[1] = [-1]
  const %g: float32[6] = uniform [2.0]
  const %b: float32[6] = uniform [0.5]
  input %x: float32[6]
  %mu = ReduceMean(%x, %a)
  %d = Sub(%x, %mu)
  %sq = Pow(%d, %two)
  %va = ReduceMean(%sq, %a)
  %ve = Add(%va, %eps)
  %sd = Sqrt(%ve)
  %nm = Div(%d, %sd)
  %gm = Mul(%g, %nm)
  %y = Add(%b, %gm)
  output %y as "y"
})",
                             {}, raise());
  REQUIRE(r.nodes() == 1);
  const tn_node n = r.graph->nodes(0)[0];
  CHECK(r.graph->name(r.graph->node(n).input(1)) == "g");
  CHECK(r.graph->name(r.graph->node(n).input(2)) == "b");
}

TEST_CASE("RMSNormalization as llama spells it") {
  const auto r = rules().run(R"(graph "g" {
  opset "" 28
  const %two: float32[] = [2.0]
  const %one: float32[] = [1.0]
  const %eps: float32[] = [1e-06]
  const %a: int64[1] = [-1]
  const %g: float32[8] = uniform [2.0]
  input %x: float32[N,S,8]
  %sq = Pow(%x, %two)
  %ms = ReduceMean(%sq, %a)
  %ve = Add(%ms, %eps)
  %sd = Sqrt(%ve)
  %rs = Div(%one, %sd)
  %n = Mul(%x, %rs)
  %z = Mul(%g, %n)
  output %z as "z"
})",
                             {}, raise());
  INFO(r.text());
  CHECK(r.nodes() == 1);
  CHECK(r.count("RMSNormalization") == 1);
}

TEST_CASE("Attention with a soft mask keeps the mask as it is; a mask that widens the scores does not fuse") {
  const std::string head = R"(graph "g" {
  opset "" 28
  const %sc: float32[] = [2.0]
  input %q: float32[B,2,S,4]
  input %k: float32[B,2,S,4]
  input %v: float32[B,2,S,4]
  input %mask: float32[B,2,S,S]
  input %big: float32[5,B,2,S,S]
  %kt = Transpose(%k) {perm = [0, 1, 3, 2]}
  %qk = MatMul(%q, %kt)
  %qs = Div(%qk, %sc)
)";
  const auto r = rules().run(
      head +
      "  %qm = Add(%qs, %mask)\n  %p = Softmax(%qm)\n  %o = MatMul(%p, %v)\n  output %o as \"o\"\n}\n");
  INFO(r.text());
  REQUIRE(r.nodes() == 1);
  const tn_node n = r.graph->nodes(0)[0];
  CHECK(r.graph->op_name(n) == "tenon::SDPA");
  CHECK(r.graph->name(r.graph->node(n).input(3)) == "mask");
  const auto wide = rules().run(
      head + "  %qm = Add(%qs, %big)\n  %p = Softmax(%qm)\n  %o = MatMul(%p, %v)\n  output %o as \"o\"\n}\n");
  CHECK(wide.applied("SdpaCore") == 0);
  const auto other_axis = rules().run(head +
                                      "  %qm = Add(%qs, %mask)\n  %p = Softmax(%qm) {axis = 1}\n  %o = "
                                      "MatMul(%p, %v)\n  output %o as \"o\"\n}\n");
  CHECK(other_axis.applied("SdpaCore") == 0);
}

TEST_CASE("MatMul with bias: readers of the sum still find it, readers of the product keep it apart") {
  const std::string head = R"(graph "g" {
  opset "" 28
  const %w: float32[4,5] = uniform [0.5]
  const %b: float32[5] = uniform [0.5]
  const %rows: float32[3,1] = uniform [0.5]
  input %x: float32[3,4]
  %m = MatMul(%x, %w)
)";
  const auto sum = rules().run(head +
                               "  %s = Add(%b, %m)\n  %r1 = Relu(%s)\n  %r2 = Neg(%s)\n  output %s as "
                               "\"s\"\n  output %r1 as \"r1\"\n  output %r2 as \"r2\"\n}\n");
  CHECK(sum.count("tenon::FusedMatMul") == 1);
  CHECK(sum.count("MatMul") == 0);
  CHECK(sum.graph->output_name(0, 0) == "s");
  const auto product = rules().run(
      head + "  %s = Add(%b, %m)\n  %r = Neg(%m)\n  output %s as \"s\"\n  output %r as \"r\"\n}\n");
  CHECK(product.count("MatMul") == 1);
  CHECK(product.why("MatMulBias", TN_REASON_ESCAPE));
  const auto rows = rules().run(head + "  %s = Add(%m, %rows)\n  output %s as \"s\"\n}\n");
  CHECK(rows.count("tenon::FusedMatMul") == 0);
  CHECK(rows.why("MatMulBias", TN_REASON_SHAPE));
  const auto act = rules().run(head + "  %s = Add(%m, %b)\n  %t = Tanh(%s)\n  output %t as \"t\"\n}\n");
  CHECK(act.nodes() == 1);
  CHECK(act.applied("MatMulBiasAct") == 1);
}

TEST_CASE("SkipLayerNorm yields the sum where it is read") {
  const std::string head = R"(graph "g" {
  opset "" 28
  const %g: float32[8] = uniform [0.5]
  input %x: float32[N,S,8]
  input %y: float32[N,S,8]
  %u = Add(%x, %y)
  %z = LayerNormalization(%u, %g)
)";
  const auto alone = rules().run(head + "  output %z as \"z\"\n}\n");
  REQUIRE(alone.nodes() == 1);
  CHECK(alone.graph->node(alone.graph->nodes(0)[0]).output_count == 1);
  const auto both = rules().run(head + "  %n = Neg(%u)\n  output %z as \"z\"\n  output %n as \"n\"\n}\n");
  INFO(both.text());
  CHECK(both.nodes() == 2);
  CHECK(both.count("tenon::SkipLayerNorm") == 1);
}
