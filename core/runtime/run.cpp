#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/base/crash_report.hpp"
#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/runtime/plan.hpp"
#include "core/runtime/run_guard.hpp"
#include "core/runtime/run_steps.hpp"
#include "core/runtime/segment_planner.hpp"

namespace tenon {
namespace {

bool shapes_match(const std::vector<ShapeCondition>& conditions, std::span<const Cell> cells) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const ShapeCondition& c) {
    const Cell& cell = cells[c.cell];
    if (cell.kind != c.kind) return false;
    if (cell.kind != TN_KIND_TENSOR) return true;
    return cell.tensor.dtype == c.dtype && static_cast<size_t>(cell.tensor.rank) == c.dims.size() &&
           std::equal(c.dims.begin(), c.dims.end(), cell.tensor.dims);
  });
}

bool contents_match(const std::vector<DataCondition>& conditions, std::span<const Cell> cells) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const DataCondition& c) {
    const tn_tensor& tensor = cells[c.cell].tensor;
    return tensor.bytes == c.bytes.size() && std::memcmp(tensor.data, c.bytes.data(), c.bytes.size()) == 0;
  });
}

std::shared_ptr<Segment> find_segment(SegmentCache& cache, std::span<const Cell> cells) {
  const std::lock_guard<std::mutex> lock(cache.mutex);
  // What was planned for a device that is lost since is planned again.
  std::erase_if(cache.entries, [](const SegmentCache::Entry& entry) {
    const DevicePlan* plan = entry.segment->devices.get();
    return plan != nullptr && std::any_of(plan->devices.begin(), plan->devices.end(),
                                          [](const auto& device) { return device->lost(); });
  });
  for (SegmentCache::Entry& entry : cache.entries) {
    if (!shapes_match(entry.segment->shapes, cells) || !contents_match(entry.segment->contents, cells))
      continue;
    entry.used = ++cache.clock;
    return entry.segment;
  }
  return nullptr;
}

std::unique_ptr<Frame> make_frame(const Segment& segment) {
  auto frame = std::make_unique<Frame>();
  frame->pointers.assign(segment.pointer_count, nullptr);
  frame->args.resize(segment.steps.size());
  frame->runs.resize(segment.run_count);
  for (const auto& [pointer, constant] : segment.constant_pointers)
    frame->pointers[pointer] = const_cast<void*>(constant);
  uint32_t next_run = 0;
  for (uint32_t i = 0; i < segment.steps.size(); ++i) {
    const StepInfo& info = segment.infos[i];
    const bool calls_back = (segment.steps[i].flags & step_calls_back) != 0;
    const uint32_t run = calls_back ? ++next_run : 0;
    if (calls_back) frame->runs[run].step = i;
    frame->runs[run].segment = &segment;
    tn_kernel_args& args = frame->args[i];
    args.state = info.state;
    if (info.device != 0) continue;
    args.inputs = frame->pointers.data() + info.first_pointer;
    args.outputs = frame->pointers.data() + info.first_pointer + info.input_count;
    args.workspace_stride = info.workspace_bytes;
    args.run = &frame->runs[run];
    args.api = run_api();
    args.input_count = info.input_count;
    args.output_count = info.output_count;
  }
  return frame;
}

void resolve(const Segment& segment, Frame& frame, uint8_t* base) {
  if (frame.resolved && frame.base == base) return;
  for (const PointerFixup& fixup : segment.arena_pointers)
    frame.pointers[fixup.pointer] = base + fixup.offset;
  for (tn_kernel_args& args : frame.args)
    args.workspace = base == nullptr ? nullptr : base + segment.workspace_offset;
  frame.base = base;
  frame.resolved = true;
}

// A frame with its arena for one passage through a segment.
class FrameLease {
 public:
  FrameLease(RunState& state, Segment& segment) : state_(state), segment_(segment) {
    {
      const std::lock_guard<std::mutex> lock(segment.frame_mutex);
      if (!segment.free_frames.empty()) {
        frame_ = std::move(segment.free_frames.back());
        segment.free_frames.pop_back();
      } else {
        segment.free_frames.reserve(segment.free_frames.capacity() + 1);  // returning it will not allocate
      }
    }
    if (frame_ == nullptr) frame_ = make_frame(segment);
    // Last of what may fail: a constructor that throws gives nothing back.
    block_ = state.environment->arenas.acquire(
        std::max<uint64_t>(segment.total_bytes, segment.pointer_count == 0 ? 0 : 64));
    resolve(segment, *frame_, block_.base);
    for (tn_run& run : frame_->runs) {
      run.state = &state;
      run.frame = frame_.get();
    }
  }
  ~FrameLease() {
    state_.environment->arenas.release(block_);
    const std::lock_guard<std::mutex> lock(segment_.frame_mutex);
    segment_.free_frames.push_back(std::move(frame_));
  }
  FrameLease(const FrameLease&) = delete;
  FrameLease& operator=(const FrameLease&) = delete;
  Frame& frame() { return *frame_; }

 private:
  RunState& state_;
  Segment& segment_;
  ArenaBlock block_;
  std::unique_ptr<Frame> frame_;
};

void make_owned(RunState& state, const OwnedBuffer& owned) {
  Cell& cell = state.cells[owned.cell];
  if (owned.output < state.output_memory.size() && state.output_memory[owned.output].data != nullptr) {
    const OutputBuffer& memory = state.output_memory[owned.output];
    if (memory.bytes != owned.bytes) {
      throw Error(exit_bad_input, "output '" + std::string(memory.name) + "'",
                  fmt::format("its buffer has {} bytes, the result {} has {}; give a buffer of that size",
                              memory.bytes, dims_text(owned.dims), owned.bytes));
    }
    cell.kind = TN_KIND_TENSOR;
    cell.tensor = {owned.dtype, static_cast<int32_t>(owned.dims.size()), owned.dims.data(), memory.data,
                   owned.bytes};
    return;
  }
  AnyRef any = new_tensor(owned.dtype, owned.dims, "result of the run");
  cell.kind = TN_KIND_TENSOR;
  cell.tensor = any->tensor();
  cell.any = any.take();
}

void make_view(RunState& state, const CellView& view) {
  tn_tensor tensor{view.dtype, static_cast<int32_t>(view.dims.size()), view.dims.data(), nullptr, view.bytes};
  Cell& cell = state.cells[view.cell];
  cell.kind = TN_KIND_TENSOR;
  if (view.constant != nullptr) {
    tensor.data = const_cast<void*>(view.constant);
    cell.tensor = tensor;
    return;
  }
  const Cell& source = state.cells[view.source];
  tensor.data = source.tensor.data;
  cell.tensor = tensor;
  if (source.any == nullptr) return;
  AnyRef any = borrow_tensor(tensor, nullptr);
  any->items.push_back(AnyRef::share(source.any).take());  // the bytes live with their first owner
  cell.any = any.take();
}

// What is running, for a crash report.
struct RunningStep {
  const Graph* graph;
  const StepInfo* info;
};
void tell_step(const void* subject, CrashWriter write) {
  const auto* running = static_cast<const RunningStep*>(subject);
  write("node '");
  write(running->graph->node_name(running->info->node));
  write("' (");
  write(running->graph->op_name(running->info->node));
  write("), kernel ");
  write(view(running->info->kernel->record->id));
  write(" of plugin ");
  write(running->info->kernel->plugin);
  write("; --isolate ");
  write(running->info->kernel->plugin);
  write(" makes a crash of its kernels an error of the run");
}

struct TileCall {
  tn_kernel_fn fn;
  const tn_kernel_args* args;
  RunningStep running;
};
int run_tile(void* context, uint32_t tile, uint32_t worker) {
  const auto* call = static_cast<const TileCall*>(context);
  const BreadcrumbScope crumb(&tell_step, &call->running);
  return call->fn(call->args, tile, worker);
}

}  // namespace

int run_step(RunState& state, const Segment& segment, Frame& frame, uint32_t i) {
  const Step& step = segment.steps[i];
  if ((step.flags & step_isolated) != 0) return run_isolated(state, segment, frame, i);
  TileCall call{step.fn, &frame.args[i], {state.graph->graph.get(), &segment.infos[i]}};
  if (step.tiles == 1) return run_tile(&call, 0, 0);
  return state.environment->pool->parallel(step.tiles, run_tile, &call);
}

[[noreturn]] void throw_failure(RunState& state, const Segment& segment, uint32_t step, int result) {
  if (!state.needs_expansion.empty()) throw NeedsExpansion{state.needs_expansion};
  const std::string place = step_place(*state.graph, segment.infos[step]);
  if (!state.nested_errors.empty()) {
    for (Diagnostic& diagnostic : state.nested_errors) diagnostic.where += ", inside " + place;
    throw Error(exit_job_failed, std::move(state.nested_errors));
  }
  throw Error(
      exit_job_failed, place,
      state.failure.empty() ? fmt::format("failed with {} and said no reason", result) : state.failure);
}

void finish_callback(RunState& state, const Segment& segment, Frame& frame, uint32_t step) {
  for (tn_any* any : state.temporaries) any_release(any);
  state.temporaries.clear();
  if (!state.nested_errors.empty() || !state.needs_expansion.empty()) throw_failure(state, segment, step, 0);
  const StepInfo& info = segment.infos[step];
  for (uint32_t i = 0; i < info.output_count; ++i) {
    const Operand& operand = segment.operands[info.first_operand + info.input_count + i];
    if (operand.place != Place::slot) continue;
    const Cell& cell = state.cells[operand.cell];
    if (cell.kind == TN_KIND_NONE) {
      state.failure = fmt::format("gave no result {}", i);
      throw_failure(state, segment, step, 0);
    }
    if (operand.rank < 0) continue;
    const bool as_planned = cell.kind == TN_KIND_TENSOR && cell.tensor.dtype == operand.dtype &&
                            cell.tensor.rank == operand.rank &&
                            std::equal(operand.dims, operand.dims + operand.rank, cell.tensor.dims);
    if (!as_planned) {
      state.failure = fmt::format("gave result {} as {}, but its type was inferred as {}", i,
                                  cell.kind == TN_KIND_TENSOR
                                      ? dims_text({cell.tensor.dims, static_cast<size_t>(cell.tensor.rank)})
                                      : "no tensor",
                                  dims_text({operand.dims, static_cast<size_t>(operand.rank)}));
      throw_failure(state, segment, step, 0);
    }
  }
  for (uint32_t i = 0; i < info.patch_count; ++i) {
    const PointerFixup& fixup = segment.slot_pointers[segment.patches[info.first_patch + i]];
    frame.pointers[fixup.pointer] = state.cells[fixup.cell].tensor.data;
  }
}

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

namespace {

void run_steps(RunState& state, const Segment& segment, Frame& frame) {
  const auto count = static_cast<uint32_t>(segment.steps.size());
  for (uint32_t i = 0; i < count; ++i) {
    const Step& step = segment.steps[i];
    const int result = run_step(state, segment, frame, i);
    if (result != 0) throw_failure(state, segment, i, result);
    if ((step.flags & step_calls_back) != 0) finish_callback(state, segment, frame, i);
  }
}

// The same with what is asked for around each step: a clock, canaries.
void run_steps_watched(RunState& state, const Segment& segment, Frame& frame) {
  GuardWords guard(segment, frame.base);
  for (uint32_t i = 0; i < segment.steps.size(); ++i) {
    const StepInfo& info = segment.infos[i];
    guard.before(i);
    const uint64_t begin = now_ns();
    const int result = run_step(state, segment, frame, i);
    const uint64_t end = now_ns();
    if (result != 0) throw_failure(state, segment, i, result);
    const std::string damage = guard.after(i, *state.graph->graph);
    if (!damage.empty()) throw Error(exit_job_failed, step_place(*state.graph, info), damage);
    if ((segment.steps[i].flags & step_calls_back) != 0) finish_callback(state, segment, frame, i);
    if (state.observer != nullptr) {
      const Graph& graph = *state.graph->graph;
      (*state.observer)({info.node, graph.node_name(info.node), graph.op_name(info.node),
                         view(info.kernel->record->id), begin, end});
    }
  }
}

void run_segment(RunState& state, Segment& segment) {
  state.cells.resize(segment.cell_count);
  for (const OwnedBuffer& owned : segment.owned) make_owned(state, owned);
  for (const CellView& view : segment.views) {
    if (view.at_start) make_view(state, view);
  }
  FrameLease lease(state, segment);
  Frame& frame = lease.frame();
  for (const PointerFixup& fixup : segment.cell_pointers)
    frame.pointers[fixup.pointer] = state.cells[fixup.cell].tensor.data;
  if (segment.devices != nullptr) {
    run_ops(state, segment, frame);
  } else if (state.observer != nullptr || !segment.guarded.empty()) {
    run_steps_watched(state, segment, frame);
  } else {
    run_steps(state, segment, frame);
  }
  for (const CellView& view : segment.views) {
    if (!view.at_start) make_view(state, view);
  }
}

void copy_to(const OutputBuffer& memory, const tn_tensor& tensor) {
  if (memory.data == tensor.data) return;
  if (memory.bytes != tensor.bytes || tensor.dtype == TN_STRING) {
    throw Error(
        exit_bad_input, "output '" + std::string(memory.name) + "'",
        fmt::format("its buffer has {} bytes, the result has {}{}; give a buffer of that size, or none",
                    memory.bytes, tensor.bytes, tensor.dtype == TN_STRING ? " and holds texts" : ""));
  }
  if (tensor.bytes != 0) std::memcpy(memory.data, tensor.data, tensor.bytes);
}

AnyRef take_output(RunState& state, const OutputSource& source, const OutputBuffer* memory) {
  if (source.cell == UINT32_MAX) {
    if (source.constant.dtype == TN_DTYPE_NONE) return {};
    if (memory != nullptr) {
      copy_to(*memory, source.constant);
      return {};
    }
    AnyRef any = borrow_tensor(source.constant, state.graph->weak_from_this().lock());
    if (source.kept) any->items.push_back(AnyRef(source.kept).take());
    return any;
  }
  const Cell& cell = state.cells[source.cell];
  if (cell.kind == TN_KIND_NONE) return {};
  if (memory != nullptr) {
    if (cell.kind != TN_KIND_TENSOR)
      throw Error(exit_bad_input, "output '" + std::string(memory->name) + "'",
                  "is no tensor: no buffer can be given for it");
    copy_to(*memory, cell.tensor);
    return {};
  }
  if (cell.any != nullptr) return with_own_texts(cell.any);
  return copy_tensor(cell.tensor, "result of the run");
}

}  // namespace

void RunState::clear() {
  for (Cell& cell : cells) {
    if (cell.any != nullptr) any_release(cell.any);
  }
  for (tn_any* any : temporaries) any_release(any);
  cells.clear();
  temporaries.clear();
  path.clear();
  texts.clear();
  failure.clear();
  nested_errors.clear();
  needs_expansion.clear();
  output_memory = {};
  observer = nullptr;
}

void RunState::fill_cell(uint32_t cell, tn_any* any) {
  cells[cell] = Cell{};
  if (any == nullptr) return;
  any_retain(any);
  cells[cell].kind = any->kind;
  cells[cell].any = any;
  if (any->kind == TN_KIND_TENSOR) cells[cell].tensor = any->tensor();
}

void RunState::fill_cell(uint32_t cell, const tn_tensor& tensor) {
  cells[cell] = Cell{};
  cells[cell].kind = TN_KIND_TENSOR;
  cells[cell].tensor = tensor;
}

std::unique_ptr<RunState> acquire_state(RunEnvironment& environment, RunGraph& graph,
                                        RegionProgram& program) {
  std::unique_ptr<RunState> state;
  {
    const std::lock_guard<std::mutex> lock(program.state_mutex);
    if (!program.free_states.empty()) {
      state = std::move(program.free_states.back());
      program.free_states.pop_back();
    } else {
      program.free_states.reserve(program.free_states.capacity() + 1);
    }
  }
  if (state == nullptr) state = std::make_unique<RunState>();
  state->environment = &environment;
  state->graph = &graph;
  state->program = &program;
  state->cells.resize(program.inputs.size() + program.captures.size());
  return state;
}

void release_state(std::unique_ptr<RunState> state) {
  RegionProgram& program = *state->program;
  state->clear();
  const std::lock_guard<std::mutex> lock(program.state_mutex);
  program.free_states.push_back(std::move(state));
}

std::shared_ptr<Segment> plan_segment(RunEnvironment& environment, RunGraph& graph, RegionProgram& program,
                                      const Segment* previous, std::span<const Cell> cells) {
  return SegmentPlanner(environment, graph, program, previous, cells).plan();
}

bool has_segment(SegmentCache& cache, std::span<const Cell> cells) {
  return find_segment(cache, cells) != nullptr;
}

std::shared_ptr<Segment> next_segment(RunState& state, Segment* previous) {
  SegmentCache& cache = previous == nullptr ? state.program->roots : previous->followers;
  if (std::shared_ptr<Segment> found = find_segment(cache, state.cells)) return found;
  const std::lock_guard<std::mutex> planning(state.graph->planning);
  if (std::shared_ptr<Segment> found = find_segment(cache, state.cells))
    return found;  // another thread was first
  std::shared_ptr<Segment> planned =
      plan_segment(*state.environment, *state.graph, *state.program, previous, state.cells);
  const std::lock_guard<std::mutex> lock(cache.mutex);
  if (cache.entries.size() >= std::max<size_t>(1, state.environment->options.plan_cache_size)) {
    cache.entries.erase(std::min_element(cache.entries.begin(), cache.entries.end(),
                                         [](const auto& a, const auto& b) { return a.used < b.used; }));
  }
  cache.entries.push_back({planned, ++cache.clock});
  return planned;
}

void run_region_program(RunState& state, std::vector<AnyRef>& results) {
  Segment* segment = nullptr;
  do {
    state.path.push_back(next_segment(state, segment));
    segment = state.path.back().get();
    run_segment(state, *segment);
  } while (!segment->last);
  results.resize(segment->outputs.size());
  for (size_t i = 0; i < segment->outputs.size(); ++i) {
    const bool given = i < state.output_memory.size() && state.output_memory[i].data != nullptr;
    results[i] = take_output(state, segment->outputs[i], given ? &state.output_memory[i] : nullptr);
  }
}

}  // namespace tenon
