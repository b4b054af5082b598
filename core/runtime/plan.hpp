// What a run is made of.
//
// A region runs as a chain of segments. A segment is a flat list of steps for which all shapes are numbers;
// where shapes depend on what was computed, the chain is cut and the next segment is planned from the actual
// values. Segments hang in a tree: each holds those that followed it so far, with the shapes and contents
// that they were planned for. Values that cross from segment to segment, enter or leave the region live in
// cells of the run; all others in an arena, at offsets fixed when planning. A frame is one running instance
// of a segment: its pointers, resolved.
#pragma once
#include <tenon/abi/kernels.h>
#include <tenon/abi/memory.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/plugin/registries.hpp"
#include "core/runtime/arena_pool.hpp"
#include "core/runtime/devices.hpp"
#include "core/runtime/packed_constants.hpp"
#include "core/runtime/session.hpp"
#include "core/runtime/thread_pool.hpp"
#include "core/runtime/value_handle.hpp"

namespace tenon {
struct Frame;
struct RunState;
struct Segment;
}  // namespace tenon

// One step that may call back (run.h), in one frame.
struct tn_run {
  tenon::RunState* state = nullptr;
  tenon::Frame* frame = nullptr;
  const tenon::Segment* segment = nullptr;
  uint32_t step = 0;
};

namespace tenon {

static_assert(sizeof(tn_kernel_args) == 64, "the arguments of a step fill one cache line");

// A value outside the arena.
struct Cell {
  uint32_t kind = TN_KIND_NONE;  // NONE: not there (an omitted optional)
  tn_any* any = nullptr;         // an owned reference; null: the bytes are the caller's, or in an outer arena
  tn_tensor tensor{};            // when it is a tensor
};

enum class Place : uint8_t {
  absent,
  constant,  // `pointer`
  cell,      // filled before the segment begins
  slot,      // a cell filled by a step of the segment
  owned,     // a cell whose memory is there before the segment begins
  arena      // `offset`
};

// Of steps that may call back or are isolated; others have only pointers.
struct Operand {
  Place place = Place::absent;
  uint32_t kind = TN_KIND_NONE;
  tn_dtype dtype = TN_DTYPE_NONE;
  int32_t rank = -1;              // -1: known only in the run
  const int64_t* dims = nullptr;  // kept by the segment
  uint32_t cell = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  const void* pointer = nullptr;
  tn_value value = TN_NONE;
};

enum : uint32_t { step_calls_back = 1, step_isolated = 2 };
struct Step {  // hot
  tn_kernel_fn fn = nullptr;
  uint32_t tiles = 1;
  uint32_t flags = 0;
};
struct StepInfo {  // cold
  tn_node node = TN_NONE;
  const KernelEntry* kernel = nullptr;
  uint32_t device = 0;              // 0: the host
  tn_enqueue_fn enqueue = nullptr;  // of other devices; then its buffers are those of the DevicePlan
  std::string placement;            // why it is there; only with explain
  void* state = nullptr;
  void (*free_state)(void*) = nullptr;
  uint64_t workspace_bytes = 0;  // a worker
  uint32_t first_pointer = 0;    // inputs, then outputs
  uint32_t input_count = 0, output_count = 0;
  uint32_t first_operand = 0;  // inputs, outputs, captures; only of steps that call back
  uint32_t capture_count = 0;
  uint32_t first_patch = 0, patch_count = 0;  // pointers to set when the step has filled its slots
  std::string fallback;  // why the preferred kernels did not take it; empty: they did, or there are none
  std::string selection;
  std::vector<std::string> able;  // kernels that take the node, the chosen one first
};
struct PointerFixup {
  uint32_t pointer = 0;
  uint32_t cell = 0;    // of cells and slots
  uint64_t offset = 0;  // of the arena
};

// Memory of its own for values that leave the segment.
struct OwnedBuffer {
  uint32_t cell = 0;
  uint32_t output = UINT32_MAX;  // of the region, for which the caller may have given the memory
  tn_dtype dtype = TN_DTYPE_NONE;
  std::vector<int64_t> dims;
  uint64_t bytes = 0;
};
// A cell with the bytes of another one.
struct CellView {
  uint32_t cell = 0, source = 0;
  const void* constant = nullptr;  // instead of a source
  std::vector<int64_t> dims;
  tn_dtype dtype = TN_DTYPE_NONE;
  uint64_t bytes = 0;
  bool at_start = false;  // the source is there before the segment begins
};
struct OutputSource {
  uint32_t cell = UINT32_MAX;  // else a constant
  tn_tensor constant{};
  AnyRef kept;  // of the constant
};
struct GuardedBuffer {  // guard mode: canaries lie behind `bytes`
  uint64_t offset = 0, bytes = 0;
  uint32_t first_step = 0, last_step = 0;
  tn_value value = TN_NONE;
};

struct KnownValue {
  tn_value value = TN_NONE;
  uint32_t kind = TN_KIND_NONE;
  tn_dtype dtype = TN_DTYPE_NONE;
  int32_t rank = -1;
  std::vector<int64_t> dims;
  bool has_elements = false;
  std::vector<int64_t> elements;
  AnyRef data;
};
// What planning goes on with after a segment.
struct Continuation {
  std::vector<tn_node> remaining;
  std::vector<tn_value> cell_values;  // the value in each cell
  std::vector<KnownValue> known;
};

struct ShapeCondition {
  uint32_t cell = 0;
  uint32_t kind = TN_KIND_NONE;
  tn_dtype dtype = TN_DTYPE_NONE;
  std::vector<int64_t> dims;
};
struct DataCondition {
  uint32_t cell = 0;
  std::vector<uint8_t> bytes;
};

// --- segments with steps on devices besides the host

// What the issuing thread does, in this order. `wait` holds a stream until an event of its device was passed,
// `synchronize` the thread.
enum class OpKind : uint8_t { run, enqueue, upload, download, copy, record, wait, synchronize };
struct BufferPlace {
  Place place = Place::absent;  // on a device: constant or arena
  uint32_t device = 0;          // 0: the host
  uint32_t cell = 0;
  uint64_t offset = 0;
  const void* pointer = nullptr;         // of constants of the host
  const DeviceMemory* memory = nullptr;  // of constants of a device
};
struct DeviceOp {
  OpKind kind = OpKind::run;
  bool on_copies = false;  // on the stream for copies
  uint32_t device = 0;     // whose stream it is; of synchronize: whose event
  uint32_t index =
      0;  // run: number of the step; enqueue: of the call; record, wait, synchronize: of the event
  BufferPlace from, to;  // of copies
  uint64_t bytes = 0;
  tn_value value = TN_NONE;
  uint32_t position = 0;  // among the steps and copies, which lifetimes count in; of the others: none
};
struct DeviceCall {  // one enqueued kernel
  uint32_t step = 0, device = 0;
  uint32_t first_buffer = 0, input_count = 0, output_count = 0;
};
struct DevicePlan {
  struct Arena {
    uint64_t arena_bytes = 0, workspace_offset = 0, total_bytes = 0;
    uint32_t event_count = 0;
    bool used = false;
  };
  std::vector<std::shared_ptr<OpenDevice>> devices;  // number d is devices[d - 1]
  std::vector<Arena> arenas;                         // by device; the first stands for the host
  std::vector<DeviceOp> ops;
  std::vector<DeviceCall> calls;
  std::vector<BufferPlace> buffers;
  std::vector<std::pair<uint32_t, BufferPlace>> mapped;  // pointers of host steps into memory of a device
  std::vector<std::shared_ptr<const DeviceMemory>> constants;
  uint64_t copies = 0, copied_bytes = 0, constant_bytes = 0;
  double estimated_ns = 0;  // what placement took for the least sum
};
struct DeviceFrame;  // run_devices.cpp

struct Frame {
  std::vector<void*> pointers;
  std::vector<tn_kernel_args> args;
  std::vector<tn_run> runs;
  uint8_t* base = nullptr;  // arena that the pointers were resolved for
  bool resolved = false;
  std::unique_ptr<DeviceFrame> devices;  // of segments with a DevicePlan

  Frame();
  ~Frame();
};

struct SegmentCache {
  struct Entry {
    std::shared_ptr<Segment> segment;
    uint64_t used = 0;
  };
  std::mutex mutex;
  std::vector<Entry> entries;
  uint64_t clock = 0;
};

struct Segment {
  std::vector<ShapeCondition> shapes;
  std::vector<DataCondition> contents;

  std::vector<Step> steps;
  std::vector<StepInfo> infos;
  std::vector<Operand> operands;
  std::vector<std::unique_ptr<int64_t[]>> dims;
  uint32_t pointer_count = 0;
  uint32_t run_count = 1;  // the first serves all steps that do not call back
  std::vector<std::pair<uint32_t, const void*>> constant_pointers;
  std::vector<PointerFixup> arena_pointers, cell_pointers, slot_pointers;
  std::vector<uint32_t> patches;  // numbers into slot_pointers, in order of steps

  uint32_t first_cell = 0;  // cells before this segment
  uint32_t cell_count = 0;  // after it
  std::vector<OwnedBuffer> owned;
  std::vector<CellView> views;
  std::vector<OutputSource> outputs;  // of the last segment of a chain
  bool last = false;
  Continuation next;
  SegmentCache followers;

  uint64_t arena_bytes = 0, workspace_offset = 0, total_bytes = 0;
  uint64_t live_bound_bytes = 0, no_reuse_bytes = 0, packed_bytes = 0;
  uint64_t view_count = 0, in_place_count = 0, folded_count = 0;
  double plan_ms = 0;
  std::string planner;
  std::vector<PlannedBuffer> buffers;
  std::vector<GuardedBuffer> guarded;
  std::vector<std::pair<tn_node, const char*>> stepless;  // nodes that became views or constants
  std::vector<AnyRef> kept;                               // folded constants
  std::vector<std::shared_ptr<const void>> blobs;
  uint32_t thread_count = 1;
  std::unique_ptr<DevicePlan> devices;  // null: all steps run on the host

  std::mutex frame_mutex;
  std::vector<std::unique_ptr<Frame>> free_frames;

  Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();
};

struct RegionProgram {
  tn_region region = 0;
  std::vector<tn_value> inputs, captures, outputs;
  std::vector<tn_node> nodes;
  SegmentCache roots;
  std::mutex state_mutex;
  std::vector<std::unique_ptr<RunState>> free_states;

  RegionProgram();
  ~RegionProgram();
};

// The session's graph, lowered. Another one exists when kernels declined the shapes of some run and their
// nodes had to be expanded.
struct RunGraph : std::enable_shared_from_this<RunGraph> {
  std::unique_ptr<Graph> graph;
  std::vector<tn_node> expanded;
  std::vector<std::unique_ptr<RegionProgram>> programs;  // by region
  std::mutex planning;  // guards the graph: types, symbols and expanded constants are made on demand
  std::unordered_map<std::string, tn_dim> data_dependent;
  std::unordered_map<tn_value, ContentIdentity> identities;
  Diagnostics diagnostics;
  std::vector<ExpandedNode> explained;  // nodes that no kernel took; only with explain

  RunGraph(std::unique_ptr<Graph> lowered, std::vector<tn_node> nodes_expanded);
};

struct RunEnvironment {
  const Registries* registries = nullptr;
  RuntimeOptions options;
  std::shared_ptr<ThreadPool> pool;
  ArenaPool arenas;
  DeviceSet devices;
  uint64_t cpu_features = 0;
  bool flush_denormals = false;
  bool explain = false;
  std::atomic<uint64_t> random_state{0};

  RunEnvironment(const Registries& all, RuntimeOptions given);
};

// Kernels declined these nodes at these shapes; they have a body or a decomposition.
struct NeedsExpansion {
  std::vector<tn_node> nodes;
};

struct RunState {
  RunEnvironment* environment = nullptr;
  RunGraph* graph = nullptr;
  RegionProgram* program = nullptr;
  std::vector<Cell> cells;
  std::vector<std::shared_ptr<Segment>> path;
  std::span<const OutputBuffer> output_memory;  // by output number; empty or without data: ours
  const StepObserver* observer = nullptr;
  std::mutex mutex;                  // of what follows: tiles of a step run at once
  std::vector<tn_any*> temporaries;  // handles lent to the running step
  std::deque<std::string> texts;     // what keep_text copied; results that leave the run are copied out of it
  std::string failure;
  std::vector<Diagnostic> nested_errors;
  std::vector<tn_node> needs_expansion;

  ~RunState() { clear(); }
  void clear();
  void fill_cell(uint32_t cell, tn_any* any);              // shares it; null: absent
  void fill_cell(uint32_t cell, const tn_tensor& tensor);  // bytes of somebody else's
};

// Plans the segment that follows `previous` (null: the first) for what the cells hold. Throws Error or
// NeedsExpansion. Holds graph.planning.
std::shared_ptr<Segment> plan_segment(RunEnvironment& environment, RunGraph& graph, RegionProgram& program,
                                      const Segment* previous, std::span<const Cell> cells);
bool has_segment(SegmentCache& cache, std::span<const Cell> cells);
// The same from the cache when a segment for these shapes is there.
std::shared_ptr<Segment> next_segment(RunState& state, Segment* previous);

// Runs the region: cells hold the inputs and captures. Fills results with owned handles (null where output
// memory was given and used). Throws Error or NeedsExpansion.
void run_region_program(RunState& state, std::vector<AnyRef>& results);

std::unique_ptr<RunState> acquire_state(RunEnvironment& environment, RunGraph& graph, RegionProgram& program);
void release_state(std::unique_ptr<RunState> state);

const tn_run_api* run_api();
// "node 'x' (Conv), kernel cpu.conv/1 of plugin cpu, from 'a', 'b'" (the source nodes, when it stands for
// others)
std::string step_place(const RunGraph& graph, const StepInfo& info);

}  // namespace tenon
