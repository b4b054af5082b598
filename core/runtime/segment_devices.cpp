// How values get from device to device, in which order steps and copies are issued, and what waits for what.
#include <algorithm>

#include "core/base/text.hpp"
#include "core/runtime/segment_planner.hpp"

namespace tenon {

// The value's bytes in a device's memory; a copy is made when they are elsewhere. With `own`, host memory
// proper is wanted, not a look into a device's.
uint32_t SegmentPlanner::class_on(tn_value value, uint32_t device, bool own) {
  const uint32_t home = class_of(value);
  const uint32_t home_device = classes_[home].device;
  if (home_device == device) return home;
  const tn_value root = root_of(value);
  const uint64_t key = uint64_t{root} << 32 | device;
  if (const auto found = instances_.find(key); found != instances_.end()) return found->second;
  if (device == 0 && !own && devices_[home_device - 1]->has(TN_DEVICE_HOST_VISIBLE)) return home;
  if (classes_[home].place == Place::constant) return constant_on(value, home, device);
  const bool direct =
      device == 0 || home_device == 0 || devices_[device - 1]->reads(*devices_[home_device - 1]);
  const uint32_t from = direct ? home : class_on(value, 0, true);
  const auto made = static_cast<uint32_t>(classes_.size());
  classes_.emplace_back();
  classes_[made].device = device;
  classes_[made].bytes = classes_[home].bytes;
  classes_[made].value = root;
  classes_[made].last_use = after_all;  // nothing is computed in place over a copy
  instances_.emplace(key, made);
  const auto producer = producer_steps_.find(root);
  Transfer transfer{root, from, made, UINT32_MAX, current_step_};
  if (producer != producer_steps_.end()) transfer.after_step = producer->second;
  transfers_.push_back(transfer);
  return made;
}

uint32_t SegmentPlanner::constant_on(tn_value value, uint32_t home, uint32_t device) {
  tn_tensor tensor{};
  bool constant = false;
  const tn_value root = root_of(value);
  if (!store_.known_data(root, &tensor, &constant)) {
    throw Error(exit_job_failed, "value " + value_place(graph_, value), "is a constant without bytes");
  }
  auto known = run_graph_.identities.find(root);
  if (known == run_graph_.identities.end() || !graph_.is_constant(root))
    known = run_graph_.identities.insert_or_assign(root, content_identity(tensor)).first;
  std::shared_ptr<const DeviceMemory> memory =
      devices_[device - 1]->constant(known->second, tensor, "constant " + value_place(graph_, root));
  const auto made = static_cast<uint32_t>(classes_.size());
  classes_.emplace_back();
  classes_[made].place = Place::constant;
  classes_[made].device = device;
  classes_[made].bytes = classes_[home].bytes;
  classes_[made].memory = memory.get();
  classes_[made].value = root;
  instances_.emplace(uint64_t{root} << 32 | device, made);
  segment_->devices->constant_bytes += tensor.bytes;
  segment_->devices->constants.push_back(std::move(memory));
  return made;
}

uint32_t SegmentPlanner::queue_of(uint32_t device, bool copies) const {
  if (device == 0) return 0;
  return 2 * device - (copies && devices_[device - 1]->has(TN_DEVICE_COPY_STREAM) ? 0 : 1);
}

BufferPlace SegmentPlanner::place_of(uint32_t alias_class) const {
  const AliasClass& c = classes_[alias_class];
  return {c.place, c.device, c.cell, c.offset, c.constant, c.memory};
}

// Steps in their order; a copy right behind the step that makes the value, or before its first reader.
// Lifetimes count in this order from now on.
void SegmentPlanner::order_ops() {
  std::vector<std::vector<const Transfer*>> behind(segment_->steps.size()), before(segment_->steps.size());
  for (const Transfer& transfer : transfers_) {
    if (transfer.after_step != UINT32_MAX) {
      behind[transfer.after_step].push_back(&transfer);
    } else {
      before[transfer.before_step].push_back(&transfer);
    }
  }
  const auto add_copy = [&](const Transfer& transfer) {
    const AliasClass& from = classes_[transfer.from];
    const AliasClass& to = classes_[transfer.to];
    RawOp raw;
    raw.op.kind = from.device == 0 ? OpKind::upload : to.device == 0 ? OpKind::download : OpKind::copy;
    raw.op.device = to.device == 0 ? from.device : to.device;
    raw.op.on_copies = true;
    raw.op.bytes = to.bytes;
    raw.op.value = transfer.value;
    raw.queue = queue_of(raw.op.device, true);
    raw.classes = {{transfer.from, false}, {transfer.to, true}};
    raw_ops_.push_back(std::move(raw));
    ++segment_->devices->copies;
    segment_->devices->copied_bytes += to.bytes;
  };
  for (const Planned& planned : planned_) {
    if (planned.is_view) continue;
    for (const Transfer* transfer : before[planned.step]) add_copy(*transfer);
    RawOp raw;
    raw.op.kind = planned.device == 0 ? OpKind::run : OpKind::enqueue;
    raw.op.device = planned.device;
    raw.op.index = planned.step;
    raw.queue = queue_of(planned.device, false);
    const Node& n = graph_.node(planned.node);
    const auto read = [&](tn_value value) {
      if (value != TN_NONE && !store_.is_absent(value))
        raw.classes.emplace_back(class_on(value, planned.device), false);
    };
    for (const tn_value value : n.inputs()) read(value);
    for (const tn_value value : captures_of(planned.node)) read(value);
    for (const tn_value value : n.outputs()) {
      if (value != TN_NONE) raw.classes.emplace_back(class_by_value_[value], true);
    }
    raw_ops_.push_back(std::move(raw));
    for (const Transfer* transfer : behind[planned.step]) add_copy(*transfer);
  }
  for (AliasClass& c : classes_) {
    c.first_step = UINT32_MAX;
    c.last_step = 0;
  }
  for (uint32_t i = 0; i < raw_ops_.size(); ++i) {
    raw_ops_[i].op.position = i;
    for (const auto& [touched, writes] : raw_ops_[i].classes) {
      classes_[touched].first_step = std::min(classes_[touched].first_step, i);
      classes_[touched].last_step = std::max(classes_[touched].last_step, i);
    }
  }
}

void SegmentPlanner::place_device_arenas() {
  Segment& segment = *segment_;
  std::vector<DevicePlan::Arena>& arenas = segment.devices->arenas;
  for (uint32_t d = 1; d < arenas.size(); ++d) {
    std::vector<uint32_t> members;
    const ArenaPlan plan = plan_space(d, &members);
    const uint64_t alignment = devices_[d - 1]->properties().alignment;
    arenas[d].arena_bytes = rounded_bytes(plan.arena_bytes);
    arenas[d].workspace_offset = (arenas[d].arena_bytes + alignment - 1) / alignment * alignment;
    uint64_t workspace = 0;
    for (const StepInfo& info : segment.infos) {
      if (info.device == d) workspace = std::max(workspace, info.workspace_bytes);
    }
    arenas[d].total_bytes = arenas[d].workspace_offset + workspace;
    const uint64_t most = devices_[d - 1]->properties().memory_bytes;
    if (most != 0 && arenas[d].total_bytes > most) {
      throw Error(
          exit_job_failed, "device " + devices_[d - 1]->name(),
          fmt::format("the plan needs {} of its memory, it has {}; keep nodes off it with \"devices\": "
                      "{{\"deny\": ...}}, run a smaller batch, or give --device cpu",
                      format_bytes(arenas[d].total_bytes), format_bytes(most)));
    }
  }
}

std::vector<MemoryAccess> SegmentPlanner::accesses_of(const RawOp& raw) const {
  std::vector<MemoryAccess> accesses;
  const auto spaces = static_cast<uint32_t>(devices_.size() + 1);
  const uint64_t guard = environment_.options.guard ? buffer_alignment : 0;
  for (const auto& [touched, writes] : raw.classes) {
    const AliasClass& c = classes_[touched];
    if (c.place == Place::constant || c.place == Place::absent) continue;
    if (c.place == Place::arena) {
      accesses.push_back(
          {c.device, c.offset, c.offset + rounded_bytes(c.bytes) + (c.device == 0 ? guard : 0), writes});
    } else {
      accesses.push_back({spaces + touched, 0, 1, writes});  // memory that no other class has
    }
  }
  return accesses;
}

void SegmentPlanner::finish_ops() {
  DevicePlan& plan = *segment_->devices;
  std::vector<QueuedItem> items;
  for (const RawOp& raw : raw_ops_) items.push_back({raw.queue, accesses_of(raw)});
  const WaitPlan waits = plan_waits(items, static_cast<uint32_t>(2 * devices_.size() + 1));
  std::vector<uint32_t> events(raw_ops_.size(), UINT32_MAX);
  for (uint32_t i = 0; i < raw_ops_.size(); ++i) {
    RawOp& raw = raw_ops_[i];
    for (const uint32_t other : waits.waits[i]) {
      DeviceOp wait;
      wait.device = raw_ops_[other].op.device;
      wait.index = events[other];
      const bool same_device = raw.op.kind != OpKind::run && raw.op.device == wait.device;
      wait.kind = same_device ? OpKind::wait : OpKind::synchronize;
      wait.on_copies = raw.op.on_copies;
      plan.ops.push_back(wait);
    }
    if (raw.op.device != 0) plan.arenas[raw.op.device].used = true;
    if (raw.op.kind == OpKind::enqueue) {
      const StepInfo& info = segment_->infos[raw.op.index];
      DeviceCall call{raw.op.index, raw.op.device, static_cast<uint32_t>(plan.buffers.size()),
                      info.input_count, info.output_count};
      const Node& n = graph_.node(info.node);
      for (const tn_value value : n.inputs()) {
        const bool given = value != TN_NONE && !store_.is_absent(value);
        plan.buffers.push_back(given ? place_of(class_on(value, raw.op.device)) : BufferPlace{});
      }
      for (const tn_value value : n.outputs())
        plan.buffers.push_back(value != TN_NONE ? place_of(class_by_value_[value]) : BufferPlace{});
      raw.op.index = static_cast<uint32_t>(plan.calls.size());
      plan.calls.push_back(call);
    } else if (raw.op.kind != OpKind::run) {
      raw.op.from = place_of(raw.classes[0].first);
      raw.op.to = place_of(raw.classes[1].first);
      if (raw.op.from.device != 0) plan.arenas[raw.op.from.device].used = true;
    }
    plan.ops.push_back(raw.op);
    if (!waits.recorded[i]) continue;
    DeviceOp record;
    record.kind = OpKind::record;
    record.device = raw.op.device;
    record.on_copies = raw.op.on_copies;
    record.index = events[i] = plan.arenas[raw.op.device].event_count++;
    plan.ops.push_back(record);
  }
}

}  // namespace tenon
