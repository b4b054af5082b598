// A graph made ready to run: load once, run from many threads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/graph/graph.hpp"
#include "core/plugin/registries.hpp"
#include "core/runtime/devices.hpp"
#include "core/runtime/kernel_selection.hpp"
#include "core/runtime/lowering.hpp"
#include "core/runtime/thread_pool.hpp"
#include "core/runtime/value_handle.hpp"

namespace tenon {

struct RuntimeOptions {
  uint32_t threads = 0;  // 0: usable_processors()
  std::string precision_mode = "faithful";
  KernelPolicy kernels;
  DevicePolicy devices;              // by default the host alone
  uint32_t plan_cache_size = 32;     // plans kept a region, the least recently used goes
  uint64_t random_seed = 0;          // of operators that draw numbers; 0: a new one for each session
  bool explain = false;              // keep every candidate of each node with its reason
  std::vector<std::string> isolate;  // names of plugins whose kernels run in processes of their own
  bool guard = false;  // canaries round every buffer, checked after each step; also TENON_GUARD=1
  std::shared_ptr<ThreadPool> pool;  // null: ThreadPool::shared(threads)

  bool isolates(std::string_view plugin) const {
    return std::find(isolate.begin(), isolate.end(), plugin) != isolate.end();
  }
};

// A value for an input. Its bytes are read in place and must stay until run returns. `any` when it is a
// sequence or optional (or a handle that exists already); then `tensor` is not looked at.
struct NamedTensor {
  std::string_view name;
  tn_tensor tensor{};
  tn_any* any = nullptr;
};
struct NamedOutput {
  std::string name;
  AnyRef value;
  tn_tensor tensor() const { return value->tensor(); }
};
// Memory of the caller's for an output, so that a run copies and allocates nothing. Bytes must be exactly the
// result's.
struct OutputBuffer {
  std::string_view name;
  void* data = nullptr;
  uint64_t bytes = 0;
};

struct InputInfo {
  std::string name;
  tn_type_kind kind;
  tn_dtype dtype;
  std::vector<std::string> dims;  // "3", "batch", "?" ; empty with rank 0
  bool rank_known = true;
  bool optional = false;  // has a default
};
struct OutputInfo {
  std::string name;
  tn_type_kind kind;
  tn_dtype dtype;
  std::vector<std::string> dims;
  bool rank_known = true;
};

struct Fallback {
  std::string node;
  std::string op;
  std::string reason;  // why the preferred kernels did not take it
};
// Of the plans made so far for the shapes run last.
struct RunStats {
  uint64_t arena_bytes = 0;
  uint64_t live_bound_bytes = 0;  // largest sum of live bytes after aliasing
  uint64_t no_reuse_bytes = 0;    // every intermediate in a buffer of its own
  uint64_t workspace_bytes = 0;   // scratch of all workers, beside the arena
  uint64_t packed_bytes = 0;      // packed constants held
  uint64_t steps = 0;             // kernels that run, of the outermost region
  uint64_t views = 0;             // nodes that became views
  uint64_t in_place = 0;
  uint64_t folded = 0;  // shape arithmetic computed while planning
  uint64_t segments = 0;
  double plan_ms = 0;
  std::string planner;
  std::map<std::string, uint64_t> kernels;  // plugin -> nodes
  std::map<std::string, uint64_t> devices;  // device -> nodes; empty when the host is all there is
  uint64_t copies = 0, copied_bytes = 0;    // between devices, in one run of the outermost region
  uint64_t device_arena_bytes = 0, device_constant_bytes = 0;  // of all devices but the host
  std::vector<Fallback> fallbacks;
};
// One row a node of the plan, in order of running; for `explain`, `profile` and the report.
struct PlannedNode {
  tn_node node = TN_NONE;
  std::string name, op, kernel, plugin;
  std::vector<std::string> origins;  // the model's nodes that it stands for, unless it is one of them itself
  std::string device = "cpu";
  uint32_t tiles = 0;
  std::string how;        // "kernel", "view", "constant", "body"
  std::string placement;  // why it is on that device, a line each; only with explain and several devices
  std::string selection;  // every candidate with its reason, see selection_text; only with explain
  std::vector<std::string> able;  // ids of the kernels that take it, the chosen one first; only with explain
};
// One row an arena buffer; for `explain --memory`.
struct PlannedBuffer {
  std::string value;
  uint64_t bytes = 0, offset = 0;
  uint32_t first_step = 0, last_step = 0;
};

// Called around every step when set. [the thread that runs]
struct StepTiming {
  tn_node node;
  std::string_view name, op, kernel;
  uint64_t begin_ns, end_ns;  // steady clock
};
using StepObserver = std::function<void(const StepTiming&)>;

class Session {
 public:
  // Takes the graph, lowers it; throws Error (1: operators without kernel). `registries` outlives the
  // session. [main]
  Session(std::unique_ptr<Graph> graph, const Registries& registries, RuntimeOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Throws Error: exit code 2 for inputs that do not fit (all findings at once), 1 when a kernel fails. Empty
  // `wanted`: all outputs, in the model's order. [any]
  std::vector<NamedOutput> run(std::span<const NamedTensor> inputs) const;
  std::vector<NamedOutput> run(std::span<const NamedTensor> inputs,
                               std::span<const OutputBuffer> outputs) const;
  // The same with a call for each step of the outermost region.
  std::vector<NamedOutput> run_observed(std::span<const NamedTensor> inputs,
                                        const StepObserver& observer) const;
  // Plans for these inputs' shapes without running (as far as data is not needed). [any]
  void prepare(std::span<const NamedTensor> inputs) const;

  const std::vector<InputInfo>& inputs() const;
  const std::vector<OutputInfo>& outputs() const;
  RunStats stats() const;
  std::vector<PlannedNode> planned_nodes() const;    // of the shapes run last
  std::vector<ExpandedNode> expanded_nodes() const;  // what no kernel took; only with explain
  std::vector<PlannedBuffer> planned_buffers() const;
  unsigned thread_count() const;
  // Warnings of loading and planning so far.
  std::vector<Diagnostic> diagnostics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
