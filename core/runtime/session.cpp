#include "core/runtime/session.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/runtime/cpu_features.hpp"
#include "core/runtime/lowering.hpp"
#include "core/runtime/plan.hpp"
#include "core/runtime/session_inputs.hpp"

namespace tenon {
namespace {

constexpr uintptr_t wanted_alignment = 16;  // kernels may assume it of every tensor
constexpr int most_expansions = 64;         // kernels that decline, one after another, in one run

std::shared_ptr<RunGraph> lowered(std::unique_ptr<Graph> graph, RunEnvironment& environment,
                                  std::vector<tn_node> expand, const RunGraph* before) {
  LoweringOptions options;
  options.policy = environment.options.kernels;
  for (const auto& device : environment.devices.current()) options.kinds.emplace_back(device->kind());
  options.precision_mode = environment.options.precision_mode;
  options.cpu_features = environment.cpu_features;
  options.thread_count = environment.pool->size();
  options.explain = environment.explain;
  options.always_expand = std::move(expand);
  Diagnostics diagnostics;
  LoweringReport report = lower(*graph, *environment.registries, options, diagnostics);
  diagnostics.throw_if_errors(exit_job_failed);
  std::vector<tn_node> expanded = before ? before->expanded : std::vector<tn_node>{};
  expanded.insert(expanded.end(), options.always_expand.begin(), options.always_expand.end());
  std::sort(expanded.begin(), expanded.end());
  auto run_graph = std::make_shared<RunGraph>(std::move(graph), std::move(expanded));
  run_graph->diagnostics = std::move(diagnostics);
  if (before) run_graph->explained = before->explained;
  run_graph->explained.insert(run_graph->explained.end(), report.expanded.begin(), report.expanded.end());
  return run_graph;
}

// The segments that a region ran through last.
std::vector<std::shared_ptr<Segment>> last_chain(RegionProgram& program) {
  std::vector<std::shared_ptr<Segment>> chain;
  SegmentCache* cache = &program.roots;
  while (cache != nullptr) {
    const std::lock_guard<std::mutex> lock(cache->mutex);
    const auto last = std::max_element(cache->entries.begin(), cache->entries.end(),
                                       [](const auto& a, const auto& b) { return a.used < b.used; });
    if (last == cache->entries.end()) break;
    chain.push_back(last->segment);
    cache = last->segment->last ? nullptr : &last->segment->followers;
  }
  return chain;
}

std::string device_name(const Segment& segment, const StepInfo& info) {
  return info.device == 0 ? "cpu" : segment.devices->devices[info.device - 1]->name();
}

void count_kernels(const Graph& graph, const Segment& segment, bool has_devices, RunStats& stats) {
  for (const StepInfo& info : segment.infos) {
    ++stats.kernels[std::string(info.kernel->plugin)];
    if (has_devices) ++stats.devices[device_name(segment, info)];
    if (!info.fallback.empty()) {
      stats.fallbacks.push_back(
          {std::string(graph.node_name(info.node)), std::string(graph.op_name(info.node)), info.fallback});
    }
  }
}

void count_copies(const Segment& segment, RunStats& stats) {
  if (segment.devices == nullptr) return;
  stats.copies += segment.devices->copies;
  stats.copied_bytes += segment.devices->copied_bytes;
  stats.device_constant_bytes += segment.devices->constant_bytes;
  uint64_t arenas = 0;
  for (const DevicePlan::Arena& arena : segment.devices->arenas) arenas += arena.arena_bytes;
  stats.device_arena_bytes = std::max(stats.device_arena_bytes, arenas);
}

}  // namespace

struct Session::State {
  State(const Registries& registries, RuntimeOptions options, const Graph& graph)
      : environment(registries, std::move(options)), checker(graph) {}

  RunEnvironment environment;
  InputChecker checker;
  mutable std::mutex mutex;                       // of what follows
  std::vector<std::shared_ptr<RunGraph>> graphs;  // the first is the one without expansions
  std::shared_ptr<RunGraph> last_graph;
  std::vector<std::shared_ptr<Segment>> last_path;

  // A state of the main region that ends with the lease.
  struct Lease {
    std::shared_ptr<RunGraph> graph;
    std::unique_ptr<RunState> state;
    Lease(RunEnvironment& environment, std::shared_ptr<RunGraph> of)
        : graph(std::move(of)),
          state(acquire_state(environment, *graph, *graph->programs[Graph::main_region])) {}
    ~Lease() { release_state(std::move(state)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
  };

  void fill(RunState& state, std::span<const NamedTensor> given, std::span<const int> order) {
    const std::vector<tn_value>& inputs = state.program->inputs;
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      const bool optional = checker.inputs()[i].kind == TN_KIND_OPTIONAL ||
                            checker.inputs()[i].kind == TN_KIND_OPTIONAL_SEQUENCE;
      if (order[i] < 0) {
        tn_tensor constant{};
        if (optional) {
          state.fill_cell(i, new_optional(nullptr).get());
        } else {
          const std::lock_guard<std::mutex> planning(
              state.graph->planning);  // a uniform default is expanded on demand
          if (state.graph->graph->constant(state.graph->graph->default_of(inputs[i]), &constant))
            state.fill_cell(i, constant);
        }
        continue;
      }
      const NamedTensor& input = given[static_cast<size_t>(order[i])];
      AnyRef any = AnyRef::share(input.any);
      if (!any && (optional || reinterpret_cast<uintptr_t>(input.tensor.data) % wanted_alignment != 0)) {
        any = copy_tensor(input.tensor, "input '" + std::string(input.name) + "'");
      }
      if (any && optional && (any->kind == TN_KIND_TENSOR || any->kind == TN_KIND_SEQUENCE))
        any = new_optional(any.get());
      if (any) {
        state.fill_cell(i, any.get());
      } else {
        state.fill_cell(i, input.tensor);
      }
    }
  }

  // The graph whose plan for these shapes is there already, else the first.
  std::shared_ptr<RunGraph> choose(std::span<const NamedTensor> given, std::span<const int> order) {
    std::vector<std::shared_ptr<RunGraph>> all;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (graphs.size() == 1) return graphs.front();
      all = graphs;
    }
    for (const std::shared_ptr<RunGraph>& graph : all) {
      Lease lease(environment, graph);
      fill(*lease.state, given, order);
      if (has_segment(graph->programs[Graph::main_region]->roots, lease.state->cells)) return graph;
    }
    return all.front();
  }

  std::shared_ptr<RunGraph> expanded(const RunGraph& from, const std::vector<tn_node>& nodes) {
    std::vector<tn_node> wanted = from.expanded;
    wanted.insert(wanted.end(), nodes.begin(), nodes.end());
    std::sort(wanted.begin(), wanted.end());
    const auto find = [&]() -> std::shared_ptr<RunGraph> {
      for (const std::shared_ptr<RunGraph>& graph : graphs) {
        if (graph->expanded == wanted) return graph;
      }
      return nullptr;
    };
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (std::shared_ptr<RunGraph> known = find()) return known;
    }
    std::unique_ptr<Graph> copy;
    {
      const std::lock_guard<std::mutex> planning(const_cast<RunGraph&>(from).planning);
      copy = from.graph->clone();
    }
    std::shared_ptr<RunGraph> made = lowered(std::move(copy), environment, nodes, &from);
    const std::lock_guard<std::mutex> lock(mutex);
    if (std::shared_ptr<RunGraph> known = find()) return known;
    graphs.push_back(made);
    return made;
  }

  void remember(const std::shared_ptr<RunGraph>& graph, const std::vector<std::shared_ptr<Segment>>& path) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (last_path == path) return;
    last_graph = graph;
    last_path = path;
  }

  std::vector<OutputBuffer> memory_in_order(std::span<const OutputBuffer> given) const {
    if (given.empty()) return {};
    std::vector<OutputBuffer> ordered(checker.outputs().size());
    std::vector<std::string> names;
    for (const OutputInfo& info : checker.outputs()) names.push_back(info.name);
    Diagnostics found;
    for (const OutputBuffer& buffer : given) {
      const auto name = std::find(names.begin(), names.end(), buffer.name);
      if (name == names.end()) {
        found.error("", "output '" + std::string(buffer.name) + "'",
                    "the model has no such output" + did_you_mean(buffer.name, names));
      } else {
        ordered[static_cast<size_t>(name - names.begin())] = buffer;
      }
    }
    found.throw_if_errors(exit_bad_input);
    return ordered;
  }

  template <class Use>
  void with_state(std::span<const NamedTensor> given, Use&& use) {
    const FpScope fp(environment.flush_denormals);
    std::vector<int> order;
    checker.check(given, &order);
    std::shared_ptr<RunGraph> graph = choose(given, order);
    for (int attempt = 0; attempt < most_expansions; ++attempt) {
      Lease lease(environment, graph);
      fill(*lease.state, given, order);
      try {
        use(*lease.state);
        remember(graph, lease.state->path);
        return;
      } catch (const NeedsExpansion& needs) {
        graph = expanded(*graph, needs.nodes);
      }
    }
    throw Error(exit_job_failed, "kernel selection",
                fmt::format("kernels still decline after {} expansions of nodes", most_expansions));
  }

  std::vector<NamedOutput> run(std::span<const NamedTensor> given, std::span<const OutputBuffer> memory,
                               const StepObserver* observer) {
    const std::vector<OutputBuffer> ordered = memory_in_order(memory);
    std::vector<AnyRef> results;
    with_state(given, [&](RunState& state) {
      state.output_memory = ordered;
      state.observer = observer;
      run_region_program(state, results);
    });
    std::vector<NamedOutput> outputs;
    outputs.reserve(results.size());
    for (size_t i = 0; i < results.size(); ++i)
      outputs.push_back({checker.outputs()[i].name, std::move(results[i])});
    return outputs;
  }
};

Session::Session(std::unique_ptr<Graph> graph, const Registries& registries, RuntimeOptions options)
    : state_(std::make_unique<State>(registries, std::move(options), *graph)) {
  std::shared_ptr<RunGraph> base = lowered(std::move(graph), state_->environment, {}, nullptr);
  state_->graphs.push_back(base);
  state_->last_graph = base;
}

Session::~Session() = default;

std::vector<NamedOutput> Session::run(std::span<const NamedTensor> inputs) const {
  return state_->run(inputs, {}, nullptr);
}
std::vector<NamedOutput> Session::run(std::span<const NamedTensor> inputs,
                                      std::span<const OutputBuffer> outputs) const {
  return state_->run(inputs, outputs, nullptr);
}
std::vector<NamedOutput> Session::run_observed(std::span<const NamedTensor> inputs,
                                               const StepObserver& observer) const {
  return state_->run(inputs, {}, &observer);
}
void Session::prepare(std::span<const NamedTensor> inputs) const {
  state_->with_state(inputs, [](RunState& state) { state.path.push_back(next_segment(state, nullptr)); });
}

const std::vector<InputInfo>& Session::inputs() const { return state_->checker.inputs(); }
const std::vector<OutputInfo>& Session::outputs() const { return state_->checker.outputs(); }
unsigned Session::thread_count() const { return state_->environment.pool->size(); }

RunStats Session::stats() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  RunStats stats;
  RunGraph& run_graph = *state_->last_graph;
  for (const std::shared_ptr<Segment>& segment : state_->last_path) {
    stats.arena_bytes = std::max(stats.arena_bytes, segment->arena_bytes);
    stats.live_bound_bytes = std::max(stats.live_bound_bytes, segment->live_bound_bytes);
    stats.workspace_bytes = std::max(stats.workspace_bytes, segment->total_bytes - segment->arena_bytes);
    stats.no_reuse_bytes += segment->no_reuse_bytes;
    stats.packed_bytes += segment->packed_bytes;
    stats.steps += segment->steps.size();
    stats.views += segment->view_count;
    stats.in_place += segment->in_place_count;
    stats.folded += segment->folded_count;
    stats.plan_ms += segment->plan_ms;
    if (!segment->planner.empty()) stats.planner = segment->planner;
    ++stats.segments;
    count_kernels(*run_graph.graph, *segment, !state_->environment.devices.empty(), stats);
    count_copies(*segment, stats);
  }
  for (const auto& program : run_graph.programs) {
    if (program->region == Graph::main_region) continue;
    for (const std::shared_ptr<Segment>& segment : last_chain(*program)) {
      count_kernels(*run_graph.graph, *segment, !state_->environment.devices.empty(), stats);
      stats.plan_ms += segment->plan_ms;
    }
  }
  return stats;
}

std::vector<PlannedNode> Session::planned_nodes() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  std::vector<PlannedNode> rows;
  const Graph& graph = *state_->last_graph->graph;
  const auto row = [&](tn_node node) -> PlannedNode& {
    PlannedNode& made = rows.emplace_back();
    made.node = node;
    made.name = graph.node_name(node);
    made.op = graph.op_name(node);
    for (const std::string_view origin : graph.origins(node)) made.origins.emplace_back(origin);
    return made;
  };
  for (const std::shared_ptr<Segment>& segment : state_->last_path) {
    for (size_t i = 0; i < segment->infos.size(); ++i) {
      const StepInfo& info = segment->infos[i];
      PlannedNode& made = row(info.node);
      made.kernel = string(info.kernel->record->id);
      made.plugin = info.kernel->plugin;
      made.device = device_name(*segment, info);
      made.tiles = segment->steps[i].tiles;
      made.how = "kernel";
      made.placement = info.placement;
      made.selection = info.selection;
      made.able = info.able;
    }
    for (const auto& [node, how] : segment->stepless) row(node).how = how;
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const PlannedNode& a, const PlannedNode& b) {
    return graph.comes_before(a.node, b.node);
  });
  return rows;
}

std::vector<ExpandedNode> Session::expanded_nodes() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->last_graph->explained;
}

std::vector<PlannedBuffer> Session::planned_buffers() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  std::vector<PlannedBuffer> rows;
  for (const std::shared_ptr<Segment>& segment : state_->last_path)
    rows.insert(rows.end(), segment->buffers.begin(), segment->buffers.end());
  return rows;
}

std::vector<Diagnostic> Session::diagnostics() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  std::vector<Diagnostic> all;
  for (const std::shared_ptr<RunGraph>& graph : state_->graphs) {
    const std::lock_guard<std::mutex> planning(graph->planning);
    all.insert(all.end(), graph->diagnostics.all().begin(), graph->diagnostics.all().end());
  }
  return all;
}

}  // namespace tenon
