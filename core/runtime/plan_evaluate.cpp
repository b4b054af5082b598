#include "core/runtime/plan_evaluate.hpp"

#include "core/base/text.hpp"
#include "core/runtime/cpu_features.hpp"
#include "core/runtime/plan_context.hpp"

namespace tenon {
namespace {

struct PlannedGuard {
  tn_planned planned{};
  ~PlannedGuard() {
    if (planned.free_state != nullptr) planned.free_state(planned.state);
  }
};

void keep_failure(tn_run* run, tn_str text) {
  if (run != nullptr && run->state != nullptr) run->state->failure = string(text);
}

}  // namespace

bool evaluate_with_store(RunEnvironment& environment, RunGraph& graph, PlanStore& store, tn_node node,
                         std::vector<AnyRef>* results) {
  const Node& n = graph.graph->node(node);
  PlanContext context(environment, graph, store, node);
  Selection selection =
      select_kernel(*environment.registries, environment.options.kernels, context.view(), true);
  // A kernel that calls back needs a run.
  std::erase_if(selection.candidates, [](const Candidate& c) {
    return (c.kernel->record->flags &
            (TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_DYNAMIC_INPUT | TN_KERNEL_CONTROL_FLOW)) != 0;
  });
  PlannedGuard guard;
  tn_planned planned{};
  const KernelEntry* kernel = context.plan(selection, &planned);
  if (kernel == nullptr) return false;
  guard.planned = planned;

  const std::string place = node_place(*graph.graph, node);
  std::vector<void*> inputs(n.input_count, nullptr), outputs(n.output_count, nullptr);
  for (uint32_t i = 0; i < n.input_count; ++i) {
    tn_tensor tensor{};
    bool constant = false;
    if (n.input(i) != TN_NONE && store.known_data(n.input(i), &tensor, &constant)) inputs[i] = tensor.data;
  }
  results->assign(n.output_count, AnyRef());
  for (uint32_t i = 0; i < n.output_count; ++i) {
    if (n.output(i) == TN_NONE) continue;
    const tn_type type = store.type(n.output(i));
    (*results)[i] = new_tensor(type.dtype, {type.dims, static_cast<size_t>(type.rank)}, place);
    outputs[i] = (*results)[i]->data;
  }
  const uint64_t stride = (planned.workspace_bytes + 63) / 64 * 64;
  require_memory(stride, place, "workspace");
  const int64_t scratch_dims[] = {static_cast<int64_t>(stride)};
  const AnyRef scratch = new_tensor(TN_UINT8, scratch_dims, place);
  RunState state;
  tn_run run;
  run.state = &state;
  static const tn_run_api only_failure = [] {
    tn_run_api api{};
    api.size = offsetof(tn_run_api, fail) + sizeof api.fail;  // nothing else is there to be called
    api.fail = keep_failure;
    return api;
  }();
  const tn_kernel_args args{planned.state, inputs.data(), outputs.data(), scratch->data, stride,
                            &run,          &only_failure, n.input_count,  n.output_count};
  const FpScope fp(environment.flush_denormals);
  for (uint32_t tile = 0; tile < planned.tiles; ++tile) {
    if (planned.fn(&args, tile, 0) == 0) continue;
    throw Error(exit_job_failed, place,
                fmt::format("kernel {} failed: {}", string(kernel->record->id), state.failure));
  }
  return true;
}

}  // namespace tenon
