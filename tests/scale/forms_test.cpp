// Deep, wide and nested graphs through the default passes and built-in rules: the steps of matching, which do
// not depend on the machine, grow as the graph does.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "core/base/text.hpp"
#include "core/graph/edit.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/verify.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/runtime/eval.hpp"
#include "test_paths.hpp"

using namespace tenon;

namespace {

struct Program {
  Program() {
    set_install_root(test::build_dir());
    Diagnostics findings;
    auto manifest = parse_manifest("test.json",
                                   R"({"schema": "tenon.pipeline/1", "rules": ["builtin"],
                                       "plugins": ["ops", "fusion", "rules", "elementwise", "memory", "cpu"]})",
                                   ".", {}, findings);
    findings.throw_if_errors(2);
    engine = std::make_unique<Engine>(*manifest);
    evaluator = std::make_unique<Evaluator>(engine->host(), engine->registries());
  }
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Evaluator> evaluator;
};
Program& program() {
  static auto* const one = new Program;
  return *one;
}

/// Builds one graph in one transaction.
class Maker {
 public:
  Maker() : graph(std::make_unique<Graph>()) {
    graph->set_registry(&program().engine->registries());
    edit_ = std::make_unique<Transaction>(*graph, "make", TN_EDIT_BUILD);
  }
  tn_value input(const char* name, tn_dtype dtype, std::vector<tn_dim> dims, tn_region region = 0) {
    const tn_type type{TN_KIND_TENSOR, dtype, static_cast<int32_t>(dims.size()), 0, dims.data()};
    tn_value value = TN_NONE;
    REQUIRE(edit_api()->region_input(edit_->get(), region, to_abi(std::string_view(name)), &type, &value) ==
            TN_OK);
    return value;
  }
  tn_node node(const char* op, const std::vector<tn_value>& inputs, tn_region region = 0) {
    tn_attr axis{};
    axis.name = graph_api()->symbol(to_abi(std::string_view("axis")));
    axis.kind = TN_ATTR_INT;
    tn_node_desc desc{};
    desc.size = sizeof desc;
    desc.op = graph_api()->symbol(to_abi(std::string_view(op)));
    desc.region = region;
    desc.before = TN_NONE;
    desc.inputs = inputs.data();
    desc.input_count = static_cast<uint32_t>(inputs.size());
    desc.output_count = 1;
    if (std::string_view(op) == "Concat") desc.attrs = &axis, desc.attr_count = 1;
    tn_node made = TN_NONE;
    REQUIRE(edit_api()->create_node(edit_->get(), &desc, &made) == TN_OK);
    return made;
  }
  tn_value op(const char* name, const std::vector<tn_value>& inputs, tn_region region = 0) {
    return graph->node(node(name, inputs, region)).output(0);
  }
  tn_region region(tn_node parent, const char* name) {
    tn_region made = TN_NONE;
    REQUIRE(edit_api()->create_region(edit_->get(), parent, to_abi(std::string_view(name)), &made) == TN_OK);
    return made;
  }
  void outputs(std::vector<tn_value> values, tn_region region = 0) {
    REQUIRE(edit_api()->region_outputs(edit_->get(), region, values.data(),
                                       static_cast<uint32_t>(values.size())) == TN_OK);
  }
  /// x * sigmoid(x) and a tail: work for rules and for the fusion of element-wise nodes.
  tn_value unit(tn_value x, tn_region region = 0) {
    return op("Softmax", {op("Mul", {x, op("Sigmoid", {x}, region)}, region)}, region);
  }
  std::unique_ptr<Graph> done() {
    Diagnostics findings;
    REQUIRE(edit_->commit(findings));
    edit_.reset();
    infer_graph(*graph, findings);
    CHECK_FALSE(findings.has_errors());
    return std::move(graph);
  }
  std::unique_ptr<Graph> graph;

 private:
  std::unique_ptr<Transaction> edit_;
};

struct Work {
  uint64_t steps = 0, edits = 0, swishes = 0;
};

Work work(std::unique_ptr<Graph> graph) {
  OptimizeReport report;
  program().engine->optimize(*graph, report);
  Diagnostics broken;
  CHECK(verify(*graph, broken));
  Work done;
  for (const auto& [rule, cost] : report.matching) done.steps += cost.steps;
  done.edits = report.edits;
  if (const auto at = report.rules.find("SwishFromSigmoid"); at != report.rules.end())
    done.swishes = at->second.applied;
  return done;
}

/// Twice the graph, at most two and a bit times the steps.
template <class Form>
void grows_linearly(Form&& form, uint32_t count) {
  const Work half = work(form(count / 2)), whole = work(form(count));
  INFO(half.steps << " and " << whole.steps << " steps");
  CHECK(half.swishes == count / 2);
  CHECK(whole.swishes == count);
  CHECK(whole.steps <= half.steps * 22 / 10);
  CHECK(whole.edits <= half.edits * 22 / 10);
}

}  // namespace

TEST_CASE("A deep chain") {
  grows_linearly(
      [](uint32_t count) {
        Maker m;
        tn_value at = m.input("x", TN_FLOAT32, {4});
        for (uint32_t i = 0; i < count; ++i) at = m.unit(at);
        m.outputs({at});
        return m.done();
      },
      30000);
}

TEST_CASE("One value that all nodes read, and one node that reads all values") {
  grows_linearly(
      [](uint32_t count) {
        Maker m;
        const tn_value x = m.input("x", TN_FLOAT32, {4}), b = m.input("b", TN_FLOAT32, {4});
        tn_value chain = m.op("Softmax", {b});
        std::vector<tn_value> all;
        for (uint32_t i = 0; i < count; ++i) {
          // Different operands, or common subexpressions would leave one.
          chain = m.op("Softmax", {m.op("Sub", {x, chain})});
          all.push_back(m.unit(chain));
        }
        m.outputs({m.op("Concat", all)});
        return m.done();
      },
      20000);
}

TEST_CASE("A body of many nodes") {
  grows_linearly(
      [](uint32_t count) {
        Maker m;
        const tn_value x = m.input("x", TN_FLOAT32, {4}), q = m.input("q", TN_BOOL, {});
        const tn_node branch = m.node("If", {q});
        for (const char* name : {"then_branch", "else_branch"}) {
          const tn_region region = m.region(branch, name);
          tn_value at = m.op(name[0] == 't' ? "Softmax" : "Neg", {x}, region);
          for (uint32_t i = 0; i < count / 2; ++i) at = m.unit(at, region);
          m.outputs({at}, region);
        }
        m.outputs({m.graph->node(branch).output(0)});
        return m.done();
      },
      20000);
}

TEST_CASE("Bodies within bodies") {
  grows_linearly(
      [](uint32_t count) {
        Maker m;
        const tn_value x = m.input("x", TN_FLOAT32, {4}), q = m.input("q", TN_BOOL, {});
        tn_value at = m.op("Softmax", {x});
        for (uint32_t i = 0; i < count / 50; ++i) {
          const tn_node outer = m.node("If", {q});
          for (const char* name : {"then_branch", "else_branch"}) {
            tn_region region = m.region(outer, name);
            tn_value inner = m.op(name[0] == 't' ? "Softmax" : "Neg", {at}, region);
            std::vector<std::pair<tn_region, tn_node>> open;
            for (int depth = 0; depth < 25; ++depth) {
              inner = m.unit(inner, region);
              if (depth == 24) break;
              const tn_node deeper = m.node("If", {q}, region);
              open.emplace_back(region, deeper);
              const tn_region other = m.region(deeper, "else_branch");
              m.outputs({m.op("Softmax", {inner}, other)}, other);
              region = m.region(deeper, "then_branch");
            }
            m.outputs({inner}, region);
            for (size_t k = open.size(); k-- > 0;)
              m.outputs({m.graph->node(open[k].second).output(0)}, open[k].first);
          }
          at = m.op("Softmax", {m.graph->node(outer).output(0)});
        }
        m.outputs({at});
        return m.done();
      },
      10000);
}
