// GraphBuilder: inputs, constants and nodes.
#include <algorithm>

#include "graph_builder.hpp"
#include "onnx_fields.hpp"
#include "opset_forms.hpp"

namespace tenon::onnx {

using sdk::Failure;
using sdk::format;
using sdk::str;

namespace {
// Functions that call others many times could make any number of nodes.
constexpr uint64_t most_inlined_nodes = 1'000'000;
std::string quoted(std::string_view s) { return "'" + std::string(s) + "'"; }
}  // namespace

void GraphBuilder::declare_inputs_and_constants(Frame& frame) {
  const GraphMessage& graph = *frame.graph;
  const bool main = frame.outer == nullptr;
  // Before IR version 4 every initializer had to be listed as an input too; since then such a listing makes
  // it a default that the caller may override.
  const bool overridable = model_.ir_version >= 4;
  std::unordered_map<std::string_view, size_t> initializers;
  for (size_t i = 0; i < graph.initializer_names.size(); ++i)
    initializers.emplace(graph.initializer_names[i], i);
  std::unordered_map<std::string_view, tn_value> defaulted;
  for (const auto& input : graph.inputs) {
    if (input.name.empty()) throw Failure(TN_ERR_INVALID, "a graph input has no name");
    const bool initialised = initializers.count(input.name) != 0;
    if (initialised && !overridable) continue;
    if (frame.names.find(input.name))
      throw Failure(TN_ERR_INVALID, "the graph lists input " + quoted(input.name) +
                                        " twice; names must be unique, since the graph is in single static "
                                        "assignment (SSA) form: rename one of the two");
    if (initialised && !main)
      throw Failure(TN_ERR_UNSUPPORTED,
                    "input " + quoted(input.name) +
                        " of a subgraph is an initializer too; only inputs of the model can have defaults",
                    "graph " + std::string(graph.name));
    TypeReader::Type type;
    if (!input.type.empty()) type = types_.read(Reader(input.type, file_start()), std::string(input.name));
    // What a subgraph says of its inputs' shapes is often stale; the node that runs it knows better.
    const tn_type unranked = type.unranked();
    tn_value v = TN_NONE;
    sdk::check(s_.edit_api->region_input(s_.edit, frame.region,
                                         str(main ? std::string(input.name) : value_name(frame, input.name)),
                                         main ? type.get() : &unranked, &v),
               "creating an input");
    define(frame, input.name, v, "input");
    if (initialised) defaulted.emplace(input.name, v);
  }
  for (size_t i = 0; i < graph.initializers.size(); ++i) {
    const TensorMessage tensor = read_tensor(Reader(graph.initializers[i], file_start()));
    if (tensor.name.empty()) throw Failure(TN_ERR_INVALID, format("initializer %zu has no name", i));
    const auto input = defaulted.find(tensor.name);
    if (input == defaulted.end()) {
      define(frame, tensor.name, constants_.make(tensor, value_name(frame, tensor.name)), "initializer");
      continue;
    }
    if (input->second == TN_NONE)
      throw Failure(TN_ERR_INVALID, "initializer " + quoted(tensor.name) + " is given twice");
    const tn_value v = constants_.make(tensor, std::string(tensor.name) + ".default");
    sdk::check(s_.edit_api->input_default(s_.edit, input->second, v), "giving an input its default");
    input->second = TN_NONE;
  }
  for (Bytes bytes : graph.sparse_initializers) {
    SparseMessage sparse = read_sparse_tensor(Reader(bytes, file_start()), s_.limits, dense_bytes_left_);
    if (sparse.values.name.empty()) throw Failure(TN_ERR_INVALID, "a sparse initializer has no name");
    define(frame, sparse.values.name,
           constants_.make(std::move(sparse.dense), value_name(frame, sparse.values.name)),
           "sparse initializer");
  }
}

const AttributeMessage* GraphBuilder::resolve(const Frame& frame, const AttributeMessage& a) const {
  if (a.reference.empty()) return &a;
  if (!frame.bindings)
    throw Failure(TN_ERR_INVALID, "attribute " + quoted(a.name) + " refers to " + quoted(a.reference) +
                                      " of a function, but is not inside one");
  const auto bound = frame.bindings->find(a.reference);
  return bound == frame.bindings->end() ? nullptr : bound->second;
}

FunctionMessage* GraphBuilder::find_function(const NodeMessage& node) const {
  if (functions_.empty()) return nullptr;
  std::string key(node.domain);
  key.append(1, '\0').append(node.op_type).append(1, '\0').append(node.overload);
  const auto at = functions_.find(key);
  return at == functions_.end() ? nullptr : at->second;
}

int64_t GraphBuilder::opset_of(const Frame& frame, const NodeMessage& node) const {
  const auto own = frame.opsets->find(node.domain);
  if (own != frame.opsets->end()) return own->second;
  const auto models = model_.opsets.find(node.domain);
  if (models != model_.opsets.end()) return models->second;
  throw Failure(TN_ERR_INVALID,
                "it uses operator " + quoted(node.op_type) + " of domain " +
                    quoted(node.domain.empty() ? "ai.onnx" : node.domain) +
                    ", of which the model imports no version; expected an entry in opset_import",
                place(frame, node));
}

tn_sym GraphBuilder::op_symbol(const NodeMessage& node) {
  if (!node.domain.empty())
    return s_.graph_api->symbol(str(std::string(node.domain) + "::" + std::string(node.op_type)));
  const auto [at, fresh] = default_symbols_.emplace(node.op_type, 0);
  if (fresh) at->second = s_.graph_api->symbol(str(node.op_type));
  return at->second;
}

void GraphBuilder::process(Frame& frame, const NodeMessage& node) {
  if (!frame.prefix.empty() && ++nodes_inlined_ > most_inlined_nodes)
    throw Failure(TN_ERR_LIMIT,
                  format("inlining the model's functions makes more than %llu nodes",
                         static_cast<unsigned long long>(most_inlined_nodes)),
                  place(frame, node));
  frame.current = &node;
  const auto results = frame.block->outputs(node);
  if (node.domain.empty() && std::all_of(results.begin(), results.end(), [](auto n) { return n.empty(); }))
    throw Failure(TN_ERR_INVALID,
                  "it has no outputs; a node of ai.onnx exists for what it computes: name its output, or "
                  "remove it",
                  place(frame, node));
  check_attribute_names(frame, node);
  if (FunctionMessage* function = find_function(node)) return push_function(frame, node, *function);
  if (node.op_type == "Constant" && node.domain.empty() && make_constant_node(frame, node)) return;
  make_node(frame, node);
}

void GraphBuilder::check_attribute_names(const Frame& frame, const NodeMessage& node) const {
  const auto all = frame.block->attributes_of(node);
  constexpr size_t few = 32;  // above that, comparing each with each would let one node take forever
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool twice = all.size() > few
                           ? !seen.insert(all[i].name).second
                           : std::any_of(all.begin(), all.begin() + i,
                                         [&](const AttributeMessage& a) { return a.name == all[i].name; });
    if (twice)
      throw Failure(TN_ERR_INVALID,
                    "attribute " + quoted(all[i].name) + " is given twice; remove one of the two",
                    place(frame, node));
  }
}

// An attribute that the operator does not have changes nothing, and whoever wrote it meant something by it.
// Older versions of an operator have attributes that today's has not; their upgrades see to those.
void GraphBuilder::check_known_attributes(const Frame& frame, const NodeMessage& node, int32_t version,
                                          const tn_op_def& definition) const {
  if (attrs_.empty()) return;
  std::vector<std::string_view> known;
  for (uint32_t i = 0; i < definition.attr_count; ++i) known.push_back(sdk::view(definition.attrs[i].name));
  if (version < definition.since_version)
    for (const std::string_view older : older_attributes(node.op_type, version)) known.push_back(older);
  for (const tn_attr& attribute : attrs_) {
    const std::string_view name = sdk::view(s_.graph_api->symbol_text(attribute.name));
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string all;
    for (const std::string_view one : known)
      if (attribute_since(node.op_type, one) <= version) all += (all.empty() ? "" : ", ") + std::string(one);
    throw Failure(TN_ERR_INVALID,
                  "it has an attribute " + quoted(name) + ", which " + std::string(node.op_type) +
                      format(" of opset %d", version) + " does not have" +
                      (all.empty() ? "; it has none" : "; it has " + all) + ": correct or remove it",
                  place(frame, node));
  }
}

bool GraphBuilder::make_constant_node(Frame& frame, const NodeMessage& node) {
  const auto outputs = frame.block->outputs(node);
  const std::string where = place(frame, node);
  const AttributeMessage* value = nullptr;
  for (const auto& a : frame.block->attributes_of(node)) {
    const AttributeMessage* bound = resolve(frame, a);
    if (!bound) continue;
    if (value)
      throw Failure(TN_ERR_INVALID,
                    "a Constant node must have exactly one value attribute, found " + quoted(value->name) +
                        " and " + quoted(a.name),
                    where);
    value = bound;
  }
  if (!value)
    throw Failure(TN_ERR_INVALID, "a Constant node must have exactly one value attribute, found none", where);
  if (outputs.size() != 1 || outputs[0].empty())
    throw Failure(TN_ERR_INVALID, "a Constant node must have one output", where);
  const std::string name = value_name(frame, outputs[0]);
  tn_value v = TN_NONE;
  if (value->type == attribute_type::tensor) {
    Reader m(value->message, file_start());
    while (m.next()) {
      if (m.field() == attribute_field::t)
        v = constants_.make(read_tensor(m.message(), name), name);
      else
        m.skip();
    }
    if (v == TN_NONE)
      throw Failure(TN_ERR_INVALID,
                    "attribute " + quoted(value->name) + " says it holds a tensor, but has none", where);
  } else {
    attributes_.clear();
    v = constants_.make(
        attributes_.scalar_or_list(attributes_.decode(*value, 0, file_start(), types_, where)), name);
  }
  define_results(frame, node, &v);
  return true;
}

void GraphBuilder::make_node(Frame& frame, const NodeMessage& node) {
  attributes_.clear();
  attrs_.clear();
  inputs_.clear();
  output_names_.clear();
  long_names_.clear();
  for (std::string_view name : frame.block->inputs(node))
    inputs_.push_back(name.empty() ? TN_NONE : find(frame, name)->value);
  while (!inputs_.empty() && inputs_.back() == TN_NONE) inputs_.pop_back();
  for (const auto& a : frame.block->attributes_of(node)) {
    const AttributeMessage* bound = resolve(frame, a);
    if (!bound) continue;  // an attribute of the function that the call leaves out, so it is left out here
    if (bound->type == attribute_type::graph) {
      if (!bound->graph || bound != &a)
        throw Failure(TN_ERR_UNSUPPORTED,
                      "attribute " + quoted(a.name) + " hands a graph to a function, which is not supported",
                      place(frame, node));
      frame.pending.emplace_back(a.name, bound->graph);
      continue;
    }
    // Which operands a kernel may write over: no part of what the node means, and gone since version 6.
    if (a.name == "consumed_inputs" && node.domain.empty() && opset_of(frame, node) < 6) continue;
    attrs_.push_back(attributes_.decode(*bound, s_.graph_api->symbol(str(a.name)), file_start(), types_,
                                        place(frame, node)));
  }
  const auto results = frame.block->outputs(node);
  long_names_.reserve(results.size() + 1);
  const bool verbatim = frame.prefix.empty();
  for (std::string_view name : results) {
    if (name.empty())
      output_names_.push_back({nullptr, 0});
    else if (verbatim)
      output_names_.push_back(str(name));
    else
      output_names_.push_back(str(long_names_.emplace_back(value_name(frame, name))));
  }
  tn_node_desc d{};
  d.size = sizeof d;
  d.op = op_symbol(node);
  const int64_t version = opset_of(frame, node);
  if (version < 1 || version > INT32_MAX)
    throw Failure(TN_ERR_INVALID,
                  format("its domain is imported in version %lld", static_cast<long long>(version)),
                  place(frame, node));
  if (node.domain.empty() && (version < oldest_opset || version > newest_opset))
    throw Failure(TN_ERR_UNSUPPORTED,
                  format("it is written in opset %lld of ai.onnx; supported are %d to %d",
                         static_cast<long long>(version), oldest_opset, newest_opset),
                  place(frame, node));
  d.op_version = static_cast<int32_t>(version);
  d.region = frame.region;
  d.before = TN_NONE;
  d.name = verbatim || node.name.empty()
               ? str(node.name)
               : str(long_names_.emplace_back(frame.prefix + std::string(node.name)));
  d.inputs = inputs_.data();
  d.input_count = static_cast<uint32_t>(inputs_.size());
  d.attrs = attrs_.data();
  d.attr_count = static_cast<uint32_t>(attrs_.size());
  d.output_names = output_names_.data();
  d.output_count = static_cast<uint32_t>(output_names_.size());
  sdk::check(s_.edit_api->create_node(s_.edit, &d, &frame.current_node),
             ("creating " + place(frame, node)).c_str());
  if (!s_.registry) return;
  const tn_op_def* definition = s_.registry->find(s_.host, d.op);
  if (!definition)
    hint_types(frame, node);
  else if (node.domain.empty())
    check_known_attributes(frame, node, d.op_version, *definition);
}

void GraphBuilder::define_results(Frame& frame, const NodeMessage& node, const tn_value* values) {
  const auto names = frame.block->outputs(node);
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    Slot& slot = *frame.names.find(names[i]);
    slot.value = values[i];
    slot.made = true;
  }
}

// Of operators nobody knows, the types written in the model are the only ones there are. All others are
// inferred: value_info is often stale.
void GraphBuilder::hint_types(Frame& frame, const NodeMessage& node) {
  if (!frame.graph) return;
  const auto [at, fresh] = value_types_.try_emplace(frame.graph);
  if (fresh) {
    for (const auto& v : frame.graph->value_infos) at->second.emplace(v.name, v.type);
    for (const auto& v : frame.graph->outputs) at->second.emplace(v.name, v.type);
  }
  tn_node_info info{};
  info.size = sizeof info;
  sdk::check(s_.graph_api->node(s_.graph, frame.current_node, &info), "reading a node");
  const std::vector<tn_value> results(info.outputs, info.outputs + info.output_count);
  const auto names = frame.block->outputs(node);
  for (size_t i = 0; i < names.size() && i < results.size(); ++i) {
    const auto type = at->second.find(names[i]);
    if (type == at->second.end() || type->second.empty() || results[i] == TN_NONE) continue;
    auto read = types_.read(Reader(type->second, file_start()), std::string(names[i]));
    if (read.type.kind != TN_KIND_NONE)
      sdk::check(s_.edit_api->set_type(s_.edit, results[i], read.get()), "setting a declared type");
  }
}

}  // namespace tenon::onnx
