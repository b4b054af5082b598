// Any bytes as a rule file: findings with their places, or rules that go over a graph of the patterns rules
// are about, and leave it sound whatever they say.
#include <tenon/abi/rule_engine.h>

#include "core/base/text.hpp"
#include "core/graph/text_form.hpp"
#include "core/pipeline/pass_manager.hpp"
#include "fuzz_support.hpp"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

constexpr std::string_view graph_text = R"graph(graph "patterns" {
  opset "" 28
  input %x: float32[1,2,4,4]
  input %y: float32[N,4]
  const %w: float32[2,2,1,1] = [0.5, -1, 2, 0.25]
  const %b: float32[2] = [1, -1]
  const %s: float32[2] = [1.5, 0.5]
  const %v: float32[2] = [1, 2]
  const %m: float32[4,4] = uniform [0.5]
  const %n: float32[4] = [1, 2, 3, 4]
  const %half: float32[] = [0.5]
  const %one: float32[] = [1]
  const %two: float32[] = [2]
  const %root: float32[] = [1.4142135]
  const %tiny: float32[] = [1e-05]
  const %low: float32[] = [-0.5]
  const %last: int64[1] = [-1]
  %c1 = Conv(%x, %w, %b) {kernel_shape = [1,1]}
  %n1 = BatchNormalization(%c1, %s, %b, %b, %v) {epsilon = 1e-05}
  %r1 = Relu(%n1)
  %c2 = Conv(%r1, %w) {kernel_shape = [1,1]}
  %a2 = Add(%c2, %r1)
  %r2 = Relu(%a2)
  %c3 = Conv(%r2, %w, %b)
  %k3 = Clip(%c3, %low, %one)
  %g3 = Sigmoid(%k3)
  %p3 = Mul(%k3, %g3)
  %d1 = MatMul(%y, %m)
  %d2 = Add(%d1, %n)
  %e1 = Div(%d2, %root)
  %e2 = Erf(%e1)
  %e3 = Add(%e2, %one)
  %e4 = Mul(%d2, %e3)
  %e5 = Mul(%e4, %half)
  %l1 = ReduceMean(%e5, %last)
  %l2 = Sub(%e5, %l1)
  %l3 = Pow(%l2, %two)
  %l4 = ReduceMean(%l3, %last)
  %l5 = Add(%l4, %tiny)
  %l6 = Sqrt(%l5)
  %l7 = Div(%l2, %l6)
  %l8 = Mul(%l7, %n)
  %l9 = Add(%l8, %n)
  %q1 = MatMul(%l9, %m)
  %q2 = Transpose(%q1) {perm = [1,0]}
  %q3 = MatMul(%q1, %q2)
  %q4 = Softmax(%q3) {axis = -1}
  %q5 = MatMul(%q4, %l9)
  %f1 = Gemm(%q5, %m, %n)
  %f2 = Tanh(%f1)
  %f3 = Cast(%f2) {to = 1}
  %f4 = Reshape(%f3, %last)
  output %p3 as "images"
  output %f4 as "rows"
  output %e4 as "also"
}
)graph";

struct Target {
  Engine& engine = make_engine({"ops", "rules"});
  std::unique_ptr<Graph> graph;

  Target() {
    Diagnostics findings;
    graph = parse(graph_text, &engine.registries(), findings);
    if (!graph) broken("the graph of the target cannot be read", findings.first_error());
  }

  void one(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const tn_rule_source source{to_abi("rules.json"), to_abi(text), 0, 0};
    const RuleEngineEntry* rules = engine.registries().rule_engine();
    Diagnostics findings;
    const tn_status status = rules->record->check(
        rules->instance, &source, 1, 0, [](void*, const tn_rule_info*) {}, nullptr, findings.abi());
    for (const Diagnostic& finding : findings.all()) {
      if (finding.text.empty()) broken("a finding without a text", to_string(finding));
      if (finding.severity >= TN_SEVERITY_PLUGIN_MISBEHAVING)
        broken("the input is blamed on us", to_string(finding));
    }
    if ((status == TN_OK) == findings.has_errors()) broken("a status that does not fit the findings", text);
    if (status != TN_OK) return;

    const Switches switches;
    const PassManager passes(engine.host(), engine.registries(), switches, {&source, 1});
    Diagnostics said;
    const std::vector<PreparedPass> prepared = passes.prepare(
        {{"raise", {{"max_rounds", 3}}, "fuzz"}, {"fuse", {{"max_rounds", 3}}, "fuzz"}}, false, said);
    if (said.has_errors()) broken("the passes are refused", said.first_error());
    const std::unique_ptr<Graph> copy = graph->clone();
    OptimizeReport report;
    PassOptions options;
    options.edit_limit = 64;
    try {
      passes.run(*copy, prepared, options, report, said);
    } catch (const Error& error) {
      require_explained(error);
    }
    require_sound(*copy, "after the rules");
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const target = new Target;
  target->one(data, size);
  return 0;
}
