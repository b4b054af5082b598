#include "model_messages.hpp"

#include <unordered_set>

#include "onnx_fields.hpp"

namespace tenon::onnx {
namespace {

std::pair<std::string_view, std::string_view> decode_entry(Reader m) {
  std::pair<std::string_view, std::string_view> entry;
  while (m.next()) {
    if (m.field() == entry_field::key)
      entry.first = m.text();
    else if (m.field() == entry_field::value)
      entry.second = m.text();
    else
      m.skip();
  }
  return entry;
}

void decode_opset(Reader m, Opsets& opsets) {
  std::string_view domain;
  int64_t version = 0;
  const std::string place = m.place();
  while (m.next()) {
    if (m.field() == opset_field::domain)
      domain = m.text();
    else if (m.field() == opset_field::version)
      version = m.integer();
    else
      m.skip();
  }
  domain = canonical_domain(domain);
  const auto [at, fresh] = opsets.emplace(domain, version);
  if (!fresh && at->second != version)
    throw sdk::Failure(TN_ERR_INVALID,
                       sdk::format("domain '%.*s' is imported twice, as version %lld and as version %lld",
                                   static_cast<int>(domain.size()), domain.data(),
                                   static_cast<long long>(at->second), static_cast<long long>(version)),
                       place);
}

ValueInfoMessage decode_value_info(Reader m) {
  ValueInfoMessage v;
  while (m.next()) {
    if (m.field() == value_info_field::name)
      v.name = m.text();
    else if (m.field() == value_info_field::type)
      v.type = m.bytes();
    else
      m.skip();
  }
  return v;
}

/// The name alone, without decoding the tensor.
std::string_view tensor_name(Reader m) {
  std::string_view name;
  while (m.next()) {
    if (m.field() == tensor_field::name)
      name = m.text();
    else
      m.skip();
  }
  return name;
}
std::string_view sparse_tensor_name(Reader m) {
  std::string_view name;
  while (m.next()) {
    if (m.field() == sparse_field::values)
      name = tensor_name(m.message());
    else
      m.skip();
  }
  return name;
}

std::unique_ptr<GraphMessage> decode_graph(Reader m, int depth);

uint32_t type_of_field(uint32_t field) {
  switch (field) {
    case attribute_field::f:
      return attribute_type::f;
    case attribute_field::i:
      return attribute_type::i;
    case attribute_field::s:
      return attribute_type::s;
    case attribute_field::t:
      return attribute_type::tensor;
    case attribute_field::g:
      return attribute_type::graph;
    case attribute_field::floats:
      return attribute_type::floats;
    case attribute_field::ints:
      return attribute_type::ints;
    case attribute_field::strings:
      return attribute_type::strings;
    case attribute_field::tensors:
      return attribute_type::tensors;
    case attribute_field::graphs:
      return attribute_type::graphs;
    case attribute_field::tp:
      return attribute_type::type_proto;
    case attribute_field::type_protos:
      return attribute_type::type_protos;
    case attribute_field::sparse_tensor:
      return attribute_type::sparse_tensor;
    case attribute_field::sparse_tensors:
      return attribute_type::sparse_tensors;
    default:
      return attribute_type::undefined;
  }
}

AttributeMessage decode_attribute(Reader m, Bytes whole, Block& block, int depth) {
  AttributeMessage a;
  a.message = whole;
  Bytes graph;
  uint32_t found = 0;
  while (m.next()) {
    switch (m.field()) {
      case attribute_field::name:
        a.name = m.text();
        break;
      case attribute_field::ref_attr_name:
        a.reference = m.text();
        break;
      case attribute_field::type:
        a.type = static_cast<uint32_t>(m.integer());
        break;
      case attribute_field::g:
        graph = m.bytes();
        found = attribute_type::graph;
        break;
      default:
        if (const uint32_t type = type_of_field(m.field())) found = type;
        m.skip();
    }
  }
  if (a.type == attribute_type::undefined) a.type = found;
  if (a.type == attribute_type::graph && a.reference.empty()) {
    block.subgraphs.push_back(decode_graph(Reader(graph, m.file_start()), depth + 1));
    a.graph = block.subgraphs.back().get();
  }
  return a;
}

/// The texts of an attribute of one or more strings.
void read_strings(Reader m, std::vector<std::string_view>& out) {
  while (m.next()) {
    if (m.field() == attribute_field::s || m.field() == attribute_field::strings)
      out.push_back(m.text());
    else
      m.skip();
  }
}

/// Gradient reads what its attributes name: values to differentiate by, values to hold, and the one to
/// differentiate. As operands they are found in the node's scope, come before it, and stay whatever becomes
/// of the names. A list with an empty name, or left to a function's caller, is the operator's to refuse.
void read_gradient_names(const char* file_start, const NodeMessage& n, Block& block) {
  for (const char* name : {"xs", "zs", "y"})
    for (size_t i = n.first_attribute; i < block.attributes.size(); ++i)
      if (block.attributes[i].name == name)
        read_strings(Reader(block.attributes[i].message, file_start), block.names);
}

/// Names of operands and results may come in any order in the file; results are collected and put behind.
void decode_node(Reader m, Block& block, int depth, std::vector<std::string_view>& results) {
  NodeMessage n;
  n.first_input = static_cast<uint32_t>(block.names.size());
  n.first_attribute = static_cast<uint32_t>(block.attributes.size());
  results.clear();
  while (m.next()) {
    switch (m.field()) {
      case node_field::input:
        block.names.push_back(m.text());
        break;
      case node_field::output:
        results.push_back(m.text());
        break;
      case node_field::name:
        n.name = m.text();
        break;
      case node_field::op_type:
        n.op_type = m.text();
        break;
      case node_field::domain:
        n.domain = canonical_domain(m.text());
        break;
      case node_field::overload:
        n.overload = m.text();
        break;
      case node_field::attribute: {
        const Bytes whole = m.bytes();
        block.attributes.push_back(decode_attribute(Reader(whole, m.file_start()), whole, block, depth));
        break;
      }
      default:
        m.skip();
    }
  }
  if (n.op_type == "Gradient" && n.domain == "ai.onnx.preview.training")
    read_gradient_names(m.file_start(), n, block);
  n.first_output = static_cast<uint32_t>(block.names.size());
  n.input_count = n.first_output - n.first_input;
  n.output_count = static_cast<uint32_t>(results.size());
  block.names.insert(block.names.end(), results.begin(), results.end());
  n.attribute_count = static_cast<uint32_t>(block.attributes.size()) - n.first_attribute;
  if (n.op_type.empty())
    throw sdk::Failure(TN_ERR_INVALID,
                       "a node has no op_type" +
                           (n.name.empty() ? std::string() : "; it is called '" + std::string(n.name) + "'"),
                       m.place());
  if (block.names.size() > UINT32_MAX / 2)
    throw sdk::Failure(TN_ERR_LIMIT, "the model has more than 2^31 operands and results", m.place());
  block.nodes.push_back(n);
}

void find_captures(GraphMessage& g) {
  std::unordered_set<std::string_view> defined, seen;
  for (const auto& v : g.inputs) defined.insert(v.name);
  defined.insert(g.initializer_names.begin(), g.initializer_names.end());
  defined.insert(g.sparse_names.begin(), g.sparse_names.end());
  for (const auto& n : g.block.nodes)
    for (auto name : g.block.outputs(n)) defined.insert(name);
  const auto read = [&](std::string_view name) {
    if (!name.empty() && !defined.count(name) && seen.insert(name).second) g.captures.push_back(name);
  };
  for (const auto& n : g.block.nodes)
    for (auto name : g.block.inputs(n)) read(name);
  for (const auto& inner : g.block.subgraphs)
    for (auto name : inner->captures) read(name);
  for (const auto& v : g.outputs) read(v.name);
}

std::unique_ptr<GraphMessage> decode_graph(Reader m, int depth) {
  if (depth > deepest_nesting)
    throw sdk::Failure(TN_ERR_LIMIT, sdk::format("subgraphs are nested more than %d deep", deepest_nesting),
                       m.place());
  auto g = std::make_unique<GraphMessage>();
  std::vector<std::string_view> results;
  while (m.next()) {
    switch (m.field()) {
      case graph_field::node:
        decode_node(m.message(), g->block, depth, results);
        break;
      case graph_field::name:
        g->name = m.text();
        break;
      case graph_field::initializer:
        g->initializers.push_back(m.bytes());
        g->initializer_names.push_back(tensor_name(Reader(g->initializers.back(), m.file_start())));
        break;
      case graph_field::sparse_initializer:
        g->sparse_initializers.push_back(m.bytes());
        g->sparse_names.push_back(sparse_tensor_name(Reader(g->sparse_initializers.back(), m.file_start())));
        break;
      case graph_field::input:
        g->inputs.push_back(decode_value_info(m.message()));
        break;
      case graph_field::output:
        g->outputs.push_back(decode_value_info(m.message()));
        break;
      case graph_field::value_info:
        g->value_infos.push_back(decode_value_info(m.message()));
        break;
      default:
        m.skip();
    }
  }
  if (depth > 0) find_captures(*g);
  return g;
}

std::unique_ptr<FunctionMessage> decode_function(Reader m) {
  auto f = std::make_unique<FunctionMessage>();
  std::vector<std::string_view> results;
  while (m.next()) {
    switch (m.field()) {
      case function_field::name:
        f->name = m.text();
        break;
      case function_field::input:
        f->inputs.push_back(m.text());
        break;
      case function_field::output:
        f->outputs.push_back(m.text());
        break;
      case function_field::attribute:
        f->attributes.push_back(m.text());
        break;
      case function_field::node:
        decode_node(m.message(), f->block, 0, results);
        break;
      case function_field::opset_import:
        decode_opset(m.message(), f->opsets);
        break;
      case function_field::domain:
        f->domain = canonical_domain(m.text());
        break;
      case function_field::overload:
        f->overload = m.text();
        break;
      case function_field::attribute_proto: {
        const Bytes whole = m.bytes();
        f->defaults.push_back(decode_attribute(Reader(whole, m.file_start()), whole, f->block, 0));
        break;
      }
      default:
        m.skip();
    }
  }
  if (f->name.empty()) throw sdk::Failure(TN_ERR_INVALID, "a local function has no name", m.place());
  return f;
}

}  // namespace

ModelMessage decode_model(Bytes file) {
  ModelMessage model;
  Reader m(file, file.data);
  while (m.next()) {
    switch (m.field()) {
      case model_field::ir_version:
        model.ir_version = m.integer();
        break;
      case model_field::producer_name:
        model.producer_name = m.text();
        break;
      case model_field::producer_version:
        model.producer_version = m.text();
        break;
      case model_field::domain:
        model.domain = m.text();
        break;
      case model_field::model_version:
        model.model_version = m.integer();
        break;
      case model_field::doc_string:
        model.doc_string = m.text();
        break;
      case model_field::opset_import:
        decode_opset(m.message(), model.opsets);
        break;
      case model_field::metadata_props:
        model.metadata.push_back(decode_entry(m.message()));
        break;
      case model_field::functions:
        model.functions.push_back(decode_function(m.message()));
        break;
      case model_field::graph:
        if (model.graph) throw sdk::Failure(TN_ERR_INVALID, "the model has two graphs", m.place());
        model.graph = decode_graph(m.message(), 0);
        break;
      default:
        m.skip();
    }
  }
  if (!model.graph)
    throw sdk::Failure(
        TN_ERR_INVALID,
        "the file holds no graph; it is no ONNX model, or it is cut short: export or fetch it again");
  return model;
}

std::string label(const NodeMessage& node, const Block& block) {
  if (!node.name.empty()) return std::string(node.name);
  return sdk::format("unnamed %.*s node %lld", static_cast<int>(node.op_type.size()), node.op_type.data(),
                     static_cast<long long>(&node - block.nodes.data()));
}

}  // namespace tenon::onnx
