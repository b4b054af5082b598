// What a pipeline pays for the graph itself: building, inferring, copying and editing a chain of Relu nodes.
#include <benchmark/benchmark.h>

#include "core/graph/test_ops.hpp"
#include "core/graph/text_form.hpp"

using namespace tenon;
using test::Editor;

namespace {
std::unique_ptr<Graph> chain(int64_t count) {
  auto graph = std::make_unique<Graph>();
  graph->set_registry(&test::fake_ops());
  Transaction build(*graph, "bench", TN_EDIT_BUILD);
  Editor e(build.get());
  tn_value at = e.input("x", TN_FLOAT32, {graph->symbols().named("N"), 4});
  for (int64_t i = 0; i < count; ++i)
    at = graph->node(e.node("Relu", {at}, {"v" + std::to_string(i)}, "n" + std::to_string(i))).output(0);
  e.outputs({at});
  Diagnostics found;
  build.commit(found);
  return graph;
}

void build(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(chain(state.range(0)));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
void infer(benchmark::State& state) {
  const auto graph = chain(state.range(0));
  Diagnostics found;
  for (auto _ : state) infer_graph(*graph, found);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
void clone(benchmark::State& state) {
  const auto graph = chain(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(graph->clone());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
// One rewrite a commit: a new node takes the place of an old one.
void commit(benchmark::State& state) {
  const auto graph = chain(state.range(0));
  Diagnostics found;
  infer_graph(*graph, found);
  tn_node node = 0;
  for (auto _ : state) {
    Transaction edit(*graph, "bench");
    const tn_node made =
        Editor(edit.get()).node("Relu", {graph->node(node).input(0)}, {}, {}, 0, node, {node});
    edit_api()->replace_uses(edit.get(), graph->node(node).output(0), graph->node(made).output(0));
    edit_api()->erase(edit.get(), node);
    if (!edit.commit(found)) state.SkipWithError("commit failed");
    node = graph->next_node(made);
    if (node == TN_NONE) node = graph->first_node(Graph::main_region);
  }
}
void text(benchmark::State& state) {
  const auto graph = chain(state.range(0));
  Diagnostics found;
  for (auto _ : state) benchmark::DoNotOptimize(parse(print(*graph), &test::fake_ops(), found));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
}  // namespace

BENCHMARK(build)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK(infer)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK(clone)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK(commit)->Arg(1000)->Arg(100000)->Unit(benchmark::kMicrosecond);
BENCHMARK(text)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);
