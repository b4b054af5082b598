// What a node costs besides its kernel: a chain of nodes that add 1 to one number, run by a session and
// called one after the other by hand. Both in one turn, in pairs, the least of each: this machine has other
// work to do.
//   overhead_ns   a node, above the direct call
//   run_us        a run of the session, all in all
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/text_form.hpp"
#include "core/runtime/session.hpp"

using namespace tenon;

namespace {

__attribute__((noinline)) int add_one(const tn_kernel_args* args, uint32_t, uint32_t) {
  static_cast<float*>(args->outputs[0])[0] = static_cast<const float*>(args->inputs[0])[0] + 1;
  return 0;
}

tn_status infer(void*, const tn_infer_api* api, tn_infer* call) {
  return api->set_output(call, 0, api->input_type(call, 0));
}

tn_status plan(void*, const tn_plan_view*, tn_planned* planned, const tn_diag*) {
  planned->fn = add_one;
  planned->tiles = 1;
  return TN_OK;
}

const void* interface_of(const char* id) {
  static const tn_param_def x[] = {{to_abi("X"), to_abi("T"), 0, 0}},
                            y[] = {{to_abi("Y"), to_abi("T"), 0, 0}};
  static const tn_type_var any[] = {{to_abi("T"), nullptr, 0, 0}};
  static const tn_op_def op = [] {
    tn_op_def def{};
    def.size = sizeof def;
    def.since_version = def.first_version = 1;
    def.domain = to_abi("t");
    def.name = to_abi("AddOne");
    def.inputs = x;
    def.outputs = y;
    def.type_vars = any;
    def.input_count = def.output_count = def.type_var_count = def.min_inputs = def.min_outputs = 1;
    def.infer = infer;
    return def;
  }();
  static const tn_kernel_record kernel = [] {
    tn_kernel_record record{};
    record.size = sizeof record;
    record.id = to_abi("t.add-one/1");
    record.op = to_abi("t::AddOne");
    record.device = to_abi("cpu");
    record.plan = plan;
    return record;
  }();
  static const tn_op_def* const ops[] = {&op};
  static const tn_op_list op_list = {sizeof(tn_op_list), 1, ops};
  static const tn_kernel_record* const kernels[] = {&kernel};
  static const tn_kernel_list kernel_list = {sizeof(tn_kernel_list), 1, kernels};
  if (std::string_view(id) == TN_OPS_ID) return &op_list;
  if (std::string_view(id) == TN_KERNELS_ID) return &kernel_list;
  return nullptr;
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void dispatch(benchmark::State& state) {
  Registries registries;
  Diagnostics found;
  tn_plugin plugin{};
  plugin.name = to_abi("bench");
  plugin.get_interface = &interface_of;
  registries.add_plugin(plugin, nullptr, found);

  const auto count = static_cast<size_t>(state.range(0));
  std::string text = "graph \"chain\" {\n  opset \"t\" 1\n  input %v0: float32[1]\n";
  for (size_t i = 0; i < count; ++i) text += fmt::format("  %v{} = t::AddOne(%v{})\n", i + 1, i);
  std::unique_ptr<Graph> graph =
      parse(text + fmt::format("  output %v{} as \"y\"\n}}\n", count), &registries, found);
  infer_graph(*graph, found);
  RuntimeOptions options;
  options.threads = 1;
  const Session session(std::move(graph), registries, options);
  float x = 1, y = 0;
  const int64_t one = 1;
  const std::vector<NamedTensor> given = {{"v0", {TN_FLOAT32, 1, &one, &x, sizeof x}, nullptr}};
  const std::vector<OutputBuffer> wanted = {{"y", &y, sizeof y}};
  session.run(given, wanted);
  if (y != static_cast<float>(count) + 1) state.SkipWithError("the chain gives another number");

  std::vector<float> values(count + 1, 1.0F);
  std::vector<void*> pointers(count + 1);
  std::vector<tn_kernel_args> args(count);
  for (size_t i = 0; i <= count; ++i) pointers[i] = &values[i];
  for (size_t i = 0; i < count; ++i) {
    args[i].inputs = pointers.data() + i;
    args[i].outputs = pointers.data() + i + 1;
  }
  double by_session = 1e9, by_hand = 1e9;
  for (auto _ : state) {
    by_session = std::min(by_session, seconds_of([&] { session.run(given, wanted); }));
    by_hand = std::min(by_hand, seconds_of([&] {
                         for (const tn_kernel_args& call : args)
                           benchmark::DoNotOptimize(add_one(&call, 0, 0));
                       }));
  }
  state.counters["overhead_ns"] = (by_session - by_hand) * 1e9 / static_cast<double>(count);
  state.counters["direct_ns"] = by_hand * 1e9 / static_cast<double>(count);
  state.counters["run_us"] = by_session * 1e6;
}
BENCHMARK(dispatch)->Arg(100)->Arg(10000);

}  // namespace
