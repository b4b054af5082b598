// The operations of a transaction. Whatever comes from outside is checked here; the primitives below trust
// it.
#include "core/graph/edit.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/interner.hpp"

using namespace tenon;

namespace {
constexpr size_t max_name_bytes = size_t(1) << 20;
constexpr uint32_t max_attrs = 4096;
constexpr int32_t max_rank = 1024;
}  // namespace

tn_edit::tn_edit(Graph& target, std::string_view author, uint32_t edit_flags)
    : graph(target),
      who(author),
      flags(edit_flags),
      start_(target.journal_.size()),
      start_version_(target.version_) {
  fresh_build_ =
      is_build() && graph.node_bound() == 0 && graph.value_bound() == 0 && graph.snapshots_.empty();
  graph.recording_ = !fresh_build_;
}

tn_status tn_edit::refuse(std::string text) {
  if (refused_.size() < 16) refused_.push_back(std::move(text));
  return TN_ERR_INVALID;
}

tn_status tn_edit::check_values(const tn_value* values, uint32_t count, bool may_be_absent,
                                const char* what) {
  if (count != 0 && values == nullptr)
    return refuse(fmt::format("{}: {} values announced, none given", what, count));
  for (uint32_t i = 0; i < count; ++i) {
    if (values[i] == TN_NONE && may_be_absent) continue;
    if (!is_live_value(values[i]))
      return refuse(
          fmt::format("{}: value #{} at place {} does not exist or was erased", what, values[i], i));
  }
  return TN_OK;
}

tn_status tn_edit::check_type(const tn_type& type) {
  if (type.kind > TN_KIND_OPTIONAL_SEQUENCE)
    return refuse(
        fmt::format("a type of kind {}; kinds end at {}", type.kind, int(TN_KIND_OPTIONAL_SEQUENCE)));
  if (type.rank > max_rank || (type.rank > 0 && type.dims == nullptr))
    return refuse(
        fmt::format("a type of rank {}; at most {} dimensions can be described", type.rank, max_rank));
  for (int32_t i = 0; i < type.rank; ++i)
    if (!graph.symbols().is_known_handle(type.dims[i]))
      return refuse(fmt::format(
          "dimension {} is the handle {}, which this graph's symbol table never gave out", i, type.dims[i]));
  return TN_OK;
}

tn_status tn_edit::check_attr(const tn_attr& attr) {
  const auto name = symbol_text(attr.name);
  const auto wrong = [&](const char* what) { return refuse(fmt::format("attribute '{}': {}", name, what)); };
  switch (attr.kind) {
    case TN_ATTR_INT:
    case TN_ATTR_FLOAT:
      return TN_OK;
    case TN_ATTR_STRING:
      return attr.u.s.size != 0 && !attr.u.s.data ? wrong("a text without bytes") : TN_OK;
    case TN_ATTR_INTS:
    case TN_ATTR_FLOATS:
    case TN_ATTR_STRINGS:
      return attr.count != 0 && !attr.u.ints ? wrong("a list without elements") : TN_OK;
    case TN_ATTR_TENSOR: {
      if (!attr.u.tensor) return wrong("no tensor given");
      const tn_tensor& tensor = *attr.u.tensor;
      uint64_t bytes = 0;
      if (tensor.rank < 0 || tensor.rank > max_rank || (tensor.rank > 0 && !tensor.dims))
        return wrong("a tensor without a rank");
      if (!tensor_bytes(tensor.dtype, {tensor.dims, static_cast<size_t>(tensor.rank)}, &bytes) ||
          bytes != tensor.bytes)
        return wrong("the tensor's bytes do not fit its type and shape");
      return bytes != 0 && !tensor.data ? wrong("a tensor without bytes") : TN_OK;
    }
    case TN_ATTR_TYPE:
      return attr.u.type ? check_type(*attr.u.type) : wrong("no type given");
    default:
      return refuse(fmt::format("attribute '{}': kind {} is none of the boundary's", name, attr.kind));
  }
}

void tn_edit::note_use(const tn_use& use) {
  if (!is_build()) uses_.push_back(use);
}

void tn_edit::note_origin(tn_node node, uint32_t origin) {
  graph.record(Graph::Op::origin_set, node, graph.nodes_[node].origin);
  graph.nodes_[node].origin = origin;
}

// The name of a result; TN_NONE: not wanted. A frontend's names stay as they are, all others are made unique.
uint32_t tn_edit::output_name_for(tn_str wanted, bool named, uint32_t index, uint32_t count,
                                  std::string_view base, tn_region region, bool* clash) {
  if (named && wanted.size == 0 && is_build()) return TN_NONE;
  if (named && wanted.size != 0) {
    if (!is_build()) return graph.unique_name(view(wanted), false);
    const uint32_t name = graph.names_.add(view(wanted));
    *clash = graph.value_name_clash(name, region);
    return name;
  }
  std::string derived(base);
  derived += "_out";
  if (count > 1) derived += std::to_string(index);
  return graph.unique_name(derived, false);
}

tn_status tn_edit::create_node(const tn_node_desc& desc, tn_node* node) {
  *node = TN_NONE;
  const std::string_view op = symbol_text(desc.op);
  if (op.empty())
    return refuse(fmt::format("a node of operator symbol {}, which is no interned name", desc.op));
  if (!is_live_region(desc.region))
    return refuse(fmt::format("a {} node in region {}, which does not exist", op, desc.region));
  if (desc.before != TN_NONE &&
      (!is_live_node(desc.before) || graph.node(desc.before).region_id != desc.region))
    return refuse(fmt::format("a {} node before node {}, which is not a live node of region {}", op,
                              desc.before, desc.region));
  if (const tn_status status = check_values(desc.inputs, desc.input_count, true, "operands of a new node");
      status != TN_OK)
    return status;
  if (desc.attr_count > max_attrs || (desc.attr_count != 0 && !desc.attrs))
    return refuse(fmt::format("a {} node with {} attributes", op, desc.attr_count));
  for (uint32_t i = 0; i < desc.attr_count; ++i)
    if (const tn_status status = check_attr(desc.attrs[i]); status != TN_OK) return status;
  if (desc.name.size > max_name_bytes)
    return refuse(
        fmt::format("a node name of {} bytes; at most {} are taken", desc.name.size, max_name_bytes));

  uint32_t origin = 0;
  std::string_view origin_name;
  for (uint32_t i = 0; i < desc.origin_count; ++i) {
    if (desc.origins[i] >= graph.node_bound())
      return refuse(fmt::format("origin {} is no node", desc.origins[i]));
    origin = graph.join_origins(origin, graph.node(desc.origins[i]).origin);
    if (origin_name.empty()) origin_name = graph.node_name(desc.origins[i]);
  }
  const std::string_view wanted = desc.name.size != 0 ? view(desc.name) : origin_name;
  const uint32_t name = wanted.empty() ? NamePool::none : graph.unique_name(wanted, true);

  std::vector<uint32_t> output_names(desc.output_count);
  const std::string_view base = name != NamePool::none ? graph.name_text(name) : split_op_name(op).name;
  for (uint32_t i = 0; i < desc.output_count; ++i) {
    const tn_str given = desc.output_names ? desc.output_names[i] : tn_str{nullptr, 0};
    if (given.size > max_name_bytes)
      return refuse(
          fmt::format("a value name of {} bytes; at most {} are taken", given.size, max_name_bytes));
    bool clash = false;
    output_names[i] =
        output_name_for(given, desc.output_names != nullptr, i, desc.output_count, base, desc.region, &clash);
    clash = clash || (output_names[i] != TN_NONE && std::find(output_names.begin(), output_names.begin() + i,
                                                              output_names[i]) != output_names.begin() + i);
    if (clash)
      return refuse(fmt::format(
          "value '{}' is written twice, the second time by {}; single static assignment requires that every "
          "value has one producer: rename one of the two",
          view(given),
          wanted.empty() ? fmt::format("a {} node", op) : fmt::format("node '{}' ({})", wanted, op)));
  }
  // A node of the source stands for itself; so does one that replaces nothing.
  if (origin == 0 && is_build()) {
    const uint32_t first =
        output_names.empty() || output_names[0] == TN_NONE ? uint32_t(NamePool::none) : output_names[0];
    origin = graph.leaf_origin(name != NamePool::none ? name : first);
  }
  int32_t version = desc.op_version;
  if (version == 0 && graph.registry()) {
    version = graph.registry()->domain_version(split_op_name(op).domain);
    if (const OpEntry* entry = graph.registry()->find(desc.op); version == 0 && entry)
      version = entry->def->since_version;
  }
  const tn_attr* const attrs = graph.intern_attrs(desc.attrs, desc.attr_count, sizeof(tn_attr));
  const tn_node id =
      graph.create_node(desc.op, version, desc.region, desc.before, name, {desc.inputs, desc.input_count},
                        attrs, desc.attr_count, output_names, origin);
  if (is_build()) {
    for (const tn_value output : graph.node(id).outputs()) {
      if (output == TN_NONE || graph.value(output).next_of_name == TN_NONE) continue;
      yield_constant_name(output);
      if (graph.value(output).next_of_name != TN_NONE) suspects_.push_back(output);
    }
  } else {
    created_.push_back(id);
    for (uint32_t i = 0; i < desc.input_count; ++i) note_use({id, i, desc.region});
  }
  *node = id;
  return TN_OK;
}

// A constant's name means nothing to anyone but people: it gives way to any other value of that name.
void tn_edit::yield_constant_name(tn_value value) {
  const uint32_t name = graph.value(value).name;
  for (tn_value other = graph.names_.entry(name).first_value; other != TN_NONE;) {
    const tn_value next = graph.value(other).next_of_name;
    if (graph.is_constant(other))
      graph.rename_value(other, graph.unique_name(std::string(graph.name_text(name)), false));
    other = next;
  }
}

tn_status tn_edit::create_region(tn_node parent, std::string_view name, tn_region* region) {
  *region = TN_NONE;
  if (!is_live_node(parent)) return refuse(fmt::format("a region for node {}, which does not exist", parent));
  if (graph.depth(graph.node(parent).region_id) + 1 > Graph::max_region_depth) {
    refuse(fmt::format("{}: regions are nested more than {} deep", node_place(graph, parent),
                       Graph::max_region_depth));
    return TN_ERR_LIMIT;
  }
  if (graph.node(parent).region_count == UINT16_MAX)
    return refuse(fmt::format("{}: more than {} regions", node_place(graph, parent), UINT16_MAX));
  *region = graph.create_region(parent, graph.names_.add(name));
  return TN_OK;
}

tn_status tn_edit::region_input(tn_region region, std::string_view name, const tn_type* type,
                                tn_value* value) {
  *value = TN_NONE;
  if (!is_live_region(region))
    return refuse(fmt::format("an input for region {}, which does not exist", region));
  if (name.size() > max_name_bytes)
    return refuse(
        fmt::format("an input name of {} bytes; at most {} are taken", name.size(), max_name_bytes));
  if (type)
    if (const tn_status status = check_type(*type); status != TN_OK) return status;
  uint32_t given = graph.names_.add(name);
  if (is_build() && graph.value_name_clash(given, region))
    return refuse(
        fmt::format("value '{}' is an input of its graph twice; single static assignment requires unique "
                    "names: rename one of the two",
                    name));
  if (!is_build() || name.empty())
    given = graph.unique_name(name.empty() ? std::string_view("input") : name, false);
  *value = graph.add_region_input(region, given, type ? graph.intern_type(*type) : 0);
  if (graph.value(*value).next_of_name != TN_NONE) {
    yield_constant_name(*value);
    if (graph.value(*value).next_of_name != TN_NONE) suspects_.push_back(*value);
  }
  return TN_OK;
}

tn_status tn_edit::region_outputs(tn_region region, const tn_value* values, uint32_t count) {
  if (!is_live_region(region))
    return refuse(fmt::format("outputs for region {}, which does not exist", region));
  if (const tn_status status = check_values(values, count, false, "outputs of a region"); status != TN_OK)
    return status;
  if (!is_build() && region == Graph::main_region && count == graph.region(region).outputs.size())
    for (uint32_t i = 0; i < count; ++i)
      if (graph.region(region).outputs[i] != values[i])
        replaced_.push_back({graph.region(region).outputs[i], values[i]});
  graph.set_region_outputs(region, {values, count});
  for (uint32_t i = 0; i < count; ++i) note_use({TN_NONE, i, region});
  return TN_OK;
}

tn_status tn_edit::region_output_name(tn_region region, uint32_t index, std::string_view name) {
  if (!is_live_region(region) || index >= graph.region(region).outputs.size())
    return refuse(fmt::format("a name for output {} of region {}, which does not exist", index, region));
  const uint32_t given = graph.names_.add(name.substr(0, max_name_bytes));
  graph.record(Graph::Op::region_output_renamed, region, index, graph.region(region).output_names[index]);
  graph.regions_[region].output_names[index] = given;
  return TN_OK;
}

tn_status tn_edit::input_default(tn_value region_input, tn_value constant) {
  if (!is_live_value(region_input) || graph.value(region_input).kind != TN_VALUE_REGION_INPUT)
    return refuse("a default for a value that is not an input of a region");
  if (!is_live_value(constant) || !graph.is_constant(constant))
    return refuse(fmt::format("the default of input '{}' must be a constant", graph.name(region_input)));
  const tn_value old = graph.default_of(region_input);
  graph.record(Graph::Op::default_set, region_input, old);
  if (old != TN_NONE) graph.values_[old].pinned = 0;
  graph.defaults_[region_input] = constant;
  graph.values_[constant].pinned = 1;
  return TN_OK;
}

tn_status tn_edit::replace_uses(tn_value from, tn_value to) {
  if (from >= graph.value_bound())
    return refuse(fmt::format("replace_uses of value #{}, which does not exist", from));
  if (!is_live_value(to))
    return refuse(fmt::format("the uses of {} replaced by value #{}, which does not exist or was erased",
                              value_place(graph, from), to));
  if (from == to) return TN_OK;
  for (const tn_use& use : graph.users(from)) {
    note_use(use);
    if (use.node != TN_NONE) continue;
    // An output keeps its outside name; the value that now stands there takes it too, so that both stay one.
    Region& region = graph.regions_[use.region];
    const uint32_t outside = region.output_names[use.index];
    if (graph.value(from).kind == TN_VALUE_RESULT && graph.value(to).kind == TN_VALUE_RESULT &&
        graph.value(from).name == outside && outside != NamePool::none &&
        graph.value(from).region == graph.value(to).region) {
      const auto& present = graph.users(to);
      if (std::any_of(present.begin(), present.end(),
                      [](const tn_use& other) { return other.node == TN_NONE; }))
        continue;
      const uint32_t other = graph.value(to).name;
      graph.rename_value(from, other);
      graph.rename_value(to, outside);
    }
  }
  replaced_.push_back({from, to});
  const Value& source = graph.value(from);
  const Value& target = graph.value(to);
  if (source.kind == TN_VALUE_RESULT && target.kind == TN_VALUE_RESULT &&
      graph.node(target.producer).origin == 0)
    note_origin(target.producer, graph.node(source.producer).origin);
  graph.replace_uses(from, to);
  return TN_OK;
}

tn_status tn_edit::set_input(tn_node node, uint32_t index, tn_value value) {
  if (!is_live_node(node))
    return refuse(fmt::format("an operand of node {}, which does not exist or was erased", node));
  if (index > graph.node(node).input_count)
    return refuse(
        fmt::format("{}: operand {} of {}", node_place(graph, node), index, graph.node(node).input_count));
  if (const tn_status status = check_values(&value, 1, true, "operand"); status != TN_OK) return status;
  if (index == graph.node(node).input_count)
    graph.append_input(node, value);
  else if (graph.node(node).input(index) == value)
    return TN_OK;
  else
    graph.set_input(node, index, value);
  note_use({node, index, graph.node(node).region_id});
  changed_.push_back(node);
  return TN_OK;
}

tn_status tn_edit::set_attr(tn_node node, const tn_attr& attr) {
  if (!is_live_node(node))
    return refuse(fmt::format("an attribute of node {}, which does not exist or was erased", node));
  if (const tn_status status = check_attr(attr); status != TN_OK) return status;
  const auto present = graph.node(node).attrs();
  std::vector<tn_attr> list(present.begin(), present.end());
  const auto at =
      std::find_if(list.begin(), list.end(), [&](const tn_attr& other) { return other.name == attr.name; });
  if (at != list.end())
    *at = attr;
  else
    list.push_back(attr);
  if (list.size() > max_attrs)
    return refuse(fmt::format("{}: more than {} attributes", node_place(graph, node), max_attrs));
  const auto count = static_cast<uint32_t>(list.size());
  graph.set_attrs(node, graph.intern_attrs(list.data(), count, sizeof(tn_attr)), count);
  changed_.push_back(node);
  return TN_OK;
}

tn_status tn_edit::remove_attr(tn_node node, tn_sym name) {
  if (!is_live_node(node))
    return refuse(fmt::format("an attribute of node {}, which does not exist or was erased", node));
  if (!graph.find_attr(node, name)) return TN_ERR_NOT_FOUND;
  std::vector<tn_attr> list;
  for (const tn_attr& attr : graph.node(node).attrs())
    if (attr.name != name) list.push_back(attr);
  const auto count = static_cast<uint32_t>(list.size());
  graph.set_attrs(node, graph.intern_attrs(list.data(), count, sizeof(tn_attr)), count);
  changed_.push_back(node);
  return TN_OK;
}

tn_status tn_edit::set_version(tn_node node, int32_t version) {
  if (!is_live_node(node))
    return refuse(fmt::format("the version of node {}, which does not exist or was erased", node));
  graph.record(Graph::Op::version_set, node, static_cast<uint32_t>(graph.node(node).op_version));
  graph.nodes_[node].op_version = version;
  changed_.push_back(node);
  return TN_OK;
}

tn_status tn_edit::erase(tn_node node) {
  if (!is_live_node(node))
    return refuse(fmt::format("node {} erased, which does not exist or was erased already", node));
  erased_.push_back(node);
  graph.erase_node(node);
  return TN_OK;
}

tn_status tn_edit::inline_region(tn_region from, const tn_value* inputs, uint32_t count, tn_node anchor) {
  if (!is_live_region(from) || from == Graph::main_region)
    return refuse(fmt::format("region {} cannot be inlined: it does not exist or is the main one", from));
  if (!is_live_node(anchor))
    return refuse(
        fmt::format("region {} inlined before node {}, which does not exist or was erased", from, anchor));
  const tn_region to = graph.node(anchor).region_id;
  if (graph.is_visible(from, to)) return refuse(fmt::format("region {} inlined into itself", from));
  if (count != graph.region(from).inputs.size())
    return refuse(fmt::format("region '{}' has {} inputs; {} values were given for them",
                              graph.region_name(from), graph.region(from).inputs.size(), count));
  if (const tn_status status = check_values(inputs, count, true, "values for a region's inputs");
      status != TN_OK)
    return status;
  const std::vector<tn_value> region_inputs = graph.region(from).inputs;
  for (uint32_t i = 0; i < count; ++i) {
    if (inputs[i] == TN_NONE) {
      if (graph.value(region_inputs[i]).uses.size() != 0)
        return refuse(fmt::format("region '{}': input {} is used and no value was given for it",
                                  graph.region_name(from), i));
      continue;
    }
    for (const tn_use& use : graph.users(region_inputs[i])) note_use(use);
    graph.replace_uses(region_inputs[i], inputs[i]);
  }
  while (graph.first_node(from) != TN_NONE) {
    const tn_node node = graph.first_node(from);
    graph.move_node(node, to, anchor);
    for (uint32_t i = 0; i < graph.node(node).input_count; ++i) note_use({node, i, to});
    if (!is_build()) created_.push_back(node);
    for (const tn_value output : graph.node(node).outputs()) {
      if (output == TN_NONE) continue;
      // What the owner's inference made of it holds for the region's inputs, not for what stands in their
      // place.
      graph.set_type(output, graph.value(output).type, true);
      const uint32_t name = graph.value(output).name;
      // Sibling regions may share names; in one region they may not.
      if (name != NamePool::none && graph.names_.entry(name).first_value != TN_NONE &&
          (graph.value(output).next_of_name != TN_NONE || graph.names_.entry(name).first_value != output))
        graph.rename_value(output, graph.unique_name(std::string(graph.name_text(name)), false));
    }
  }
  return TN_OK;
}

tn_status tn_edit::set_type(tn_value value, const tn_type& type) {
  if (!is_live_value(value))
    return refuse(fmt::format("the type of value #{}, which does not exist or was erased", value));
  if (const tn_status status = check_type(type); status != TN_OK) return status;
  if (is_build()) {
    graph.set_type(value, graph.intern_type(type), true);
    return TN_OK;
  }
  tn_type narrowed{};
  std::vector<tn_dim> dims;
  if (!meet_types(graph, type, graph.type(value), &narrowed, dims))
    return refuse(fmt::format("{} is {}, and cannot become {}: a type may narrow, never change",
                              value_place(graph, value), type_text(graph, graph.type(value)),
                              type_text(graph, type)));
  graph.set_type(value, graph.intern_type(narrowed), false);
  retyped_.push_back(value);
  return TN_OK;
}

tn_status tn_edit::set_opset(std::string_view domain, int32_t version) {
  const std::string key(domain == "ai.onnx" ? std::string_view() : domain);
  const auto known = graph.opsets_.find(key);
  graph.record(Graph::Op::opset_set, known != graph.opsets_.end(),
               known == graph.opsets_.end() ? 0 : static_cast<uint32_t>(known->second));
  if (graph.recording_) graph.saved_texts_.push_back(key);
  graph.opsets_[key] = version;
  return TN_OK;
}

tn_status tn_edit::set_metadata(std::string_view key, std::string_view text) {
  if (key == Graph::name_key) {
    graph.record(Graph::Op::metadata_set, true);
    if (graph.recording_) {
      graph.saved_texts_.emplace_back(graph.region_name(Graph::main_region));
      graph.saved_texts_.emplace_back(key);
    }
    graph.set_graph_name(text);
    return TN_OK;
  }
  const auto known = graph.metadata_.find(key);
  graph.record(Graph::Op::metadata_set, known != graph.metadata_.end());
  if (graph.recording_) {
    graph.saved_texts_.push_back(known == graph.metadata_.end() ? std::string() : known->second);
    graph.saved_texts_.emplace_back(key);
  }
  graph.metadata_[std::string(key)] = std::string(text);
  return TN_OK;
}
