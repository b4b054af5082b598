#include "graph_builder.hpp"

#include <algorithm>
#include <functional>

#include "onnx_fields.hpp"

namespace tenon::onnx {

using sdk::Failure;
using sdk::format;
using sdk::str;

namespace {
/// Nested calls and subgraphs together: far above any real model, far below what memory allows.
constexpr size_t deepest_frames = 512;
/// Calls of functions in all: functions that call others twice make any number of calls in a few lines.
constexpr uint64_t most_calls = 250'000;

std::string function_key(std::string_view domain, std::string_view name, std::string_view overload) {
  std::string key(domain);
  return key.append(1, '\0').append(name).append(1, '\0').append(overload);
}
std::string quoted(std::string_view s) { return "'" + std::string(s) + "'"; }
std::string prefixed(const std::string& prefix, std::string_view name) {
  std::string s;
  s.reserve(prefix.size() + name.size());
  return s.append(prefix).append(name);
}
}  // namespace

GraphBuilder::GraphBuilder(ModelMessage& model, const BuilderServices& services)
    : model_(model),
      s_(services),
      types_(services.symbols, services.graph),
      constants_(services.files, services.file, services.edit_api, services.edit),
      attributes_(services.limits) {
  for (const auto& f : model_.functions)
    if (!functions_.emplace(function_key(f->domain, f->name, f->overload), f.get()).second)
      throw Failure(TN_ERR_INVALID, "the model defines function " + quoted(f->name) + " of domain " +
                                        quoted(f->domain) +
                                        " twice; two definitions need different overloads");
}

void GraphBuilder::build() {
  push_main();
  while (!stack_.empty()) step(*stack_.back());
}

std::string GraphBuilder::place(const Frame& frame, const NodeMessage& node) const {
  return "node " + prefixed(frame.prefix, label(node, *frame.block));
}
std::string GraphBuilder::value_name(const Frame& frame, std::string_view name) const {
  const auto renamed = frame.renamed.find(name);
  return renamed != frame.renamed.end() ? renamed->second : prefixed(frame.prefix, name);
}

// Names
// ---------------------------------------------------------------------------------------------------------

GraphBuilder::Slot* GraphBuilder::find(Frame& frame, std::string_view name) const {
  for (Frame* f = &frame; f; f = f->outer) {
    if (Slot* slot = f->names.find(name)) return slot;
  }
  return nullptr;
}

void GraphBuilder::define(Frame& frame, std::string_view name, tn_value value, const char* what) {
  const auto [at, fresh] = frame.names.emplace(name, Slot{});
  if (!fresh)
    throw Failure(TN_ERR_INVALID, std::string(what) + " " + quoted(name) +
                                      " has a name that is already taken; names must be unique, since the "
                                      "graph is in single static assignment (SSA) form");
  at->value = value;
  at->made = true;
}

void GraphBuilder::declare_results(Frame& frame) {
  const Block& block = *frame.block;
  for (uint32_t i = 0; i < block.nodes.size(); ++i) {
    for (std::string_view name : block.outputs(block.nodes[i])) {
      if (name.empty()) continue;
      const auto [at, fresh] = frame.names.emplace(name, Slot{TN_NONE, i, false});
      if (fresh) continue;
      const std::string other =
          at->node == UINT32_MAX ? "a graph input or initializer" : label(block.nodes[at->node], block);
      throw Failure(TN_ERR_INVALID,
                    "it writes " + quoted(name) + ", which " + other +
                        " writes already; every value has one producer in an ONNX graph (single static "
                        "assignment, SSA): rename one of the two",
                    place(frame, block.nodes[i]));
    }
  }
}

void GraphBuilder::undefined(const Frame& frame, const NodeMessage* node, std::string_view name) const {
  if (!node)
    throw Failure(TN_ERR_INVALID,
                  "the output " + quoted(name) + " is made by no node, and is no input or initializer");
  throw Failure(TN_ERR_INVALID,
                "it reads " + quoted(name) +
                    ", which nothing defines: no node makes it, and it is no graph input or initializer",
                place(frame, *node));
}

// Order
// ---------------------------------------------------------------------------------------------------------

bool GraphBuilder::ready(Frame& frame, const NodeMessage& node) const {
  bool all = true;
  const auto look = [&](std::string_view name) {
    if (name.empty()) return;
    if (const Slot* own = frame.names.find(name)) {
      all = all && own->made;
      return;
    }
    const Slot* slot = frame.outer ? find(*frame.outer, name) : nullptr;
    if (!slot) undefined(frame, &node, name);
    if (!slot->made)
      throw Failure(TN_ERR_INVALID,
                    "it reads " + quoted(name) +
                        ", which the node around it makes: the two wait for one another in a circle",
                    place(frame, node));
  };
  for (std::string_view name : frame.block->inputs(node)) look(name);
  for (const auto& a : frame.block->attributes_of(node))
    if (a.graph)
      for (std::string_view name : a.graph->captures) look(name);
  return all;
}

// Kahn's algorithm over the nodes not made yet, the lowest number first, so that a sorted rest keeps its
// order.
void GraphBuilder::sort_rest(Frame& frame) {
  const Block& block = *frame.block;
  if (!frame.order.empty())
    throw Failure(TN_ERR_INTERNAL, "a sorted graph is not in order",
                  place(frame, block.nodes[frame.order[frame.next]]));
  const auto count = static_cast<uint32_t>(block.nodes.size()), first = static_cast<uint32_t>(frame.next);
  std::vector<uint32_t> waits(count, 0);
  std::vector<std::vector<uint32_t>> users(count);
  const auto each_producer = [&](uint32_t i, auto&& use) {
    const auto look = [&](std::string_view name) {
      const Slot* own = frame.names.find(name);
      if (own && !own->made) use(own->node);
    };
    for (std::string_view name : block.inputs(block.nodes[i])) look(name);
    for (const auto& a : block.attributes_of(block.nodes[i]))
      if (a.graph)
        for (std::string_view name : a.graph->captures) look(name);
  };
  for (uint32_t i = first; i < count; ++i)
    each_producer(i, [&](uint32_t producer) { users[producer].push_back(i), ++waits[i]; });
  std::vector<uint32_t> heap;
  for (uint32_t i = first; i < count; ++i)
    if (waits[i] == 0) heap.push_back(i);  // ascending is a valid min-heap
  frame.order.resize(count);
  for (uint32_t i = 0; i < first; ++i) frame.order[i] = i;
  size_t done = first;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const uint32_t i = heap.back();
    heap.pop_back();
    frame.order[done++] = i;
    for (uint32_t user : users[i])
      if (--waits[user] == 0)
        heap.push_back(user), std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  if (done == count) return;
  // Walking from any node left to a producer that is left must come back to a node seen before.
  uint32_t at = first;
  while (waits[at] == 0) ++at;
  std::vector<uint32_t> walked;
  std::vector<bool> seen(count, false);
  while (!seen[at]) {
    seen[at] = true;
    walked.push_back(at);
    uint32_t producer = at;
    each_producer(at, [&](uint32_t p) {
      if (waits[p] != 0 || p == at) producer = p;
    });
    at = producer;
  }
  std::string circle = label(block.nodes[at], block);
  size_t shown = 0;
  for (size_t i = walked.size(); i-- > 0 && walked[i] != at;)
    if (++shown <= 8) circle += " -> " + label(block.nodes[walked[i]], block);
  if (shown > 8) circle += format(" -> ... %zu more", shown - 8);
  throw Failure(
      TN_ERR_INVALID,
      "nodes wait for one another in a circle (a cycle): " + circle + " -> " + label(block.nodes[at], block),
      place(frame, block.nodes[at]));
}

// Frames
// --------------------------------------------------------------------------------------------------------

void GraphBuilder::push_main() {
  auto frame = std::make_unique<Frame>();
  frame->graph = model_.graph.get();
  frame->block = &frame->graph->block;
  frame->opsets = &model_.opsets;
  frame->region = s_.graph_api->main_region;
  frame->names.reserve(frame->block->nodes.size() + frame->graph->initializers.size() +
                       frame->graph->inputs.size());
  declare_inputs_and_constants(*frame);
  declare_results(*frame);
  stack_.push_back(std::move(frame));
}

void GraphBuilder::push_subgraph(Frame& parent, std::string_view attribute, const GraphMessage& graph) {
  if (stack_.size() >= deepest_frames)
    throw Failure(TN_ERR_LIMIT,
                  format("subgraphs and functions are nested more than %zu deep", deepest_frames),
                  place(parent, *parent.current));
  auto frame = std::make_unique<Frame>();
  frame->graph = &graph;
  frame->block = &graph.block;
  frame->outer = &parent;
  frame->opsets = parent.opsets;
  frame->bindings = parent.bindings;
  frame->prefix = parent.prefix;
  sdk::check(s_.edit_api->create_region(s_.edit, parent.current_node, str(attribute), &frame->region),
             "creating a region");
  declare_inputs_and_constants(*frame);
  declare_results(*frame);
  stack_.push_back(std::move(frame));
}

void GraphBuilder::circular_call(const Frame& caller, const NodeMessage& node,
                                 const FunctionMessage& function) const {
  std::string circle;
  bool inside = false;
  for (const auto& f : stack_) {
    inside = inside || f->function == &function;
    if (inside && f->function) circle += std::string(f->function->name) + " -> ";
  }
  throw Failure(TN_ERR_INVALID,
                "functions call each other in a circle (recursion): " + circle + std::string(function.name) +
                    "; ONNX functions cannot be recursive",
                place(caller, node));
}

void GraphBuilder::push_function(Frame& caller, const NodeMessage& node, FunctionMessage& function) {
  if (function.active) circular_call(caller, node, function);
  if (++calls_made_ > most_calls)
    throw Failure(TN_ERR_LIMIT,
                  format("inlining the model's functions takes more than %llu calls",
                         static_cast<unsigned long long>(most_calls)),
                  place(caller, node));
  if (stack_.size() >= deepest_frames)
    throw Failure(TN_ERR_LIMIT,
                  format("subgraphs and functions are nested more than %zu deep", deepest_frames),
                  place(caller, node));
  if (node.input_count > function.inputs.size() || node.output_count > function.outputs.size())
    throw Failure(TN_ERR_INVALID,
                  format("it passes %u inputs and takes %u outputs, but function '%.*s' has %zu and %zu",
                         node.input_count, node.output_count, static_cast<int>(function.name.size()),
                         function.name.data(), function.inputs.size(), function.outputs.size()),
                  place(caller, node));
  auto frame = std::make_unique<Frame>();
  frame->function = &function;
  frame->block = &function.block;
  frame->opsets = &function.opsets;
  frame->region = caller.region;
  const std::string wanted = prefixed(caller.prefix, node.name.empty() ? node.op_type : node.name);
  frame->prefix = wanted + "/";
  for (uint64_t n = 1; !prefixes_.insert(frame->prefix).second; ++n)
    frame->prefix = wanted + "_" + std::to_string(n) + "/";

  auto bindings = std::make_shared<Bindings>();
  for (const auto& a : function.defaults) (*bindings)[a.name] = &a;
  for (const auto& a : caller.block->attributes_of(node))
    if (const AttributeMessage* bound = resolve(caller, a)) (*bindings)[a.name] = bound;
  frame->bindings = std::move(bindings);

  const auto actual = caller.block->inputs(node);
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const std::string_view name = i < actual.size() ? actual[i] : std::string_view();
    define(*frame, function.inputs[i], name.empty() ? TN_NONE : find(caller, name)->value, "function input");
  }
  const auto results = caller.block->outputs(node);
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i].empty()) frame->renamed.emplace(function.outputs[i], value_name(caller, results[i]));
  declare_results(*frame);
  function.active = true;
  stack_.push_back(std::move(frame));
}

void GraphBuilder::step(Frame& frame) {
  if (frame.pending_next < frame.pending.size()) {
    const auto [name, graph] = frame.pending[frame.pending_next++];
    return push_subgraph(frame, name, *graph);
  }
  if (frame.current_node != TN_NONE) {  // its subgraphs are done: from here on its results can be read
    tn_node_info info{};
    info.size = sizeof info;
    sdk::check(s_.graph_api->node(s_.graph, frame.current_node, &info), "reading a node");
    const std::vector<tn_value> results(info.outputs, info.outputs + info.output_count);
    define_results(frame, *frame.current, results.data());
    frame.current_node = TN_NONE;
    frame.pending.clear();
    frame.pending_next = 0;
  }
  const auto& nodes = frame.block->nodes;
  if (frame.next == nodes.size()) return finish(frame);
  const NodeMessage* node = &nodes[frame.order.empty() ? frame.next : frame.order[frame.next]];
  if (!ready(frame, *node)) {
    sort_rest(frame);
    node = &nodes[frame.order[frame.next]];
    (void)ready(frame, *node);  // reports names that nothing defines
  }
  ++frame.next;
  process(frame, *node);
}

void GraphBuilder::finish(Frame& frame) {
  if (frame.function) {
    finish_function(frame, *stack_[stack_.size() - 2]);
    return stack_.pop_back();
  }
  if (!frame.outer && frame.graph->outputs.empty())
    throw Failure(TN_ERR_INVALID,
                  "the graph has no outputs, so it computes nothing; name some in graph.output");
  std::vector<tn_value> outputs;
  for (const auto& v : frame.graph->outputs) {
    const Slot* slot = find(frame, v.name);
    if (!slot || !slot->made || slot->value == TN_NONE) undefined(frame, nullptr, v.name);
    if (!frame.outer) check_output_type(v, slot->value);
    outputs.push_back(slot->value);
  }
  const auto count = static_cast<uint32_t>(outputs.size());
  sdk::check(s_.edit_api->region_outputs(s_.edit, frame.region, outputs.data(), count),
             "setting the outputs of a graph");
  if (!frame.outer) {
    for (uint32_t i = 0; i < count; ++i)
      sdk::check(s_.edit_api->region_output_name(s_.edit, frame.region, i, str(frame.graph->outputs[i].name)),
                 "naming an output");
  }
  stack_.pop_back();
}

// Shapes that a model declares for its outputs are often stale, and what its nodes give is used. An element
// type that is not what they give is a fault: readers of the output would take its bytes for something else.
void GraphBuilder::check_output_type(const ValueInfoMessage& declared, tn_value value) {
  if (declared.type.empty()) return;
  const std::string name(declared.name);
  const TypeReader::Type type = types_.read_element(Reader(declared.type, file_start()), name);
  if (type.type.kind == TN_KIND_NONE || type.type.dtype == TN_DTYPE_NONE) return;
  tn_value_info info{};
  info.size = sizeof info;
  sdk::check(s_.graph_api->value(s_.graph, value, &info), "reading an output");
  if (info.type.kind == TN_KIND_NONE) {  // of a node: inference meets the declaration
    const tn_type hint = type.unranked();
    sdk::check(s_.edit_api->set_type(s_.edit, value, &hint), "setting a declared type");
  } else if (info.type.kind == type.type.kind && info.type.dtype != TN_DTYPE_NONE &&
             info.type.dtype != type.type.dtype) {
    throw Failure(TN_ERR_INVALID, "the model declares output " + quoted(name) + " as " +
                                      sdk::dtype_name(type.type.dtype) + ", but it is " +
                                      sdk::dtype_name(info.type.dtype) +
                                      "; declare it as what it is, or convert it with a Cast node");
  }
}

void GraphBuilder::finish_function(Frame& frame, Frame& caller) {
  FunctionMessage& function = *frame.function;
  std::vector<tn_value> results;
  for (size_t i = 0; i < caller.current->output_count; ++i) {
    const Slot* slot = frame.names.find(function.outputs[i]);
    if (!slot || !slot->made)
      throw Failure(
          TN_ERR_INVALID,
          "function " + quoted(function.name) + " does not make its output " + quoted(function.outputs[i]),
          place(caller, *caller.current));
    results.push_back(slot->value);
  }
  function.active = false;
  define_results(caller, *caller.current, results.data());
}

}  // namespace tenon::onnx
