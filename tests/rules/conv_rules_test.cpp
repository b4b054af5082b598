// The built-in rules of convolutions: where they fire, and the look-alikes where they must not.
#include <catch2/catch.hpp>
#include <cmath>

#include "rule_harness.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

const std::string conv_head = R"(graph "g" {
  opset "" 28
  const %w: float32[4,3,1,1] = uniform [0.5]
  const %b: float32[4] = [0.1, 0.2, 0.3, 0.4]
  const %g: float32[4] = [1.0, 2.0, 3.0, 4.0]
  const %m: float32[4] = [0.5, 0.25, 0.0, -1.0]
  const %v: float32[4] = [1.0, 0.5, 2.0, 1.5]
  const %kw: float32[4] = [1.0, 2.0, 3.0, 4.0]
  const %kh: float32[4,1] = [1.0, 2.0, 3.0, 4.0]
  const %kc: float32[4,1,1] = [1.0, 2.0, 3.0, 4.0]
  const %kn: float32[2,1,1,1] = [1.0, 2.0]
  const %full: float32[2,4,4,4] = uniform [0.5]
  const %plane: float32[4,4] = uniform [0.5]
  const %zero: float32[] = [0.0]
  const %six: float32[] = [6.0]
  input %x: float32[2,3,4,4]
  input %r: float32[2,4,4,4]
  input %bound: float32[]
)";

RuleRun fuse(const std::string& body) { return rules().run(conv_head + body + "}\n"); }

}  // namespace

TEST_CASE("Conv, BatchNormalization, Relu becomes one FusedConv with folded weights and a body") {
  const auto r = fuse(R"(
  %c = Conv(%x, %w)
  %y = BatchNormalization(%c, %g, %b, %m, %v) {epsilon = 0.0}
  %z = Relu(%y)
  output %z as "z"
)");
  REQUIRE(r.status == TN_OK);
  CHECK(r.nodes() == 1);
  CHECK(r.count("tenon::FusedConv") == 1);
  CHECK(r.applied("ConvBnAct") == 1);
  const tn_node f = r.graph->nodes(0)[0];
  REQUIRE(r.graph->node(f).regions().size() == 1);
  CHECK(r.graph->region_name(r.graph->node(f).regions()[0]) == "body");
  CHECK(r.graph->region(r.graph->node(f).regions()[0]).node_count == 2);
  REQUIRE(r.graph->node(f).input_count == 3);
  tn_tensor w2{}, b2{};
  REQUIRE(r.graph->constant(r.graph->node(f).input(1), &w2));
  REQUIRE(r.graph->constant(r.graph->node(f).input(2), &b2));
  const auto* wf = static_cast<const float*>(w2.data);
  const auto* bf = static_cast<const float*>(b2.data);
  CHECK(wf[0] == Approx(0.5));  // 0.5 * 1 / sqrt(1)
  CHECK(wf[3] == Approx(0.5 * 2.0 / std::sqrt(0.5)));
  CHECK(bf[0] == Approx(0.1 - 0.5));  // (0 - m) * s + b
  CHECK(bf[3] == Approx(0.4 + 4.0 / std::sqrt(1.5)));
}

TEST_CASE("A BatchNormalization whose convolution has another reader stays") {
  const auto r = fuse(R"(
  %c = Conv(%x, %w)
  %y = BatchNormalization(%c, %g, %b, %m, %v)
  %z = Sin(%c)
  output %y as "y"
  output %z as "z"
)");
  CHECK(r.count("BatchNormalization") == 1);
  CHECK(r.applied("ConvBn") == 0);
  const auto* why = r.why("ConvBn", TN_REASON_ESCAPE);
  REQUIRE(why);
  CHECK(why->expr.find("'c'") != std::string::npos);
  CHECK(why->got.find("also read by") != std::string::npos);
}

TEST_CASE("A BatchNormalization whose convolution is a graph output stays") {
  const auto r = fuse(R"(
  %c = Conv(%x, %w)
  %y = BatchNormalization(%c, %g, %b, %m, %v)
  %z = Relu(%y)
  output %z as "z"
  output %c as "c"
)");
  CHECK(r.count("BatchNormalization") == 1);
  REQUIRE(r.why("ConvBnAct", TN_REASON_ESCAPE));
  CHECK(r.why("ConvBnAct", TN_REASON_ESCAPE)->got.find("output of the graph") != std::string::npos);
}

TEST_CASE("A BatchNormalization in training mode stays") {
  const auto r = fuse(R"(
  %c = Conv(%x, %w)
  %y, %rm, %rv = BatchNormalization(%c, %g, %b, %m, %v) {training_mode = 1}
  output %y as "y"
  output %rm as "rm"
  output %rv as "rv"
)");
  CHECK(r.count("BatchNormalization") == 1);
  CHECK(r.applied("ConvBn") == 0);
}

TEST_CASE("A variance that is not positive keeps BatchNormalization, with the reason") {
  const auto r = rules().run(R"(graph "g" {
  opset "" 28
  const %w: float32[1,1,1,1] = [0.5]
  const %one: float32[1] = [1.0]
  const %v: float32[1] = [-1.0]
  input %x: float32[1,1,4,4]
  %c = Conv(%x, %w)
  %y = BatchNormalization(%c, %one, %one, %one, %v)
  output %y as "y"
})");
  CHECK(r.count("BatchNormalization") == 1);
  const auto* why = r.why("ConvBn", TN_REASON_GUARD);
  REQUIRE(why);
  CHECK(why->expr == "where[0]: all(v + bn.epsilon > 0)");
  CHECK(why->hint == "BatchNormalization variance + epsilon is not positive");
}

TEST_CASE("Weights that are an input of the graph are not folded") {
  const auto r = rules().run(R"(graph "g" {
  opset "" 28
  const %one: float32[1] = [1.0]
  input %x: float32[1,1,4,4]
  input %w: float32[1,1,1,1]
  %c = Conv(%x, %w)
  %y = BatchNormalization(%c, %one, %one, %one, %one)
  output %y as "y"
})");
  CHECK(r.count("BatchNormalization") == 1);
  REQUIRE(r.why("ConvBn", TN_REASON_CONST));
  CHECK(r.why("ConvBn", TN_REASON_CONST)->got == "it is an input of the graph");
}

TEST_CASE("Shared weights are folded into a copy") {
  const auto r = fuse(R"(
  %c = Conv(%x, %w)
  %y = BatchNormalization(%c, %g, %b, %m, %v)
  %d = Conv(%x, %w)
  output %y as "y"
  output %d as "d"
)");
  CHECK(r.count("Conv") == 2);
  CHECK(r.count("BatchNormalization") == 0);
  const tn_value w = r.graph->find_value("w");
  REQUIRE(w != TN_NONE);
  CHECK(r.graph->users(w).size() == 1);  // the second convolution still reads the plain weights
}

TEST_CASE("The residual block of ResNet becomes three convolutions") {
  const auto r = rules().run(R"(graph "g" {
  opset "" 28
  const %w: float32[4,4,3,3] = uniform [0.5]
  const %p: float32[4] = [1.0, 2.0, 3.0, 4.0]
  input %x: float32[N,4,8,8]
  %c1 = Conv(%x, %w) {pads = [1, 1, 1, 1]}
  %b1 = BatchNormalization(%c1, %p, %p, %p, %p)
  %r1 = Relu(%b1)
  %c2 = Conv(%r1, %w) {pads = [1, 1, 1, 1]}
  %b2 = BatchNormalization(%c2, %p, %p, %p, %p)
  %c3 = Conv(%x, %w) {pads = [1, 1, 1, 1]}
  %b3 = BatchNormalization(%c3, %p, %p, %p, %p)
  %s = Add(%b2, %b3)
  %z = Relu(%s)
  output %z as "z"
})");
  CHECK(r.nodes() == 3);
  CHECK(r.count("tenon::FusedConv") == 2);
  CHECK(r.count("Conv") == 1);
  CHECK(r.applied("ConvAddAct") == 1);
}

TEST_CASE("Only a summand of the result's own shape is a residual") {
  const auto r = fuse(R"(
  %c0 = Conv(%x, %w, %b)
  %y0 = Add(%c0, %full)
  %c1 = Conv(%x, %w, %b)
  %y1 = Add(%plane, %c1)
  %c2 = Conv(%x, %w, %b)
  %y2 = Add(%c2, %r)
  output %y0 as "y0"
  output %y1 as "y1"
  output %y2 as "y2"
)");
  CHECK(r.applied("ConvAdd") == 2);
  CHECK(r.count("Add") == 1);
  REQUIRE(r.why("ConvAdd", TN_REASON_GUARD));
}

TEST_CASE("Constants along width, height or batch are no constants per channel") {
  const auto r = fuse(R"(
  %c0 = Conv(%x, %w, %b)
  %y0 = Mul(%c0, %kw)
  %c1 = Conv(%x, %w, %b)
  %y1 = Add(%c1, %kw)
  %c2 = Conv(%x, %w, %b)
  %y2 = Mul(%c2, %kh)
  %c3 = Conv(%x, %w, %b)
  %y3 = Add(%c3, %kc)
  %c4 = Conv(%x, %w, %b)
  %y4 = Mul(%c4, %kn)
  %c5 = Conv(%x, %w, %b)
  %y5 = Sub(%kw, %c5)
  output %y0 as "y0"
  output %y1 as "y1"
  output %y2 as "y2"
  output %y3 as "y3"
  output %y4 as "y4"
  output %y5 as "y5"
)");
  CHECK(r.applied("ConvAddBias") == 1);
  CHECK(r.applied("ConvMulChannel") == 0);
  CHECK(r.count("Mul") == 3);
  CHECK(r.count("Add") == 1);
  CHECK(r.count("Sub") == 1);
}

TEST_CASE("Clip with constant bounds joins the convolution, with a computed bound it does not") {
  const auto r = fuse(R"(
  %c = Conv(%x, %w, %b)
  %y = Clip(%c, %zero, %six)
  %d = Conv(%x, %w, %b)
  %z = Clip(%d, %zero, %bound)
  output %y as "y"
  output %z as "z"
)");
  CHECK(r.applied("ConvClip") == 1);
  CHECK(r.count("Clip") == 1);
  REQUIRE(r.why("ConvClip", TN_REASON_CONST));
  for (const tn_node n : r.graph->nodes(0)) {
    if (r.graph->op_name(n) != "tenon::FusedConv") continue;
    const auto sym = [&](const char* s) {
      for (const auto& a : r.graph->node(n).attrs()) {
        const tn_str t = graph_api()->symbol_text(a.name);
        if (std::string(t.data, t.size) == s) return &a;
      }
      return static_cast<const tn_attr*>(nullptr);
    };
    REQUIRE(sym("beta"));
    CHECK(sym("beta")->u.f == 6.0);
    REQUIRE(sym("alpha"));
    CHECK(sym("alpha")->u.f == 0.0);
  }
}

TEST_CASE("Rules match inside the regions of If, and not inside bodies of fused nodes") {
  const std::string text = R"(graph "g" {
  opset "" 28
  const %w: float32[4,3,1,1] = uniform [0.5]
  input %x: float32[2,3,4,4]
  input %p: bool[]
  %t = If(%p) {
    region "then_branch" {
      %c = Conv(%x, %w)
      %y = Relu(%c)
      output %y as "y"
    }
    region "else_branch" {
      %d = Conv(%x, %w)
      output %d as "y"
    }
  }
  output %t as "t"
})";
  const auto r = rules().run(text);
  CHECK(r.applied("ConvAct") == 1);
  CHECK(r.graph->live_node_count() == 5);  // If, FusedConv, its body of two, Conv
}

TEST_CASE("A Conv inside a branch and its Relu outside are two graphs") {
  const auto r = rules().run(R"(graph "g" {
  opset "" 28
  const %w: float32[4,3,1,1] = uniform [0.5]
  input %x: float32[2,3,4,4]
  input %p: bool[]
  %c = Conv(%x, %w)
  %t = If(%p) {
    region "then_branch" {
      %y = Relu(%c)
      output %y as "y"
    }
    region "else_branch" {
      %d = Neg(%x)
      output %d as "y"
    }
  }
  output %t as "t"
})");
  CHECK(r.applied("ConvAct") == 0);
}

TEST_CASE("Scale and shift behind a folded convolution go in too") {
  const auto r = fuse(R"(
  %c = Conv(%x, %w)
  %n = BatchNormalization(%c, %g, %b, %m, %v)
  %s = Mul(%n, %kc)
  %t = Add(%s, %kc)
  %z = Relu(%t)
  output %z as "z"
)");
  CHECK(r.nodes() == 1);
  CHECK(r.count("tenon::FusedConv") == 1);
}
