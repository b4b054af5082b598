// Large graphs: nothing recurses, small edits stay small, memory a node stays bounded.
#include <catch2/catch.hpp>

#include "core/graph/test_ops.hpp"
#include "core/graph/verify.hpp"

using namespace tenon;
using test::Editor;

namespace {
std::unique_ptr<Graph> chain(uint32_t count) {
  auto graph = std::make_unique<Graph>();
  graph->set_registry(&test::fake_ops());
  Transaction build(*graph, "chain", TN_EDIT_BUILD);
  Editor e(build.get());
  tn_value at = e.input("x", TN_FLOAT32, {graph->symbols().named("N"), 4});
  for (uint32_t i = 0; i < count; ++i) {
    const std::string name = "/model/layers." + std::to_string(i) + "/op";
    at = graph->node(e.node("Relu", {at}, {name + "_output_0"}, name)).output(0);
  }
  e.outputs({at});
  Diagnostics found;
  build.commit(found);
  found.throw_if_errors(1);
  return graph;
}
}  // namespace

TEST_CASE(
    "A chain of a million nodes is built, inferred, copied, rewritten and destroyed without recursion") {
  const auto graph = chain(1000000);
  CHECK(graph->live_node_count() == 1000000);
  CHECK(graph->memory_bytes() / 1000000 < 320);
  Diagnostics found;
  CHECK(infer_graph(*graph, found) == TN_OK);
  const auto copy = graph->clone();
  CHECK(verify(*copy, found));
  // A cycle through everything is found, and undone.
  Transaction edit(*copy, "cycle");
  edit_api()->set_input(edit.get(), 0, 0, copy->node(999999).output(0));
  CHECK_FALSE(edit.commit(found));
}

TEST_CASE("Ten thousand small commits on a hundred thousand nodes, each undone as one pass") {
  const auto graph = chain(100000);
  Diagnostics found;
  REQUIRE(infer_graph(*graph, found) == TN_OK);
  const Snapshot mark = graph->snapshot();
  for (uint32_t i = 0; i < 10000; ++i) {
    const tn_node node = i * 10 + 1;
    Transaction edit(*graph, "drop");
    edit_api()->replace_uses(edit.get(), graph->node(node).output(0), graph->node(node).input(0));
    edit_api()->erase(edit.get(), node);
    REQUIRE(edit.commit(found));
  }
  CHECK(graph->live_node_count() == 90000);
  CHECK(verify(*graph, found));
  graph->restore(mark);
  CHECK(graph->live_node_count() == 100000);
  CHECK(verify(*graph, found));
}

TEST_CASE("Many insertions at one place find room in the order") {
  const auto graph = chain(100);
  Transaction edit(*graph, "insert");
  Editor e(edit.get());
  const tn_value x = graph->find_value("x");
  tn_node before = 50;
  for (int i = 0; i < 20000; ++i) {
    const tn_node made = e.node("Relu", {x}, {}, {}, 0, before);
    if (i % 2) before = made;
  }
  Diagnostics found;
  CHECK(edit.commit(found));
  CHECK(verify(*graph, found));
  CHECK(graph->nodes(0).size() == 20100);
}

TEST_CASE("A value with a hundred thousand users loses them one by one in linear time") {
  Graph graph;
  graph.set_registry(&test::fake_ops());
  Transaction build(graph, "star", TN_EDIT_BUILD);
  Editor e(build.get());
  const tn_value x = e.input("x", TN_FLOAT32, {4});
  for (int i = 0; i < 100000; ++i) e.node("Relu", {x}, {"y" + std::to_string(i)});
  Diagnostics found;
  REQUIRE(build.commit(found));
  Transaction edit(graph, "dce");
  for (tn_node node = 0; node < 100000; ++node) edit_api()->erase(edit.get(), node);
  CHECK(edit.commit(found));
  CHECK(graph.users(x).empty());
  CHECK(verify(graph, found));
}
