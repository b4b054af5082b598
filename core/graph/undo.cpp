// Taking changes back, newest first: each case is the exact inverse of a primitive of graph.cpp, so that use
// lists, order, names and types become what they were, to the slot.
#include <algorithm>

#include "core/graph/graph.hpp"

namespace tenon {

void Graph::undo_to(size_t position) {
  const bool was_recording = recording_;
  recording_ = false;
  while (journal_.size() > position) {
    const Entry entry = journal_.back();
    journal_.pop_back();
    undo(entry);
  }
  recording_ = was_recording;
}

void Graph::undo(const Entry& entry) {
  switch (entry.op) {
    case Op::node_created: {
      Node& node = nodes_[entry.a];
      for (uint32_t i = node.input_count; i-- > 0;)
        if (node.input_data[i] != TN_NONE) remove_use(node.input_data[i], input_slots(node)[i]);
      unlink(entry.a);
      node.alive = false;
      --live_nodes_;
      if (node.name != NamePool::none) names_.entry(node.name).node = TN_NONE;
      for (const tn_value output : node.outputs()) {
        if (output == TN_NONE) continue;
        unname_value(output);
        values_[output].kind = TN_VALUE_DEAD;
      }
      break;
    }
    case Op::node_erased: {
      Node& node = nodes_[entry.a];
      for (const tn_value output : node.outputs()) {
        if (output == TN_NONE) continue;
        values_[output].kind = TN_VALUE_RESULT;
        name_value(output, values_[output].name);
      }
      if (node.name != NamePool::none) names_.entry(node.name).node = entry.a;
      node.alive = true;
      ++live_nodes_;
      link(entry.a, node.region_id, entry.b);
      for (uint32_t i = node.input_count; i-- > 0;)
        if (node.input_data[i] != TN_NONE)
          restore_use(node.input_data[i], input_slots(node)[i], {entry.a, i, node.region_id});
      break;
    }
    case Op::node_moved: {
      const tn_region now = nodes_[entry.a].region_id;
      unlink(entry.a);
      link(entry.a, entry.b, entry.c);
      if (now != entry.b) set_node_region(entry.a, entry.b);
      break;
    }
    case Op::input_set: {
      Node& node = nodes_[entry.a];
      const tn_value current = node.input_data[entry.b];
      if (current != TN_NONE) remove_use(current, input_slots(node)[entry.b]);
      node.input_data[entry.b] = entry.c;
      input_slots(node)[entry.b] = static_cast<uint32_t>(entry.d);
      if (entry.c != TN_NONE)
        restore_use(entry.c, static_cast<uint32_t>(entry.d), {entry.a, entry.b, node.region_id});
      break;
    }
    case Op::input_appended: {
      Node& node = nodes_[entry.a];
      const uint32_t last = node.input_count - 1;
      if (node.input_data[last] != TN_NONE) remove_use(node.input_data[last], input_slots(node)[last]);
      --node.input_count;
      break;
    }
    case Op::uses_replaced: {
      UseList& source = values_[entry.a].uses;
      UseList& target = values_[entry.b].uses;
      const uint32_t start = target.size() - entry.c;
      for (uint32_t i = 0; i < entry.c; ++i) {
        const tn_use use = target[start + i];
        if (use.node == TN_NONE)
          regions_[use.region].outputs[use.index] = entry.a;
        else
          nodes_[use.node].input_data[use.index] = entry.a;
        set_use_slot(use, source.push_back(use));
      }
      target.truncate(start);
      break;
    }
    case Op::attrs_set:
      nodes_[entry.a].attr_data = reinterpret_cast<const tn_attr*>(static_cast<uintptr_t>(entry.d));
      nodes_[entry.a].attr_count = static_cast<uint16_t>(entry.b);
      break;
    case Op::type_set:
      values_[entry.a].type = entry.b;
      values_[entry.a].declared = static_cast<uint8_t>(entry.c);
      break;
    case Op::elements_set:
      values_[entry.a].elements = entry.b;
      break;
    default:
      undo_rare(entry);
      break;
  }
}

void Graph::undo_rare(const Entry& entry) {
  switch (entry.op) {
    case Op::version_set:
      nodes_[entry.a].op_version = static_cast<int32_t>(entry.b);
      break;
    case Op::origin_set:
      nodes_[entry.a].origin = entry.b;
      break;
    case Op::region_created: {
      regions_[entry.a].alive = false;
      Node& parent = nodes_[entry.b];
      parent.region_data = reinterpret_cast<const tn_region*>(static_cast<uintptr_t>(entry.d));
      --parent.region_count;
      break;
    }
    case Op::region_input_added:
      unname_value(entry.a);
      values_[entry.a].kind = TN_VALUE_DEAD;
      regions_[values_[entry.a].region].inputs.pop_back();
      break;
    case Op::region_outputs_set: {
      Region& region = regions_[entry.a];
      for (size_t i = region.outputs.size(); i-- > 0;) remove_use(region.outputs[i], region.output_slots[i]);
      SavedOutputs& saved = saved_outputs_.back();
      region.outputs = std::move(saved.values);
      region.output_slots = std::move(saved.slots);
      region.output_names = std::move(saved.names);
      saved_outputs_.pop_back();
      for (uint32_t i = static_cast<uint32_t>(region.outputs.size()); i-- > 0;)
        restore_use(region.outputs[i], region.output_slots[i], {TN_NONE, i, entry.a});
      break;
    }
    case Op::region_output_renamed:
      regions_[entry.a].output_names[entry.b] = entry.c;
      break;
    case Op::region_erased:
      regions_[entry.a].alive = true;
      for (const tn_value input : regions_[entry.a].inputs) {
        values_[input].kind = TN_VALUE_REGION_INPUT;
        name_value(input, values_[input].name);
      }
      break;
    case Op::value_renamed:
      unname_value(entry.a);
      name_value(entry.a, entry.b);
      break;
    case Op::constant_created: {
      unname_value(entry.a);
      values_[entry.a].kind = TN_VALUE_DEAD;
      Constant& constant = constants_[values_[entry.a].index];
      constant.owner.reset();
      constant.data = nullptr;
      break;
    }
    case Op::constant_died:
      values_[entry.a].kind = TN_VALUE_CONSTANT;
      name_value(entry.a, values_[entry.a].name);
      constants_[values_[entry.a].index] = std::move(saved_constants_.back());
      saved_constants_.pop_back();
      break;
    case Op::default_set: {
      if (const tn_value current = default_of(entry.a); current != TN_NONE) values_[current].pinned = 0;
      if (entry.b == TN_NONE) {
        defaults_.erase(entry.a);
      } else {
        defaults_[entry.a] = entry.b;
        values_[entry.b].pinned = 1;
      }
      break;
    }
    case Op::opset_set: {
      const std::string key = std::move(saved_texts_.back());
      saved_texts_.pop_back();
      if (entry.a == 0)
        opsets_.erase(key);
      else
        opsets_[key] = static_cast<int32_t>(entry.b);
      break;
    }
    case Op::metadata_set: {
      const std::string key = std::move(saved_texts_.back());
      saved_texts_.pop_back();
      const std::string old = std::move(saved_texts_.back());
      saved_texts_.pop_back();
      if (key == name_key)
        set_graph_name(old);
      else if (entry.a == 0)
        metadata_.erase(key);
      else
        metadata_[key] = old;
      break;
    }
    default:
      break;
  }
}

Snapshot Graph::snapshot() {
  const Snapshot taken{journal_.size(), version_, edits_committed_, next_serial_++};
  snapshots_.push_back(taken.serial);
  recording_ = true;
  return taken;
}

void Graph::release(const Snapshot& snapshot) {
  while (!snapshots_.empty() && snapshots_.back() >= snapshot.serial) snapshots_.pop_back();
  if (!snapshots_.empty()) return;
  recording_ = false;
  journal_.clear();
  saved_outputs_.clear();
  saved_texts_.clear();
  saved_constants_.clear();
}

void Graph::restore(const Snapshot& snapshot) {
  undo_to(snapshot.position);
  version_ = snapshot.version;
  // What was undone was not applied.
  edits_committed_ = snapshot.edits_committed;
  edit_authors_.resize(std::min<size_t>(edit_authors_.size(), edits_committed_));
  release(snapshot);
}

uint32_t Graph::drop_unused_constants() {
  uint32_t dropped = 0;
  for (uint32_t i = 0; i < constants_.size(); ++i) {
    Constant& constant = constants_[i];
    Value& value = values_[constant.value];
    if (value.kind != TN_VALUE_CONSTANT || value.pinned || value.uses.size() != 0) continue;
    record(Op::constant_died, constant.value);
    if (recording_) saved_constants_.push_back(constant);
    unname_value(constant.value);
    value.kind = TN_VALUE_DEAD;
    constant.owner.reset();
    constant.data = nullptr;
    ++dropped;
  }
  return dropped;
}

}  // namespace tenon
