// fold_profiled: constants behind a guard. The graph has to be right for inputs that are the sample's and for
// others.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/text_form.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/runtime/eval.hpp"
#include "core/runtime/session.hpp"
#include "tests/support/test_paths.hpp"

using namespace tenon;

namespace {

struct Given {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<int64_t> integers;
  std::vector<float> reals;
  tn_tensor tensor() {
    return reals.empty() ? tn_tensor{TN_INT64, static_cast<int32_t>(dims.size()), dims.data(),
                                     integers.data(), integers.size() * 8}
                         : tn_tensor{TN_FLOAT32, static_cast<int32_t>(dims.size()), dims.data(), reals.data(),
                                     reals.size() * 4};
  }
};

struct Folded {
  std::string ops, why;
  uint64_t applied = 0;
  std::vector<std::vector<float>> results;  // for each set of inputs
};

// Folds the values with the first set of inputs, then runs every set.
Folded fold(const std::string& body, const std::string& values, std::vector<std::vector<Given>> sets,
            const std::string& passes = R"([{"pass": "fold_profiled", "options": {"values": "$"}}])") {
  set_install_root(test::build_dir());
  Diagnostics findings;
  std::string pipeline = passes;
  if (const size_t at = pipeline.find('$'); at != std::string::npos) pipeline.replace(at, 1, values);
  auto parsed = parse_manifest(
      "test.json",
      R"({"schema": "tenon.pipeline/1", "plugins": ["ops", "fusion"], "rules": [], "pipeline": )" + pipeline +
          "}",
      ".", {}, findings);
  findings.throw_if_errors(2);
  EngineOptions options;
  options.explain = true;
  options.verify_graph = true;
  Engine engine(*parsed, options);
  Evaluator evaluator(engine.host(), engine.registries());
  auto graph = parse("graph \"g\" {\n  opset \"\" 28\n" + body + "}\n", &engine.registries(), findings);
  findings.throw_if_errors(2);
  infer_graph(*graph, findings);
  findings.throw_if_errors(2);
  std::vector<tn_tensor> samples;
  for (auto& g : sets[0]) samples.push_back(g.tensor());
  OptimizeReport report;
  engine.optimize(*graph, report, samples);
  Folded out;
  for (const tn_node n : graph->nodes(0))
    out.ops += (out.ops.empty() ? "" : " ") + std::string(graph->op_name(n));
  if (const auto at = report.rules.find("fold_profiled"); at != report.rules.end())
    out.applied = at->second.applied;
  for (const auto& r : report.records)
    if (r.who == "fold_profiled") out.why += r.got;
  INFO(print(*graph));
  const Session session(std::move(graph), engine.registries(), {});
  for (auto& set : sets) {
    std::vector<NamedTensor> inputs;
    for (auto& g : set) inputs.push_back({g.name, g.tensor(), nullptr});
    const auto outputs = session.run(inputs);
    const tn_tensor t = outputs.at(0).tensor();
    out.results.emplace_back(static_cast<const float*>(t.data),
                             static_cast<const float*>(t.data) + t.bytes / 4);
  }
  return out;
}

const char* const masked = R"(  const %one: float32[] = [1.0]
  const %big: float32[] = [-1000.0]
  input %mask: int64[2,3]
  input %x: float32[2,3]
  %f = Cast(%mask) {to = 1}
  %i = Sub(%one, %f)
  %m = Mul(%i, %big)
  %y = Add(%x, %m)
  output %y as "y"
)";

}  // namespace

TEST_CASE("A value that a constant input makes is a constant, and right for every other input") {
  const std::vector<float> x{1, 2, 3, 4, 5, 6};
  const auto r = fold(masked, "m",
                      {{{"mask", {2, 3}, {1, 1, 0, 1, 1, 1}, {}}, {"x", {2, 3}, {}, x}},
                       {{"mask", {2, 3}, {1, 0, 0, 1, 1, 1}, {}}, {"x", {2, 3}, {}, x}}});
  INFO(r.ops << " " << r.why);
  CHECK(r.applied == 1);
  CHECK(r.ops == "Equal Cast ReduceMin Cast If Add");
  CHECK(r.results[0] == std::vector<float>{1, 2, -997, 4, 5, 6});
  CHECK(r.results[1] == std::vector<float>{1, -998, -997, 4, 5, 6});
}

TEST_CASE("Where the shape may change, it is compared before the contents") {
  std::string body = masked;
  for (size_t at; (at = body.find("[2,3]")) != std::string::npos;) body.replace(at, 5, "[N,3]");
  const auto r = fold(body, "m",
                      {{{"mask", {1, 3}, {1, 1, 0}, {}}, {"x", {1, 3}, {}, {1, 2, 3}}},
                       {{"mask", {2, 3}, {1, 1, 0, 1, 1, 0}, {}}, {"x", {2, 3}, {}, {1, 2, 3, 4, 5, 6}}}});
  INFO(r.ops << " " << r.why);
  CHECK(r.results[0] == std::vector<float>{1, 2, -997});
  CHECK(r.results[1] == std::vector<float>{1, 2, -997, 4, 5, -994});
}

TEST_CASE("What cannot be guarded is left, with the reason") {
  const std::vector<float> x{0, 2, 3, 4, 5, 6};
  const std::vector<std::vector<Given>> sets{
      {{"mask", {2, 3}, {1, 1, 0, 1, 1, 1}, {}}, {"x", {2, 3}, {}, x}}};
  const auto zero = fold(masked, "y", sets);
  CHECK(zero.ops == "Cast Sub Mul Add");
  CHECK(zero.why.find("input 'x' holds zeros") == 0);
  CHECK(fold(masked, "nothing", sets).why == "no node of the main graph yields 'nothing'");
}
