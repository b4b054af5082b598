#include <algorithm>
#include <random>

#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/runtime/cpu_features.hpp"
#include "core/runtime/plan.hpp"

namespace tenon {
namespace {

// Values that the region's nodes, and the regions inside it, read from around it; constants are no captures.
void find_captures(const Graph& graph, RunGraph& run_graph, RegionProgram& program) {
  std::unordered_map<tn_value, bool> seen;
  const auto read = [&](tn_value value) {
    if (value == TN_NONE || graph.is_constant(value) || graph.value(value).region == program.region) return;
    if (seen.emplace(value, true).second) program.captures.push_back(value);
  };
  for (const tn_node node : program.nodes) {
    for (const tn_value value : graph.node(node).inputs()) read(value);
    for (const tn_region inner : graph.node(node).regions()) {
      for (const tn_value value : run_graph.programs[inner]->captures) read(value);
    }
  }
  for (const tn_value value : program.outputs) read(value);
}

uint32_t depth_of(const Graph& graph, tn_region region) {
  uint32_t depth = 0;
  for (tn_node parent = graph.region(region).parent; parent != TN_NONE; ++depth)
    parent = graph.region(graph.node(parent).region_id).parent;
  return depth;
}

}  // namespace

RegionProgram::RegionProgram() = default;
RegionProgram::~RegionProgram() = default;

RunGraph::RunGraph(std::unique_ptr<Graph> lowered, std::vector<tn_node> nodes_expanded)
    : graph(std::move(lowered)), expanded(std::move(nodes_expanded)) {
  std::vector<tn_region> order;
  for (tn_region region = 0; region < graph->region_bound(); ++region) {
    programs.push_back(std::make_unique<RegionProgram>());
    if (graph->region(region).alive) order.push_back(region);
  }
  // From the inside out: a region's captures include those of the regions in it.
  std::stable_sort(order.begin(), order.end(),
                   [&](tn_region a, tn_region b) { return depth_of(*graph, a) > depth_of(*graph, b); });
  for (const tn_region region : order) {
    RegionProgram& program = *programs[region];
    program.region = region;
    program.inputs = graph->region(region).inputs;
    program.outputs = graph->region(region).outputs;
    const std::span<const tn_node> nodes = graph->nodes(region);
    program.nodes.assign(nodes.begin(), nodes.end());
    find_captures(*graph, *this, program);
  }
}

RunEnvironment::RunEnvironment(const Registries& all, RuntimeOptions given)
    : registries(&all), options(std::move(given)), devices(all, options.devices) {
  pool = options.pool != nullptr ? options.pool : ThreadPool::shared(options.threads);
  cpu_features = tenon::cpu_features();
  const std::string& mode = options.precision_mode;
  flush_denormals = mode != "strict" && mode != "exact";
  explain = options.explain;
  const char* guard = std::getenv("TENON_GUARD");
  options.guard = options.guard || (guard != nullptr && std::string_view(guard) == "1");
  random_state = options.random_seed != 0 ? options.random_seed
                                          : std::random_device{}() | uint64_t{std::random_device{}()} << 32;
}

Segment::~Segment() {
  for (StepInfo& info : infos) {
    if (info.free_state != nullptr) info.free_state(info.state);
  }
}

std::string step_place(const RunGraph& graph, const StepInfo& info) {
  constexpr size_t named = 4;
  const std::vector<std::string_view> sources = graph.graph->origins(info.node);
  std::string origins;
  if (sources.size() > 1 || (sources.size() == 1 && sources.front() != graph.graph->node_name(info.node))) {
    for (size_t i = 0; i < std::min(named, sources.size()); ++i)
      origins += fmt::format("{}'{}'", i == 0 ? ", from " : ", ", sources[i]);
    if (sources.size() > named) origins += fmt::format(" and {} more", sources.size() - named);
  }
  return fmt::format("{}, kernel {} of plugin {}{}", node_place(*graph.graph, info.node),
                     string(info.kernel->record->id), info.kernel->plugin, origins);
}

}  // namespace tenon
