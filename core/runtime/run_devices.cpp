// Segments with steps on devices besides the host: streams, arenas and events of one passage, and its ops.
#include <tenon/abi/device.h>

#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/runtime/run_guard.hpp"
#include "core/runtime/run_steps.hpp"

namespace tenon {

// Of one device, in one frame. Lane and arena are the device's between runs, events the frame's.
struct DevicePart {
  std::shared_ptr<OpenDevice> device;
  std::unique_ptr<DeviceLane> lane;
  std::unique_ptr<DeviceMemory> arena;
  std::vector<tn_event*> events;
};

struct DeviceFrame {
  std::vector<DevicePart> parts;  // by device; the first stands for the host
  std::vector<tn_device_buffer> buffers;
  std::vector<tn_device_args> calls;

  DeviceFrame() = default;
  DeviceFrame(const DeviceFrame&) = delete;
  DeviceFrame& operator=(const DeviceFrame&) = delete;
  ~DeviceFrame() { drop_events(); }
  void drop_events() {
    for (DevicePart& part : parts) {
      for (tn_event* event : part.events) part.device->record().destroy_event(part.device->handle(), event);
      part.events.clear();
    }
  }
};

Frame::Frame() = default;
Frame::~Frame() = default;

namespace {

static_assert(sizeof(tn_device_args) == 64, "the arguments of an enqueued kernel fill one cache line");

class DeviceLease {
 public:
  DeviceLease(const Segment& segment, Frame& frame) : plan_(*segment.devices), frame_(frame) {
    if (frame.devices == nullptr) frame.devices = make(segment);
    try {
      acquire();
    } catch (...) {
      give_back(false);
      throw;
    }
    resolve();
  }
  ~DeviceLease() {
    if (!open_) return;
    bool sound = true;
    for (DevicePart& part : parts()) {
      if (part.lane != nullptr && part.lane->finish() != TN_OK) sound = false;
    }
    give_back(sound && !failed_);
  }
  DeviceLease(const DeviceLease&) = delete;
  DeviceLease& operator=(const DeviceLease&) = delete;

  // All that was enqueued is done, or the run has failed.
  void finish(const std::string& place) {
    for (DevicePart& part : parts()) {
      if (part.lane == nullptr) continue;
      const tn_status status = part.lane->finish();
      if (status != TN_OK) fail(part, status, place);
    }
  }
  [[noreturn]] void fail(DevicePart& part, tn_status status, const std::string& place) {
    failed_ = true;
    throw Error(exit_job_failed,
                fmt::format("{}{}device {}", place, place.empty() ? "" : ", ", part.device->name()),
                part.device->failure(status));
  }
  DevicePart& part(uint32_t device) { return parts()[device]; }
  tn_stream* stream(const DeviceOp& op) {
    return op.on_copies ? part(op.device).lane->copies : part(op.device).lane->compute;
  }
  tn_event* event(const DeviceOp& op) { return part(op.device).events[op.index]; }
  tn_device_buffer buffer(const BufferPlace& place) const {
    if (place.place == Place::absent) return {};
    const DevicePart& part = frame_.devices->parts[place.device];
    if (place.place == Place::constant) return {place.memory->handle, 0, part.device->space(), 1};
    return {part.arena->handle, place.offset, part.device->space(), 1};
  }
  const tn_device_args& call(uint32_t i) const { return frame_.devices->calls[i]; }

 private:
  std::vector<DevicePart>& parts() { return frame_.devices->parts; }

  std::unique_ptr<DeviceFrame> make(const Segment& segment) const {
    auto made = std::make_unique<DeviceFrame>();
    made->parts.resize(plan_.arenas.size());
    for (uint32_t d = 1; d < made->parts.size(); ++d) {
      DevicePart& part = made->parts[d];
      part.device = plan_.devices[d - 1];
      for (uint32_t e = 0; e < plan_.arenas[d].event_count; ++e) {
        tn_event* event = nullptr;
        const tn_status status = part.device->record().create_event(part.device->handle(), &event);
        if (status != TN_OK)
          throw Error(exit_job_failed, "device " + part.device->name(),
                      "making an event failed: " + part.device->failure(status));
        part.events.push_back(event);
      }
    }
    made->buffers.resize(plan_.buffers.size());
    for (const DeviceCall& call : plan_.calls) {
      tn_device_args args{};
      args.state = segment.infos[call.step].state;
      args.inputs = made->buffers.data() + call.first_buffer;
      args.outputs = args.inputs + call.input_count;
      args.input_count = call.input_count;
      args.output_count = call.output_count;
      made->calls.push_back(args);
    }
    return made;
  }

  void acquire() {
    for (uint32_t d = 1; d < plan_.arenas.size(); ++d) {
      if (!plan_.arenas[d].used) continue;
      DevicePart& part = parts()[d];
      part.lane = part.device->acquire_lane();
      part.arena = part.device->acquire_arena(plan_.arenas[d].total_bytes);
    }
    open_ = true;
  }

  void resolve() {
    DeviceFrame& devices = *frame_.devices;
    for (size_t i = 0; i < plan_.buffers.size(); ++i) devices.buffers[i] = buffer(plan_.buffers[i]);
    for (size_t i = 0; i < plan_.calls.size(); ++i) {
      const uint32_t device = plan_.calls[i].device;
      devices.calls[i].stream = part(device).lane->compute;
      devices.calls[i].workspace = {part(device).arena->handle, plan_.arenas[device].workspace_offset,
                                    part(device).device->space(), 1};
    }
    for (const auto& [pointer, place] : plan_.mapped) {
      frame_.pointers[pointer] = static_cast<uint8_t*>(parts()[place.device].arena->address) + place.offset;
    }
  }

  // What a failed run used is not used again.
  void give_back(bool sound) {
    for (DevicePart& part : parts()) {
      if (part.device == nullptr) continue;
      if (sound && part.lane != nullptr) part.device->release_lane(std::move(part.lane));
      if (sound && part.arena != nullptr) part.device->release_arena(std::move(part.arena));
      part.lane.reset();
      part.arena.reset();
    }
    if (!sound) frame_.devices.reset();
  }

  const DevicePlan& plan_;
  Frame& frame_;
  bool open_ = false, failed_ = false;
};

void* host_address(const RunState& state, const Frame& frame, const BufferPlace& place) {
  if (place.place == Place::arena) return frame.base + place.offset;
  if (place.place == Place::constant) return const_cast<void*>(place.pointer);
  return state.cells[place.cell].tensor.data;
}

std::string place_of(const RunState& state, const Segment& segment, const DeviceOp& op) {
  switch (op.kind) {
    case OpKind::run:
      return step_place(*state.graph, segment.infos[op.index]);
    case OpKind::enqueue:
      return step_place(*state.graph, segment.infos[segment.devices->calls[op.index].step]);
    case OpKind::upload:
    case OpKind::download:
    case OpKind::copy:
      return fmt::format("copy of value {}", value_place(*state.graph->graph, op.value));
    default:
      return {};
  }
}

tn_status copy(const RunState& state, DeviceLease& lease, const Frame& frame, const DeviceOp& op) {
  if (op.bytes == 0) return TN_OK;
  const tn_device_record& record = lease.part(op.device).device->record();
  tn_stream* stream = lease.stream(op);
  if (op.kind == OpKind::upload) {
    const tn_device_buffer to = lease.buffer(op.to);
    return record.upload(stream, &to, host_address(state, frame, op.from), op.bytes);
  }
  const tn_device_buffer from = lease.buffer(op.from);
  if (op.kind == OpKind::download)
    return record.download(stream, host_address(state, frame, op.to), &from, op.bytes);
  const tn_device_buffer to = lease.buffer(op.to);
  return record.copy(stream, &to, &from, op.bytes);
}

// What is not the host's.
void issue(RunState& state, const Segment& segment, DeviceLease& lease, const Frame& frame,
           const DeviceOp& op) {
  DevicePart& part = lease.part(op.device);
  const tn_device_record& record = part.device->record();
  tn_status status = TN_OK;
  switch (op.kind) {
    case OpKind::enqueue: {
      const DeviceCall& call = segment.devices->calls[op.index];
      status = segment.infos[call.step].enqueue(&lease.call(op.index));
      break;
    }
    case OpKind::record:
      status = record.record(lease.stream(op), lease.event(op));
      break;
    case OpKind::wait:
      status = record.wait(lease.stream(op), lease.event(op));
      break;
    case OpKind::synchronize:
      status = record.synchronize(lease.event(op));
      break;
    default:
      status = copy(state, lease, frame, op);
  }
  if (status != TN_OK) lease.fail(part, status, place_of(state, segment, op));
}

}  // namespace

void run_ops(RunState& state, const Segment& segment, Frame& frame) {
  DeviceLease lease(segment, frame);
  const bool watched = state.observer != nullptr || !segment.guarded.empty();
  GuardWords guard(segment, frame.base);
  for (const DeviceOp& op : segment.devices->ops) {
    const bool works = op.kind != OpKind::record && op.kind != OpKind::wait && op.kind != OpKind::synchronize;
    if (watched && works) guard.before(op.position);
    const uint64_t begin = watched ? now_ns() : 0;
    if (op.kind == OpKind::run) {
      const int result = run_step(state, segment, frame, op.index);
      if (result != 0) throw_failure(state, segment, op.index, result);
    } else {
      issue(state, segment, lease, frame, op);
    }
    if (watched && works) {
      lease.finish(place_of(state, segment, op));
      const uint64_t end = now_ns();
      const std::string damage = guard.after(op.position, *state.graph->graph);
      if (!damage.empty()) throw Error(exit_job_failed, place_of(state, segment, op), damage);
      const bool is_step = op.kind == OpKind::run || op.kind == OpKind::enqueue;
      if (state.observer != nullptr && is_step) {
        const StepInfo& info =
            segment.infos[op.kind == OpKind::run ? op.index : segment.devices->calls[op.index].step];
        const Graph& graph = *state.graph->graph;
        (*state.observer)({info.node, graph.node_name(info.node), graph.op_name(info.node),
                           view(info.kernel->record->id), begin, end});
      }
    }
    if (op.kind == OpKind::run && (segment.steps[op.index].flags & step_calls_back) != 0)
      finish_callback(state, segment, frame, op.index);
  }
  lease.finish("");
}

}  // namespace tenon
