// Where the values of a segment live: alias classes, cells for what leaves it, offsets in the arena,
// pointers.
#include <algorithm>

#include "core/base/text.hpp"
#include "core/runtime/segment_planner.hpp"

namespace tenon {

uint64_t SegmentPlanner::bytes_of(tn_value value) {
  const tn_type type = store_.type(value);
  return checked_bytes(type.dtype, {type.dims, static_cast<size_t>(type.rank)},
                       "value " + value_place(graph_, value));
}

uint32_t SegmentPlanner::new_class(tn_value value, Place place, uint64_t bytes) {
  classes_.emplace_back();
  AliasClass& made = classes_.back();
  made.place = place;
  made.bytes = bytes;
  made.value = value;
  class_by_value_[value] = static_cast<uint32_t>(classes_.size() - 1);
  return static_cast<uint32_t>(classes_.size() - 1);
}

// Of a value that exists before its reader: produced by a step before, in a cell, or constant.
uint32_t SegmentPlanner::class_of(tn_value value) {
  const auto found = class_by_value_.find(value);
  if (found != class_by_value_.end()) return found->second;
  tn_tensor tensor{};
  if (const AnyRef* constant = store_.plan_constant(value)) {
    const uint32_t made = new_class(value, Place::constant, (*constant)->bytes);
    classes_[made].constant = (*constant)->data;
    return made;
  }
  if (graph_.constant(value, &tensor)) {
    const uint32_t made = new_class(value, Place::constant, tensor.bytes);
    classes_[made].constant = tensor.data;
    return made;
  }
  const auto cell = cell_by_value_.find(value);
  if (cell == cell_by_value_.end()) {
    throw Error(exit_job_failed, "value " + value_place(graph_, value),
                "is read before anything computes it");
  }
  const uint32_t made = new_class(value, Place::cell, cells_[cell->second].tensor.bytes);
  classes_[made].cell = cell->second;
  return made;
}

void SegmentPlanner::assign_classes() {
  std::unordered_map<tn_node, uint32_t> position;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (needed_[i] && fates_[i] == Fate::planned) position[nodes_[i]] = i;
  }
  for (const Planned& planned : planned_) {
    const Node& n = graph_.node(planned.node);
    const uint32_t at = position[planned.node];
    if (planned.is_view) {
      const uint32_t shared = class_of(n.input(planned.view_input));
      class_by_value_[n.output(0)] = shared;
      classes_[shared].last_use =
          std::max(classes_[shared].last_use, last_use_.count(n.output(0)) ? last_use_[n.output(0)] : at);
      if (leaving_.count(n.output(0)) != 0) {
        class_on(n.output(0), 0, true);
      }
      if (leaving_.count(n.output(0)) == 0) segment_->no_reuse_bytes += rounded_bytes(bytes_of(n.output(0)));
      ++segment_->view_count;
      segment_->stepless.emplace_back(planned.node, "view");
      continue;
    }
    current_step_ = planned.step;
    const bool takes_handles = (segment_->infos[planned.step].kernel->record->flags &
                                (TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_CONTROL_FLOW)) != 0;
    const auto touch = [&](tn_value value) {
      if (value == TN_NONE || store_.is_absent(value)) return;
      AliasClass& c = classes_[class_on(value, planned.device, takes_handles)];
      c.last_step = std::max(c.last_step, planned.step);
      c.lent = c.lent || takes_handles;
    };
    for (const tn_value value : n.inputs()) touch(value);
    for (const tn_value value : captures_of(planned.node)) touch(value);
    for (uint32_t output = 0; output < n.output_count; ++output) {
      if (n.output(output) == TN_NONE) continue;
      assign_result(planned, at, output);
      if (leaving_.count(n.output(output)) != 0) class_on(n.output(output), 0, true);
    }
  }
}

void SegmentPlanner::assign_result(const Planned& planned, uint32_t position, uint32_t output) {
  const tn_value value = graph_.node(planned.node).output(output);
  const tn_kernel_record& record = *segment_->infos[planned.step].kernel->record;
  const tn_type type = store_.type(value);
  const bool sized = type.kind == TN_KIND_TENSOR && store_.is_known(value);
  const uint32_t last_use = last_use_.count(value) ? last_use_[value] : position;
  uint32_t c = 0;
  producer_steps_[value] = planned.step;
  // Results of regions come as handles; what has no known size cannot be placed before.
  if (!sized || (record.flags & TN_KERNEL_CONTROL_FLOW) != 0) {
    c = new_class(value, Place::slot, sized ? bytes_of(value) : 0);
    classes_[c].slot_step = planned.step;
    classes_[c].cell = static_cast<uint32_t>(cell_values_.size());
    cell_values_.push_back(value);
    cell_by_value_[value] = classes_[c].cell;
    segment_->cell_count = static_cast<uint32_t>(cell_values_.size());
  } else {
    const uint64_t bytes = bytes_of(value);
    if (leaving_.count(value) == 0) segment_->no_reuse_bytes += rounded_bytes(bytes);
    if (try_in_place(planned, position, output, bytes)) {
      c = class_by_value_[value];
    } else {
      c = new_class(value, Place::arena, bytes);
      classes_[c].first_step = planned.step;
      classes_[c].device = planned.device;
    }
  }
  classes_[c].last_use = std::max(classes_[c].last_use, last_use);
  classes_[c].last_step = std::max(classes_[c].last_step, planned.step);
}

// The result takes over the operand's bytes: the operand dies here, its bytes are ours to write, no other
// operand of the node lies in them, and no handle that was handed out shows them.
bool SegmentPlanner::try_in_place(const Planned& planned, uint32_t position, uint32_t output,
                                  uint64_t bytes) {
  const Node& n = graph_.node(planned.node);
  const tn_kernel_record& record = *segment_->infos[planned.step].kernel->record;
  for (uint32_t a = 0; a < record.alias_count; ++a) {
    const tn_alias& alias = record.aliases[a];
    if (alias.kind != TN_ALIAS_IN_PLACE || alias.output != output || n.input(alias.input) == TN_NONE)
      continue;
    const tn_value operand = n.input(alias.input);
    if (store_.is_absent(operand) || store_.type(operand).kind != TN_KIND_TENSOR) continue;
    const uint32_t c = class_of(operand);
    if (classes_[c].device != planned.device) continue;  // it reads a copy
    if (classes_[c].place != Place::arena || classes_[c].bytes != bytes || bytes_of(operand) != bytes)
      continue;
    if (classes_[c].last_use > position || classes_[c].lent) continue;
    bool shared = false;
    for (uint32_t i = 0; i < n.input_count; ++i) {
      if (i != alias.input && n.input(i) != TN_NONE && !store_.is_absent(n.input(i)))
        shared = shared || class_of(n.input(i)) == c;
    }
    for (const tn_value captured : captures_of(planned.node)) shared = shared || class_of(captured) == c;
    for (uint32_t i = 0; i < output; ++i) {
      if (n.output(i) != TN_NONE) shared = shared || class_by_value_[n.output(i)] == c;
    }
    if (shared) continue;
    class_by_value_[n.output(output)] = c;
    ++segment_->in_place_count;
    return true;
  }
  return false;
}

// What leaves the segment gets a cell; an arena class with such a value moves into memory of its own.
void SegmentPlanner::give_cells() {
  Segment& segment = *segment_;
  std::unordered_map<tn_value, uint32_t> output_of;
  for (uint32_t i = 0; i < program_.outputs.size(); ++i) output_of.try_emplace(program_.outputs[i], i);
  for (const Planned& planned : planned_) {
    for (const tn_value value : graph_.node(planned.node).outputs()) {
      if (value == TN_NONE || leaving_.count(value) == 0 || cell_by_value_.count(value) != 0) continue;
      AliasClass& c = classes_[class_on(value, 0, true)];
      const tn_type type = store_.type(value);
      const std::vector<int64_t> dims(type.dims, type.dims + type.rank);
      const auto cell = static_cast<uint32_t>(cell_values_.size());
      cell_values_.push_back(value);
      cell_by_value_[value] = cell;
      if (c.place == Place::arena) {
        c.place = Place::owned;
        c.cell = cell;
        const auto output = output_of.find(value);
        segment.owned.push_back({cell, output == output_of.end() ? UINT32_MAX : output->second, type.dtype,
                                 dims, bytes_of(value)});
      } else {
        segment.views.push_back(
            {cell, c.cell, c.constant, dims, type.dtype, bytes_of(value), c.place != Place::slot});
      }
    }
  }
}

// The arena of one device's memory; `members` are the classes in it, in the order of its offsets.
ArenaPlan SegmentPlanner::plan_space(uint32_t device, std::vector<uint32_t>* members) {
  const uint64_t guard = device == 0 && environment_.options.guard ? buffer_alignment : 0;
  const uint64_t alignment = device == 0
                                 ? buffer_alignment
                                 : std::max(buffer_alignment, devices_[device - 1]->properties().alignment);
  std::vector<tn_buffer> buffers;
  for (uint32_t i = 0; i < classes_.size(); ++i) {
    const AliasClass& c = classes_[i];
    if (c.place != Place::arena || c.bytes == 0 || c.device != device) continue;
    members->push_back(i);
    buffers.push_back({rounded_bytes(c.bytes) + guard, alignment, c.first_step, c.last_step});
  }
  Diagnostics said;
  ArenaPlan plan = plan_arena(buffers, registries_.planners(), said);
  run_graph_.diagnostics.append(said);
  for (size_t i = 0; i < members->size(); ++i) classes_[(*members)[i]].offset = plan.offsets[i];
  return plan;
}

void SegmentPlanner::place_arena() {
  Segment& segment = *segment_;
  std::vector<uint32_t> members;
  const ArenaPlan plan = plan_space(0, &members);
  segment.arena_bytes = rounded_bytes(plan.arena_bytes);
  segment.live_bound_bytes = plan.live_bound_bytes;
  segment.planner = plan.planner;
  for (const uint32_t member : members) {
    const AliasClass& c = classes_[member];
    if (environment_.explain) {
      segment.buffers.push_back(
          {std::string(graph_.name(c.value)), c.bytes, c.offset, c.first_step, c.last_step});
    }
    if (environment_.options.guard)
      segment.guarded.push_back({c.offset, c.bytes, c.first_step, c.last_step, c.value});
  }
  if (segment.devices != nullptr) place_device_arenas();
  uint64_t workspace = 0;
  for (size_t i = 0; i < segment.steps.size(); ++i) {
    if (segment.infos[i].device != 0) continue;
    const uint64_t workers = std::min(segment.steps[i].tiles, segment.thread_count);
    // A step whose tiles fit one worker still may see any worker number when it has two tiles or more.
    workspace =
        std::max(workspace, segment.infos[i].workspace_bytes * (workers > 1 ? segment.thread_count : 1));
  }
  segment.workspace_offset = segment.arena_bytes;
  segment.total_bytes = segment.arena_bytes + workspace;
  require_memory(segment.total_bytes, "memory plan",
                 fmt::format("the arena ({}) with its workspace", format_bytes(segment.arena_bytes)));
}

void SegmentPlanner::add_pointer(uint32_t pointer, uint32_t alias_class) {
  Segment& segment = *segment_;
  const AliasClass& c = classes_[alias_class];
  switch (c.place) {
    case Place::constant:
      segment.constant_pointers.emplace_back(pointer, c.constant);
      break;
    case Place::arena:
      if (c.device != 0) {
        segment.devices->mapped.emplace_back(pointer, place_of(alias_class));
      } else {
        segment.arena_pointers.push_back({pointer, 0, c.offset});
      }
      break;
    case Place::slot:
      segment.slot_pointers.push_back({pointer, c.cell, 0});
      break;
    case Place::cell:
    case Place::owned:
      segment.cell_pointers.push_back({pointer, c.cell, 0});
      break;
    case Place::absent:
      break;
  }
}

void SegmentPlanner::add_operand(tn_value value) {
  Operand operand;
  if (value != TN_NONE && !store_.is_absent(value)) {
    const AliasClass& c = classes_[class_on(value, 0, true)];
    const tn_type type = store_.type(value);
    operand.place = c.place;
    operand.kind = type.kind;
    operand.dtype = type.dtype;
    operand.value = value;
    operand.cell = c.cell;
    // A value with a cell of its own has its own dims there, which its class's first cell has not.
    if (const auto own = cell_by_value_.find(value); own != cell_by_value_.end() && c.place == Place::cell)
      operand.cell = own->second;
    operand.offset = c.offset;
    operand.pointer = c.constant;
    if (type.kind == TN_KIND_TENSOR && store_.is_known(value)) {
      operand.rank = type.rank;
      segment_->dims.push_back(std::make_unique<int64_t[]>(static_cast<size_t>(type.rank) + 1));
      std::copy(type.dims, type.dims + type.rank, segment_->dims.back().get());
      operand.dims = segment_->dims.back().get();
      operand.bytes = bytes_of(value);
    }
  }
  segment_->operands.push_back(operand);
}

void SegmentPlanner::lay_out_pointers() {
  Segment& segment = *segment_;
  for (const Planned& planned : planned_) {
    if (planned.is_view) continue;
    const Node& n = graph_.node(planned.node);
    StepInfo& info = segment.infos[planned.step];
    info.first_pointer = segment.pointer_count;
    info.input_count = n.input_count;
    info.output_count = n.output_count;
    if (planned.device != 0) continue;  // its buffers come with the ops
    uint32_t pointer = segment.pointer_count;
    for (const tn_value value : n.inputs()) {
      if (value != TN_NONE && !store_.is_absent(value)) add_pointer(pointer, class_on(value, 0));
      ++pointer;
    }
    for (const tn_value value : n.outputs()) {
      // A step fills its own slots: there is no pointer to give.
      if (value != TN_NONE && classes_[class_by_value_[value]].slot_step != planned.step)
        add_pointer(pointer, class_by_value_[value]);
      ++pointer;
    }
    segment.pointer_count = pointer;
    const uint32_t flags = segment.steps[planned.step].flags;
    if (flags == 0) continue;
    if ((flags & step_calls_back) != 0) ++segment.run_count;
    info.first_operand = static_cast<uint32_t>(segment.operands.size());
    for (const tn_value value : n.inputs()) add_operand(value);
    for (const tn_value value : n.outputs()) add_operand(value);
    const std::span<const tn_value> captures = captures_of(planned.node);
    info.capture_count = static_cast<uint32_t>(captures.size());
    for (const tn_value value : captures) add_operand(value);
  }
  std::unordered_map<uint32_t, uint32_t> step_of_cell;
  for (const AliasClass& c : classes_) {
    if (c.place == Place::slot) step_of_cell[c.cell] = c.slot_step;
  }
  std::vector<std::vector<uint32_t>> by_step(segment.steps.size());
  for (uint32_t i = 0; i < segment.slot_pointers.size(); ++i)
    by_step[step_of_cell[segment.slot_pointers[i].cell]].push_back(i);
  for (size_t step = 0; step < by_step.size(); ++step) {
    segment.infos[step].first_patch = static_cast<uint32_t>(segment.patches.size());
    segment.infos[step].patch_count = static_cast<uint32_t>(by_step[step].size());
    segment.patches.insert(segment.patches.end(), by_step[step].begin(), by_step[step].end());
  }
}

}  // namespace tenon
