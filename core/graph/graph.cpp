// Construction, reading and the primitive changes. Each primitive journals what undo.cpp needs to take it
// back.
#include "core/graph/graph.hpp"

#include <algorithm>

#include "core/graph/edit.hpp"
#include "core/graph/interner.hpp"

namespace tenon {

Graph::Graph() { reset(); }
Graph::~Graph() = default;

void Graph::reset() {
  nodes_.clear();
  values_.clear();
  regions_.clear();
  constants_.clear();
  types_.clear();
  type_index_.clear();
  elements_.clear();
  element_index_.clear();
  attr_index_.clear();
  origins_.assign(1, Origin{});
  origin_index_.clear();
  data_dependent_.clear();
  names_.clear();
  operands_.clear();
  immutable_.clear();
  symbols_ = SymbolTable();
  opsets_.clear();
  metadata_.clear();
  defaults_.clear();
  live_nodes_ = 0;
  journal_.clear();
  saved_outputs_.clear();
  saved_texts_.clear();
  saved_constants_.clear();
  types_.push_back(tn_type{TN_KIND_NONE, TN_DTYPE_NONE, -1, 0, nullptr});
  elements_.push_back({nullptr, 0});
  regions_.push_back(Region());
  touch();
}

std::string_view Graph::op_name(tn_node id) const { return symbol_text(nodes_[id].op); }

uint32_t Graph::depth(tn_region id) const {
  uint32_t depth = 0;
  for (tn_node parent = regions_[id].parent; parent != TN_NONE;
       parent = regions_[nodes_[parent].region_id].parent)
    ++depth;
  return depth;
}

tn_value Graph::find_value(std::string_view name, tn_region region) const {
  const uint32_t known = names_.find(name);
  if (known == TN_NONE || known == NamePool::none) return TN_NONE;
  for (;;) {
    for (tn_value value = names_.entry(known).first_value; value != TN_NONE;
         value = values_[value].next_of_name)
      if (values_[value].region == region) return value;
    const tn_node parent = regions_[region].parent;
    if (parent == TN_NONE) return TN_NONE;
    region = nodes_[parent].region_id;
  }
}

tn_node Graph::find_node(std::string_view name) const {
  const uint32_t known = names_.find(name);
  return known == TN_NONE || known == NamePool::none ? TN_NONE : names_.entry(known).node;
}

const tn_attr* Graph::find_attr(tn_node id, tn_sym name) const {
  for (const tn_attr& attr : nodes_[id].attrs())
    if (attr.name == name) return &attr;
  return nullptr;
}

tn_value Graph::default_of(tn_value region_input) const {
  const auto found = defaults_.find(region_input);
  return found == defaults_.end() ? TN_NONE : found->second;
}

uint64_t Graph::memory_bytes() const {
  uint64_t bytes = nodes_.memory_bytes() + values_.memory_bytes() + regions_.memory_bytes() +
                   constants_.memory_bytes() + types_.memory_bytes() + elements_.memory_bytes() +
                   names_.memory_bytes() + operands_.memory_bytes() + immutable_.memory_bytes() +
                   journal_.capacity() * sizeof(Entry) + origins_.capacity() * sizeof(Origin);
  for (uint32_t i = 0; i < values_.size(); ++i) bytes += values_[i].uses.memory_bytes();
  for (uint32_t i = 0; i < regions_.size(); ++i) bytes += regions_[i].snapshot.capacity() * sizeof(tn_node);
  return bytes;
}

void Graph::record(Op op, uint32_t a, uint32_t b, uint32_t c, uint64_t d) {
  touch();
  if (recording_) journal_.push_back({op, a, b, c, d});
}

// --- uses

void Graph::set_use_slot(const tn_use& use, uint32_t slot) {
  if (use.node == TN_NONE)
    regions_[use.region].output_slots[use.index] = slot;
  else
    input_slots(nodes_[use.node])[use.index] = slot;
}
uint32_t Graph::add_use(tn_value value, const tn_use& use) { return values_[value].uses.push_back(use); }
void Graph::remove_use(tn_value value, uint32_t slot) {
  UseList& uses = values_[value].uses;
  const uint32_t last = uses.size() - 1;
  if (slot != last) {
    uses[slot] = uses[last];
    set_use_slot(uses[slot], slot);
  }
  uses.pop_back();
}
// The exact inverse of remove_use.
void Graph::restore_use(tn_value value, uint32_t slot, const tn_use& use) {
  UseList& uses = values_[value].uses;
  if (slot == uses.size()) {
    uses.push_back(use);
  } else {
    const tn_use moved = uses[slot];
    const uint32_t back = uses.push_back(moved);
    set_use_slot(moved, back);
    uses[slot] = use;
  }
  set_use_slot(use, slot);
}

// --- names and values

void Graph::name_value(tn_value id, uint32_t name) {
  Value& value = values_[id];
  value.name = name;
  if (name == NamePool::none) return;
  value.next_of_name = names_.entry(name).first_value;
  names_.entry(name).first_value = id;
}
void Graph::unname_value(tn_value id) {
  Value& value = values_[id];
  if (value.name == NamePool::none) return;
  tn_value* place = &names_.entry(value.name).first_value;
  while (*place != id && *place != TN_NONE) place = &values_[*place].next_of_name;
  if (*place == id) *place = value.next_of_name;
  value.next_of_name = TN_NONE;
}
void Graph::rename_value(tn_value id, uint32_t name) {
  record(Op::value_renamed, id, values_[id].name);
  unname_value(id);
  name_value(id, name);
}

uint32_t Graph::unique_name(std::string_view wanted, bool for_node) {
  const auto is_free = [&](uint32_t name) {
    const NamePool::Entry& entry = names_.entry(name);
    return for_node ? entry.node == TN_NONE : entry.first_value == TN_NONE;
  };
  const uint32_t base = names_.add(wanted);
  if (base != NamePool::none && is_free(base)) return base;
  std::string text;
  for (;;) {
    text.assign(wanted);
    text += '_';
    text += std::to_string(++names_.entry(base).next_suffix);
    const uint32_t name = names_.add(text);
    if (is_free(name)) return name;
  }
}

bool Graph::value_name_clash(uint32_t name, tn_region region) const {
  if (name == NamePool::none) return false;
  for (tn_value value = names_.entry(name).first_value; value != TN_NONE; value = values_[value].next_of_name)
    if (values_[value].region == region && values_[value].kind != TN_VALUE_CONSTANT) return true;
  return false;
}

tn_value Graph::new_value(uint8_t kind, tn_node producer, uint32_t index, tn_region region, uint32_t name) {
  Value value;
  value.kind = kind;
  value.producer = producer;
  value.index = index;
  value.region = region;
  values_.push_back(std::move(value));
  const tn_value id = values_.size() - 1;
  name_value(id, name);
  return id;
}

// --- nodes

tn_node Graph::create_node(tn_sym op, int32_t version, tn_region region, tn_node before, uint32_t name,
                           std::span<const tn_value> inputs, const tn_attr* attrs, uint32_t attr_count,
                           std::span<const uint32_t> output_names, uint32_t origin) {
  const tn_node id = nodes_.size();
  Node node;
  node.op = op;
  node.op_version = version;
  node.name = name;
  node.attr_data = attrs;
  node.attr_count = static_cast<uint16_t>(attr_count);
  node.origin = origin;
  node.alive = true;
  node.input_count = node.input_capacity = static_cast<uint32_t>(inputs.size());
  node.output_count = static_cast<uint32_t>(output_names.size());
  node.input_data = operands_.allocate_array<tn_value>(inputs.size() * 2 + output_names.size());
  node.output_data = node.input_data + inputs.size() * 2;
  nodes_.push_back(node);
  ++live_nodes_;
  if (name != NamePool::none) names_.entry(name).node = id;
  link(id, region, before);
  uint32_t* const slots = input_slots(nodes_[id]);
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    node.input_data[i] = inputs[i];
    slots[i] = inputs[i] == TN_NONE ? TN_NONE : add_use(inputs[i], {id, i, region});
  }
  for (uint32_t i = 0; i < output_names.size(); ++i)
    node.output_data[i] =
        output_names[i] == TN_NONE ? TN_NONE : new_value(TN_VALUE_RESULT, id, i, region, output_names[i]);
  record(Op::node_created, id);
  return id;
}

void Graph::set_input(tn_node id, uint32_t index, tn_value value) {
  Node& node = nodes_[id];
  uint32_t& slot = input_slots(node)[index];
  const tn_value old = node.input_data[index];
  record(Op::input_set, id, index, old, slot);
  if (old != TN_NONE) remove_use(old, slot);
  node.input_data[index] = value;
  slot = value == TN_NONE ? TN_NONE : add_use(value, {id, index, node.region_id});
}

void Graph::append_input(tn_node id, tn_value value) {
  Node& node = nodes_[id];
  if (node.input_count == node.input_capacity) {
    const uint32_t capacity = std::max(2u, node.input_capacity * 2);
    tn_value* const larger = operands_.allocate_array<tn_value>(size_t(capacity) * 2);
    std::copy_n(node.input_data, node.input_count, larger);
    std::copy_n(input_slots(node), node.input_count, larger + capacity);
    node.input_data = larger;
    node.input_capacity = capacity;
  }
  const uint32_t index = node.input_count++;
  node.input_data[index] = value;
  input_slots(node)[index] = value == TN_NONE ? TN_NONE : add_use(value, {id, index, node.region_id});
  record(Op::input_appended, id);
}

void Graph::replace_uses(tn_value from, tn_value to) {
  UseList& source = values_[from].uses;
  const uint32_t count = source.size();
  if (from == to || count == 0) return;
  UseList& target = values_[to].uses;
  for (uint32_t i = 0; i < count; ++i) {
    const tn_use use = source[i];
    if (use.node == TN_NONE)
      regions_[use.region].outputs[use.index] = to;
    else
      nodes_[use.node].input_data[use.index] = to;
    set_use_slot(use, target.push_back(use));
  }
  source.truncate(0);
  record(Op::uses_replaced, from, to, count);
}

void Graph::set_attrs(tn_node id, const tn_attr* attrs, uint32_t count) {
  Node& node = nodes_[id];
  record(Op::attrs_set, id, node.attr_count, 0, reinterpret_cast<uintptr_t>(node.attr_data));
  node.attr_data = attrs;
  node.attr_count = static_cast<uint16_t>(count);
}

void Graph::erase_single(tn_node id) {
  Node& node = nodes_[id];
  record(Op::node_erased, id, node.next);
  for (uint32_t i = 0; i < node.input_count; ++i)
    if (node.input_data[i] != TN_NONE) remove_use(node.input_data[i], input_slots(node)[i]);
  unlink(id);
  node.alive = false;
  --live_nodes_;
  if (node.name != NamePool::none) names_.entry(node.name).node = TN_NONE;
  for (const tn_value output : node.outputs()) {
    if (output == TN_NONE) continue;
    unname_value(output);
    values_[output].kind = TN_VALUE_DEAD;
  }
}

// The node and all that its regions hold, innermost last.
void Graph::erase_node(tn_node id) {
  std::vector<tn_node> doomed{id};
  for (size_t at = 0; at < doomed.size(); ++at) {
    for (const tn_region region : nodes_[doomed[at]].regions()) {
      if (!regions_[region].alive) continue;
      set_region_outputs(region, {});
      for (tn_node node = regions_[region].last; node != TN_NONE; node = nodes_[node].previous)
        doomed.push_back(node);
    }
  }
  for (size_t at = doomed.size(); at-- > 0;) {
    for (const tn_region region : nodes_[doomed[at]].regions()) {
      if (!regions_[region].alive) continue;
      record(Op::region_erased, region);
      regions_[region].alive = false;
      for (const tn_value input : regions_[region].inputs) {
        unname_value(input);
        values_[input].kind = TN_VALUE_DEAD;
      }
    }
    erase_single(doomed[at]);
  }
}

void Graph::set_node_region(tn_node id, tn_region region) {
  Node& node = nodes_[id];
  for (uint32_t i = 0; i < node.input_count; ++i)
    if (node.input_data[i] != TN_NONE) values_[node.input_data[i]].uses[input_slots(node)[i]].region = region;
  for (const tn_value output : node.outputs())
    if (output != TN_NONE) values_[output].region = region;
}

void Graph::move_node(tn_node id, tn_region region, tn_node before) {
  if (before == id) return;
  const tn_region old = nodes_[id].region_id;
  record(Op::node_moved, id, old, nodes_[id].next);
  unlink(id);
  link(id, region, before);
  if (region != old) set_node_region(id, region);
}

// --- regions

tn_region Graph::create_region(tn_node parent, uint32_t name) {
  Region region;
  region.parent = parent;
  region.name = name;
  regions_.push_back(std::move(region));
  const tn_region id = regions_.size() - 1;
  Node& node = nodes_[parent];
  record(Op::region_created, id, parent, 0, reinterpret_cast<uintptr_t>(node.region_data));
  auto* const list = immutable_.allocate_array<tn_region>(node.region_count + size_t(1));
  std::copy_n(node.region_data, node.region_count, list);
  list[node.region_count] = id;
  node.region_data = list;
  ++node.region_count;
  return id;
}

tn_value Graph::add_region_input(tn_region id, uint32_t name, uint32_t type) {
  Region& region = regions_[id];
  const tn_value value =
      new_value(TN_VALUE_REGION_INPUT, TN_NONE, static_cast<uint32_t>(region.inputs.size()), id, name);
  values_[value].type = type;
  region.inputs.push_back(value);
  record(Op::region_input_added, value);
  return value;
}

void Graph::set_region_outputs(tn_region id, std::span<const tn_value> values) {
  const std::vector<tn_value> wanted(values.begin(), values.end());
  Region& region = regions_[id];
  if (region.outputs.empty() && wanted.empty()) return;
  for (uint32_t i = 0; i < region.outputs.size(); ++i) remove_use(region.outputs[i], region.output_slots[i]);
  record(Op::region_outputs_set, id);
  if (recording_) saved_outputs_.push_back({region.outputs, region.output_slots, region.output_names});
  // Names stay with their places; new places take their values' names.
  const auto names = region.output_names;
  region.outputs = wanted;
  region.output_slots.assign(wanted.size(), 0);
  region.output_names.assign(wanted.size(), NamePool::none);
  for (uint32_t i = 0; i < wanted.size(); ++i) {
    region.output_names[i] = i < names.size() ? names[i] : values_[wanted[i]].name;
    region.output_slots[i] = add_use(wanted[i], {TN_NONE, i, id});
  }
}

// --- types and constants

void Graph::set_type(tn_value id, uint32_t type, bool declared) {
  Value& value = values_[id];
  if (value.type == type && (value.declared != 0) == declared) return;
  record(Op::type_set, id, value.type, value.declared);
  value.type = type;
  value.declared = declared ? 1 : 0;
}

void Graph::set_elements(tn_value id, uint32_t elements) {
  if (values_[id].elements == elements) return;
  record(Op::elements_set, id, values_[id].elements);
  values_[id].elements = elements;
}

tn_value Graph::add_constant(Constant constant, uint32_t name, uint32_t type, tn_region region) {
  const tn_value id = new_value(TN_VALUE_CONSTANT, TN_NONE, constants_.size(), region, name);
  values_[id].type = type;
  constant.value = id;
  constants_.push_back(std::move(constant));
  record(Op::constant_created, id);
  return id;
}

void Graph::set_graph_name(std::string_view name) {
  regions_[main_region].name = names_.add(name);
  touch();
}

void Graph::set_origin_names(tn_node id, std::span<const std::string> names) {
  uint32_t origin = 0;
  for (const std::string& name : names) origin = join_origins(origin, leaf_origin(names_.add(name)));
  record(Op::origin_set, id, nodes_[id].origin);
  nodes_[id].origin = origin;
}

void Graph::redeclare(tn_value id, const tn_type& type) { set_type(id, intern_type(type), false); }

void Graph::set_edit_limit(uint64_t limit) {
  edit_limit_ = limit;
  edits_committed_ = 0;
  edit_authors_.clear();
}

std::vector<std::string> Graph::edit_authors() const {
  std::vector<std::string> names;
  names.reserve(edit_authors_.size());
  for (const uint32_t name : edit_authors_) names.emplace_back(names_.text(name));
  return names;
}

}  // namespace tenon
