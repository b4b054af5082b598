// tenon check: everything that nothing here can run, at once: operators without a definition or kernel, and
// operators whose kernels do not take the types they are given.
#include "core/base/text.hpp"
#include "core/cli/common.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/infer.hpp"
#include "core/runtime/cpu_features.hpp"
#include "core/runtime/kernel_selection.hpp"
#include "core/runtime/plan_context.hpp"

namespace tenon::cli {

namespace {

constexpr size_t named_nodes = 3;

/// Nodes of one operator that all its kernels refuse for the same reason.
struct RefusedTypes {
  std::string op, reason;
  uint64_t count = 0;
  std::vector<std::string> nodes;  // the first few
};

/// What each kernel of the operator says about the node, "" as soon as one takes it.
std::string refusal_of_all(Graph& graph, const Registries& registries, const KernelPolicy& policy,
                           tn_node id) {
  const tn_node_info info = node_info(graph, id);
  std::vector<tn_operand> operands;
  const auto add = [&](const tn_value* values, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      tn_operand operand{};
      operand.type.rank = -1;
      if (values[i] != TN_NONE) {
        operand.present = 1;
        operand.type = graph.type(values[i]);
        operand.constant = graph.is_constant(values[i]) ? 1 : 0;
      }
      operands.push_back(operand);
    }
  };
  add(info.inputs, info.input_count);
  add(info.outputs, info.output_count);
  tn_plan_view view{};
  view.size = sizeof view;
  view.input_count = info.input_count;
  view.output_count = info.output_count;
  view.thread_count = 1;
  view.node = &info;
  view.inputs = operands.data();
  view.outputs = operands.data() + info.input_count;
  view.graph_api = graph_api();
  view.device = to_abi(policy.device);
  view.cpu_features = cpu_features();
  view.precision_mode = to_abi("faithful");
  std::string all;
  for (const KernelEntry& kernel : registries.kernels(info.op)) {
    const std::string refusal = refusal_of(kernel, registries, view, policy, false);
    if (refusal.empty()) return {};
    all += (all.empty() ? "" : "; ") + string(kernel.record->id) + ": " + refusal;
  }
  return all;
}

std::vector<RefusedTypes> refused_types(Graph& graph, const Registries& registries,
                                        const KernelPolicy& policy) {
  std::map<std::pair<std::string, std::string>, RefusedTypes> found;
  for (tn_region region = 0; region < graph.region_bound(); ++region) {
    if (!graph.region(region).alive) continue;
    for (tn_node id = graph.first_node(region); id != TN_NONE; id = graph.next_node(id)) {
      const OpEntry* entry = registries.find(graph.node(id).op);
      const bool has_body = body_of(graph, registries, id) != TN_NONE;
      if (entry == nullptr || entry->def->decompose != nullptr || has_body) continue;
      const std::string reason = refusal_of_all(graph, registries, policy, id);
      if (reason.empty()) continue;
      RefusedTypes& item = found[{std::string(graph.op_name(id)), reason}];
      item.op = std::string(graph.op_name(id));
      item.reason = reason;
      if (item.count++ < named_nodes) item.nodes.push_back(node_place(graph, id));
    }
  }
  std::vector<RefusedTypes> all;
  for (auto& [key, item] : found) all.push_back(std::move(item));
  return all;
}

int check(const PipelineOptions& o) {
  if (o.print_resolved) return print_resolved_manifest(o);
  Pipeline p = open_pipeline(o, read_target(o));
  p.graph = p.engine->load_model();
  const auto missing = p.engine->unsupported_operators(*p.graph);
  const auto refused = refused_types(*p.graph, p.engine->registries(), runtime_options(p.manifest()).kernels);
  const uint32_t nodes = p.graph->live_node_count();
  if (o.json) {
    Json j = {{"nodes", nodes}, {"unsupported", Json::array()}, {"unsupported_types", Json::array()}};
    for (const auto& u : missing)
      j["unsupported"].push_back({{"op", u.op},
                                  {"count", u.count},
                                  {"nodes", u.nodes},
                                  {"nearest", u.nearest},
                                  {"provided_by", u.provided_by},
                                  {"defined", u.defined}});
    for (const auto& r : refused)
      j["unsupported_types"].push_back(
          {{"op", r.op}, {"count", r.count}, {"nodes", r.nodes}, {"reason", r.reason}});
    print_json(j);
  } else {
    print_findings(p.engine->diagnostics().all(), false);
    for (const auto& u : missing) std::printf("%s\n", printable(to_string(u)).c_str());
    for (const auto& r : refused)
      std::printf(
          "%s\n",
          printable(fmt::format("operator {} ({} {}; {}{}) has no kernel for what it is given: {}", r.op,
                                format_count(r.count), r.count == 1 ? "node" : "nodes", join(r.nodes, ", "),
                                r.count > r.nodes.size() ? ", ..." : "", r.reason))
              .c_str());
    if (missing.empty() && refused.empty())
      std::printf("%s: all %u nodes can run\n", p.manifest().model_path.string().c_str(), nodes);
  }
  return missing.empty() && refused.empty() ? 0 : exit_job_failed;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto o = std::make_shared<PipelineOptions>();
  auto* verb = app.add_subcommand(
      "check", "list what nothing loaded can run: operators, and operators on such element types");
  add_pipeline_options(*verb, *o);
  verb->callback([o, &action] { action = [o] { return check(*o); }; });
}

}  // namespace tenon::cli
