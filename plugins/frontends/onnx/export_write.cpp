// ExportModel: messages.
#include <algorithm>

#include "export_model.hpp"
#include "onnx_fields.hpp"
#include "tensor_writer.hpp"
#include "wire_writer.hpp"

namespace tenon::onnx {

using sdk::Failure;
using sdk::format;

namespace {

struct OpName {
  std::string_view domain, name;
};
OpName split(std::string_view op) {
  const size_t at = op.find("::");
  return at == std::string_view::npos ? OpName{"", op} : OpName{op.substr(0, at), op.substr(at + 2)};
}

std::string identity(const std::string& from, const std::string& to) {
  std::string n;
  put_bytes(n, node_field::input, from);
  put_bytes(n, node_field::output, to);
  put_bytes(n, node_field::op_type, "Identity");
  return n;
}

std::string constant_node(const std::string& name, const tn_tensor& tensor) {
  std::string attribute, n;
  put_bytes(attribute, attribute_field::name, "value");
  put_bytes(attribute, attribute_field::t, tensor_message({}, tensor));
  put_int(attribute, attribute_field::type, attribute_type::tensor);
  put_bytes(n, node_field::output, name);
  put_bytes(n, node_field::op_type, "Constant");
  put_bytes(n, node_field::attribute, attribute);
  return n;
}

}  // namespace

const std::string& ExportModel::name_of(uint32_t index, tn_value v) {
  const uint32_t context = regions_[index].context;
  Region& function = regions_[context];
  if (function.kind == Kind::main) return name_in_main(v);
  std::string& name = function.names[v];
  if (!name.empty()) return name;
  // Names inside functions count up, so that equal bodies are equal texts.
  const tn_value_info info = graph_.value(v);
  const auto outside = std::find(function.reads.begin(), function.reads.end(), v);
  if (outside != function.reads.end()) {
    name = "outer" + std::to_string(outside - function.reads.begin());
  } else if (info.kind == TN_VALUE_CONSTANT) {
    name = "constant" + std::to_string(function.counter++);
    put_bytes(function.constants, function_field::node, constant_node(name, graph_.constant(v)->raw()));
  } else if (info.kind == TN_VALUE_REGION_INPUT && info.region == function.id) {
    name = "input" + std::to_string(info.index);
  } else {
    name = "value" + std::to_string(function.counter++);
  }
  return name;
}

void ExportModel::import(uint32_t region, std::string_view domain) {
  if (domain.empty()) return;
  const int32_t version = graph_.api()->opset(graph_.raw(), sdk::str(domain));
  domains.emplace(domain, version > 0 ? version : 1);
  regions_[regions_[region].context].domains.emplace(domain);
}

void ExportModel::write_region(uint32_t index) {
  switch (regions_[index].kind) {
    case Kind::main:
      return write_main(index);
    case Kind::function:
      return write_function(index);
    case Kind::subgraph:
      return write_subgraph(index);
  }
}

std::string ExportModel::value_info(const std::string& name, const tn_type& type, bool with_shape) const {
  std::string out;
  put_bytes(out, value_info_field::name, name);
  tn_type t = type;
  if (!with_shape) t.rank = -1;
  if (t.kind != TN_KIND_NONE && t.dtype != TN_DTYPE_NONE)
    put_bytes(out, value_info_field::type, type_message(t, symbols_, graph_.raw()));
  return out;
}

/// Names of the region's outputs. A value that no node of this region makes, or that is listed before, goes
/// through an Identity, since runtimes expect every output to be the result of a node.
std::vector<std::string> ExportModel::output_names(uint32_t index, std::string& nodes, uint32_t field) {
  const Region& region = regions_[index];
  const tn_region_info info = graph_.region(region.id);
  std::vector<std::string> names;
  std::unordered_set<std::string> listed;
  for (uint32_t i = 0; i < info.output_count; ++i) {
    const tn_value v = info.outputs[i];
    const tn_value_info value = graph_.value(v);
    const std::string inner = name_of(index, v);
    std::string outer = inner;
    if (region.kind == Kind::main) {
      const std::string_view known = sdk::view(graph_.api()->output_name(graph_.raw(), region.id, i));
      if (!known.empty()) outer = known;
    } else if (value.kind != TN_VALUE_RESULT || value.region != region.id || listed.count(inner)) {
      outer = regions_[region.context].kind == Kind::main
                  ? unique(inner + "_output")
                  : "output" + std::to_string(regions_[region.context].counter++);
    }
    if (outer != inner && !listed.count(outer)) put_bytes(nodes, field, identity(inner, outer));
    listed.insert(outer);
    names.push_back(outer);
  }
  return names;
}

void ExportModel::write_nodes(uint32_t index, std::string& out, uint32_t field) {
  std::string bytes;
  for (tn_node n : graph_.nodes(regions_[index].id).copy()) {
    if (const auto older = older_.find(n); older != older_.end()) {
      write_steps(index, graph_.node(n), older->second, out, field);
      continue;
    }
    bytes.clear();
    write_node(index, graph_.node(n), bytes);
    put_bytes(out, field, bytes);
  }
}

void ExportModel::write_steps(uint32_t index, const sdk::Node& node, const Steps& steps, std::string& out,
                              uint32_t field) {
  Region& context = regions_[regions_[index].context];
  std::vector<std::string> between(steps.between);
  std::string part = "part";
  for (const tn_value v : node.outputs().copy())
    if (v != TN_NONE) part = name_of(index, v) + "_part";
  const auto name_at = [&](const Place& place) -> std::string {
    if (place.kind == Place::absent) return {};
    if (place.kind == Place::value) return name_of(index, place.id);
    std::string& name = between[place.id];
    if (name.empty())
      name = context.kind == Kind::main ? unique(part) : "part" + std::to_string(context.counter++);
    return name;
  };
  for (const Step& step : steps.list) {
    std::string n;
    for (const Place& p : step.inputs) put_bytes(n, node_field::input, name_at(p));
    for (const Place& p : step.outputs) put_bytes(n, node_field::output, name_at(p));
    if (step.itself && !node.name().empty() && context.kind == Kind::main)
      put_bytes(n, node_field::name, node.name());
    put_bytes(n, node_field::op_type, step.op);
    for (const StepAttribute& a : step.attrs)
      if (attribute_since(step.op, a.name) <= opset) write_attribute(node, a.name, a.resolved(), n);
    if (step.itself) write_subgraphs(node, n);
    put_bytes(out, field, n);
  }
}

/// A Loop that begins with an optional and goes on with what is none: ONNX's own inference says the latter.
tn_type ExportModel::declared_type(tn_value v) const {
  const tn_value_info info = graph_.value(v);
  const bool optional = info.type.kind == TN_KIND_OPTIONAL || info.type.kind == TN_KIND_OPTIONAL_SEQUENCE;
  if (!optional || info.kind != TN_VALUE_RESULT) return info.type;
  const sdk::Node node = graph_.node(info.producer);
  if (node.op_name() != "Loop" || node.regions().size() != 1) return info.type;
  const tn_region_info body = graph_.region(node.regions()[0]);
  return info.index + 1 < body.output_count ? graph_.value(body.outputs[info.index + 1]).type : info.type;
}

void ExportModel::write_main(uint32_t index) {
  const tn_region_info info = graph_.region(graph_.main());
  write_nodes(index, graph_nodes, graph_field::node);
  const auto outputs = output_names(index, graph_nodes, graph_field::node);
  std::string_view name = sdk::view(info.name);
  if (name.empty()) name = sdk::view(graph_.api()->metadata(graph_.raw(), sdk::str("graph_name")));
  put_bytes(graph_values, graph_field::name, name.empty() ? "graph" : name);
  for (uint32_t i = 0; i < info.input_count; ++i) {
    put_bytes(graph_values, graph_field::input,
              value_info(names_[info.inputs[i]], graph_.value(info.inputs[i]).type, true));
    const tn_value fallback = graph_.api()->default_of(graph_.raw(), info.inputs[i]);
    if (fallback == TN_NONE) continue;
    initializers.push_back({names_[info.inputs[i]], fallback});
    overridable_ = true;
  }
  if (ir_version() < 4)
    for (const Initializer& i : initializers)
      put_bytes(graph_values, graph_field::input, value_info(i.name, graph_.value(i.value).type, true));
  for (uint32_t i = 0; i < info.output_count; ++i)
    put_bytes(graph_values, graph_field::output,
              value_info(outputs[i], declared_type(info.outputs[i]), true));
}

void ExportModel::write_subgraph(uint32_t index) {
  const tn_region_info info = graph_.region(regions_[index].id);
  std::string out;
  // Inputs first: their names are then the ones they had. Runtimes want the shapes of a Loop's.
  std::string inputs;
  for (uint32_t i = 0; i < info.input_count; ++i)
    put_bytes(inputs, graph_field::input,
              value_info(name_of(index, info.inputs[i]), graph_.value(info.inputs[i]).type, true));
  write_nodes(index, out, graph_field::node);
  const auto outputs = output_names(index, out, graph_field::node);
  put_bytes(out, graph_field::name, sdk::view(info.name));
  out += inputs;
  for (uint32_t i = 0; i < info.output_count; ++i)
    put_bytes(out, graph_field::output, value_info(outputs[i], graph_.value(info.outputs[i]).type, false));
  regions_[index].bytes = std::move(out);
}

void ExportModel::write_function(uint32_t index) {
  const tn_region_info info = graph_.region(regions_[index].id);
  const sdk::Node owner = graph_.node(regions_[index].owner);
  const OpName op = split(owner.op_name());
  std::string body;
  for (uint32_t i = 0; i < info.input_count; ++i)
    put_bytes(body, function_field::input, name_of(index, info.inputs[i]));
  for (tn_value v : regions_[index].reads) put_bytes(body, function_field::input, name_of(index, v));
  std::string nodes;
  write_nodes(index, nodes, function_field::node);
  const auto outputs = output_names(index, nodes, function_field::node);
  for (const auto& o : outputs) put_bytes(body, function_field::output, o);
  Region& region = regions_[index];
  body += region.constants;
  body += nodes;
  const auto put_opset = [&](std::string_view domain, int32_t version) {
    std::string entry;
    put_bytes(entry, opset_field::domain, domain);
    put_int(entry, opset_field::version, version);
    put_bytes(body, function_field::opset_import, entry);
  };
  put_opset("", opset);
  std::vector<std::string> used(region.domains.begin(), region.domains.end());
  std::sort(used.begin(), used.end());
  for (const auto& d : used) put_opset(d, domains.at(d));
  region.domain = op.domain.empty() ? "tenon" : std::string(op.domain);
  put_bytes(body, function_field::domain, region.domain);
  put_bytes(body, function_field::doc_string,
            "What the fused operator " + std::string(op.name) + " computes");
  std::string& name = function_of_body_[std::string(op.name) + '\0' + body];
  if (name.empty()) {
    name = std::string(op.name) + "_" + std::to_string(++function_counts_[std::string(op.name)]);
    std::string whole;
    put_bytes(whole, function_field::name, name);
    whole += body;
    put_bytes(functions, model_field::functions, whole);
  }
  region.function = name;
}

void ExportModel::write_call(uint32_t index, const sdk::Node& node, const Region& function,
                             std::string& out) {
  std::vector<tn_value> operands = body_operands(node, graph_.region(function.id).input_count);
  operands.insert(operands.end(), function.reads.begin(), function.reads.end());
  while (!operands.empty() && operands.back() == TN_NONE) operands.pop_back();
  for (tn_value v : operands)
    put_bytes(out, node_field::input,
              v == TN_NONE ? std::string_view() : std::string_view(name_of(index, v)));
}

void ExportModel::write_node(uint32_t index, const sdk::Node& node, std::string& out) {
  const Region* function = nullptr;
  for (tn_region r : node.regions()) {
    const auto at = region_index_.find(r);
    if (at != region_index_.end() && regions_[at->second].kind == Kind::function)
      function = &regions_[at->second];
  }
  if (function) {
    write_call(index, node, *function, out);
  } else {
    auto inputs = node.inputs().copy();
    while (!inputs.empty() && inputs.back() == TN_NONE) inputs.pop_back();
    for (tn_value v : inputs)
      put_bytes(out, node_field::input,
                v == TN_NONE ? std::string_view() : std::string_view(name_of(index, v)));
  }
  for (tn_value v : node.outputs())
    put_bytes(out, node_field::output,
              v == TN_NONE ? std::string_view() : std::string_view(name_of(index, v)));
  // Inside functions names would only keep equal bodies apart.
  if (!node.name().empty() && regions_[regions_[index].context].kind == Kind::main)
    put_bytes(out, node_field::name, node.name());
  const OpName op = split(node.op_name());
  const std::string_view domain = function ? std::string_view(function->domain) : op.domain;
  put_bytes(out, node_field::op_type, function ? std::string_view(function->function) : op.name);
  if (!domain.empty()) put_bytes(out, node_field::domain, domain);
  import(index, domain);
  if (function) return;  // its attributes are in the body
  write_attributes(node, op.name, op.domain.empty(), out);
  write_subgraphs(node, out);
}

void ExportModel::write_subgraphs(const sdk::Node& node, std::string& out) {
  for (const tn_region r : node.regions()) {
    const auto at = region_index_.find(r);
    if (at == region_index_.end() || regions_[at->second].kind != Kind::subgraph) continue;
    std::string attribute;
    put_bytes(attribute, attribute_field::name, sdk::view(graph_.region(r).name));
    put_bytes(attribute, attribute_field::g, regions_[at->second].bytes);
    put_int(attribute, attribute_field::type, attribute_type::graph);
    put_bytes(out, node_field::attribute, attribute);
    regions_[at->second].bytes = {};
  }
}

void ExportModel::write_attributes(const sdk::Node& node, std::string_view op, bool standard,
                                   std::string& out) {
  const tn_op_def* def = choosing_.definition(node.op());
  const char* at = reinterpret_cast<const char*>(node.raw().attrs);
  for (uint32_t i = 0; i < node.raw().attr_count; ++i, at += node.raw().attr_stride) {
    const auto& attr = *reinterpret_cast<const tn_attr*>(at);
    const std::string_view name = graph_.symbol_text(attr.name);
    // A default that this operator set cannot say yet is what it means anyway.
    if (standard && attribute_since(op, name) > opset && is_default(attr, def, name)) continue;
    write_attribute(node, name, attr, out);
  }
}

void ExportModel::write_attribute(const sdk::Node& node, std::string_view name, const tn_attr& attr,
                                  std::string& out) const {
  std::string a;
  put_bytes(a, attribute_field::name, name);
  uint32_t type = 0;
  switch (attr.kind) {
    case TN_ATTR_INT:
      put_int(a, attribute_field::i, attr.u.i);
      type = attribute_type::i;
      break;
    case TN_ATTR_FLOAT:
      put_float(a, attribute_field::f, static_cast<float>(attr.u.f));
      type = attribute_type::f;
      break;
    case TN_ATTR_STRING:
      put_bytes(a, attribute_field::s, sdk::view(attr.u.s));
      type = attribute_type::s;
      break;
    case TN_ATTR_INTS:
      for (uint64_t k = 0; k < attr.count; ++k) put_int(a, attribute_field::ints, attr.u.ints[k]);
      type = attribute_type::ints;
      break;
    case TN_ATTR_FLOATS:
      for (uint64_t k = 0; k < attr.count; ++k)
        put_float(a, attribute_field::floats, static_cast<float>(attr.u.floats[k]));
      type = attribute_type::floats;
      break;
    case TN_ATTR_STRINGS:
      for (uint64_t k = 0; k < attr.count; ++k)
        put_bytes(a, attribute_field::strings, sdk::view(attr.u.strings[k]));
      type = attribute_type::strings;
      break;
    case TN_ATTR_TENSOR:
      put_bytes(a, attribute_field::t, tensor_message({}, *attr.u.tensor));
      type = attribute_type::tensor;
      break;
    case TN_ATTR_TYPE:
      put_bytes(a, attribute_field::tp, type_message(*attr.u.type, symbols_, graph_.raw()));
      type = attribute_type::type_proto;
      break;
    default:
      throw Failure(TN_ERR_INTERNAL,
                    format("attribute '%.*s' has kind %u, which is none", static_cast<int>(name.size()),
                           name.data(), attr.kind),
                    "node " + node.label());
  }
  put_int(a, attribute_field::type, type);
  put_bytes(out, node_field::attribute, a);
}

}  // namespace tenon::onnx
