#include "core/runtime/plan_context.hpp"

#include "core/base/text.hpp"
#include "core/graph/interner.hpp"
#include "core/runtime/cpu_features.hpp"

namespace tenon {
namespace {

using Fill = tn_status (*)(void*, const tn_tensor*, void*);

tn_status packed(tn_plan_ctx* context, uint32_t input, tn_str layout_key, uint64_t bytes, Fill fill,
                 void* fill_context, const void** blob) {
  try {
    RunGraph& graph = *context->graph;
    const tn_value value = graph.graph->node(context->node).input(input);
    tn_tensor source{};
    bool constant = false;
    if (value == TN_NONE || !context->store->known_data(value, &source, &constant) || !constant)
      return TN_ERR_INVALID;
    const std::string place = node_place(*graph.graph, context->node);
    auto known = graph.identities.find(value);
    if (known == graph.identities.end() || !graph.graph->is_constant(value)) {
      known = graph.identities.insert_or_assign(value, content_identity(source)).first;
    }
    std::shared_ptr<const PackedBlob> made;
    const tn_status status = packed_constant(
        known->second, view(layout_key), bytes, place,
        [&](void* dst) { return fill(fill_context, &source, dst); }, &made);
    if (status != TN_OK) return status;
    *blob = made->memory.base;
    context->blobs.push_back(std::move(made));
    return TN_OK;
  } catch (const std::bad_alloc&) {
    return TN_ERR_MEMORY;
  } catch (const Error& error) {
    context->graph->diagnostics.warning("", error.diagnostics.front().where, error.diagnostics.front().text);
    return TN_ERR_MEMORY;
  } catch (...) {
    return TN_ERR_INTERNAL;
  }
}

struct ParallelCall {
  void (*function)(void*, uint32_t, uint32_t);
  void* context;
};

void parallel(tn_plan_ctx* context, uint32_t n, void (*function)(void*, uint32_t, uint32_t), void* c) {
  ParallelCall call{function, c};
  context->environment->pool->parallel(
      n,
      [](void* p, uint32_t tile, uint32_t worker) {
        const auto* inner = static_cast<const ParallelCall*>(p);
        inner->function(inner->context, tile, worker);
        return 0;
      },
      &call);
}

}  // namespace

tn_node_info node_info(Graph& graph, tn_node node) {
  tn_node_info info{};
  info.size = sizeof info;
  graph_api()->node(&graph, node, &info);
  return info;
}

tn_region body_of(const Graph& graph, const OpRegistry& ops, tn_node node) {
  const Node& n = graph.node(node);
  if (op_has_flag(ops, n.op, TN_OP_CONTROL_FLOW)) return TN_NONE;
  if (ops.find(n.op) == nullptr && split_op_name(graph.op_name(node)).domain.empty()) return TN_NONE;
  for (const tn_region region : n.regions()) {
    if (graph.region_name(region) == "body") return region;
  }
  return TN_NONE;
}

bool op_has_flag(const OpRegistry& ops, tn_sym op, uint32_t flag) {
  const OpEntry* entry = ops.find(op);
  return entry != nullptr && entry->def != nullptr && (entry->def->flags & flag) != 0;
}

PlanContext::PlanContext(RunEnvironment& environment, RunGraph& graph, PlanStore& store, tn_node node,
                         const OpenDevice* device)
    : info_(node_info(*graph.graph, node)), context_{&environment, &graph, &store, node, {}} {
  const Node& n = graph.graph->node(node);
  const auto fill = [&](std::span<const tn_value> values, std::vector<tn_operand>& operands, bool with_data) {
    operands.assign(values.size(), tn_operand{});
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] == TN_NONE) continue;
      tn_operand& operand = operands[i];
      operand.type = store.type(values[i]);
      operand.present = with_data && store.is_absent(values[i]) ? 0 : 1;
      tn_tensor tensor{};
      bool constant = false;
      if (with_data && store.known_data(values[i], &tensor, &constant)) {
        operand.data = tensor.data;
        operand.constant = constant ? 1 : 0;
      }
    }
  };
  fill(n.inputs(), inputs_, true);
  fill(n.outputs(), outputs_, false);
  view_.size = sizeof view_;
  view_.input_count = static_cast<uint32_t>(inputs_.size());
  view_.output_count = static_cast<uint32_t>(outputs_.size());
  view_.thread_count = environment.pool->size();
  view_.node = &info_;
  view_.inputs = inputs_.data();
  view_.outputs = outputs_.data();
  view_.cpu_features = environment.cpu_features;
  view_.precision_mode = to_abi(environment.options.precision_mode);
  view_.device = device == nullptr ? to_abi(environment.options.kernels.device)
                                   : tn_str{device->kind().data(), device->kind().size()};
  view_.device_handle = device == nullptr ? nullptr : device->handle();
  view_.graph_api = graph_api();
  view_.graph = graph.graph.get();
  view_.context = &context_;
  view_.packed = packed;
  view_.parallel = parallel;
  for (const tn_region region : n.regions())
    region_names_.push_back(to_abi(graph.graph->region_name(region)));
  view_.region_names = region_names_.data();
}

const KernelEntry* PlanContext::plan(Selection& selection, tn_planned* planned) {
  for (Candidate& candidate : selection.candidates) {
    if (!candidate.refusal.empty()) continue;
    *planned = tn_planned{};
    planned->size = sizeof *planned;
    planned->tiles = 1;
    context_.blobs.clear();
    Diagnostics said;
    const tn_kernel_record& record = *candidate.kernel->record;
    const tn_status status = record.plan(candidate.kernel->instance, &view_, planned, said.abi());
    const bool complete =
        view_.device_handle != nullptr ? planned->enqueue != nullptr : planned->fn != nullptr;
    if (status == TN_OK && complete) return candidate.kernel;
    if (planned->free_state != nullptr) planned->free_state(planned->state);
    const std::string reason = said.empty() ? std::string() : said.all().front().text;
    if (status == TN_DECLINED || status == TN_ERR_UNSUPPORTED) {
      candidate.refusal = reason.empty() ? "plan declined without a reason" : reason;
      continue;
    }
    const std::string place = node_place(*context_.graph->graph, context_.node);
    throw Error(exit_job_failed, place,
                status == TN_OK ? fmt::format("kernel {} planned no function; its plugin {} is at fault",
                                              string(record.id), candidate.kernel->plugin)
                                : fmt::format("kernel {} could not be planned (status {}): {}",
                                              string(record.id), status, reason));
  }
  return nullptr;
}

}  // namespace tenon
