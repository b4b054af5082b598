// ExportModel: regions, names and the operator set.
#include <algorithm>

#include "expansions.hpp"
#include "export_model.hpp"
#include "onnx_fields.hpp"

namespace tenon::onnx {

using sdk::Failure;
using sdk::format;

namespace {
/// Constants up to this size are written into the functions that read them.
constexpr uint64_t largest_baked_bytes = 64;

bool is_control_flow(std::string_view op) {
  return op == "If" || op == "Loop" || op == "Scan" || op == "SequenceMap";
}
bool in_default_domain(std::string_view op) { return op.find("::") == std::string_view::npos; }

/// ONNX Runtime 1.32 runs Swish at opset 24 and has no kernel for it from 25 on: there it is written as what
/// it is made of.
bool runtime_lacks(std::string_view op, int32_t opset) { return op == "Swish" && opset >= 25; }
}  // namespace

ExportModel::ExportModel(const tn_graph_api* graph_api, const tn_symbols_api* symbols,
                         const tn_registry_api* registry, const tn_host* host, tn_graph* graph,
                         ExportOptions options)
    : graph_(graph_api, graph), symbols_(symbols), registry_(registry), host_(host), options_(options) {}

void ExportModel::prepare() {
  collect(options_.opset);
  if (!options_.opset && hole_) collect(opset);
  if (!too_new_.empty()) {
    std::string list;
    for (size_t i = 0; i < too_new_.size() && i < 5; ++i) list += (i ? "; " : "") + too_new_[i];
    if (too_new_.size() > 5) list += format("; and %zu more", too_new_.size() - 5);
    throw Failure(
        TN_ERR_UNSUPPORTED,
        format("opset %d cannot hold the graph: %s. Leave the option opset out, or give a higher one",
               options_.opset, list.c_str()));
  }
  for (const auto& [op, version] : pinned_)
    if (!same_definition(op, version, opset))
      throw Failure(
          TN_ERR_UNSUPPORTED,
          format("operator %s is kept as opset %d has it, since no plugin defines it, but the model must be "
                 "written in opset %d, where it is another; load the plugin that defines it",
                 op.c_str(), version, opset));
  find_reads();
  reserve_main_names();
  for (uint32_t i = static_cast<uint32_t>(regions_.size()); i-- > 0;) write_region(i);
}

bool ExportModel::written_as_function(const sdk::Node& node, const tn_op_def* def, const Requirement& need,
                                      int32_t target) const {
  const std::string_view op = node.op_name();
  if (is_control_flow(op) || (def && (def->flags & TN_OP_CONTROL_FLOW))) return false;
  const bool body = std::any_of(node.regions().begin(), node.regions().end(),
                                [&](tn_region r) { return sdk::view(graph_.region(r).name) == "body"; });
  if (in_default_domain(op)) return body && target && (need.opset > target || runtime_lacks(op, target));
  const bool ours = op.substr(0, 7) == "tenon::";
  if (ours && !body)
    throw Failure(TN_ERR_UNSUPPORTED,
                  "operator " + std::string(op) +
                      " is no ONNX operator and this node keeps no body to write instead; leave out the pass "
                      "or rule that makes it, or give the rule a body",
                  "node " + node.label());
  return body && (ours || def);  // of an operator nobody defines, "body" is an attribute of the source model
}

void ExportModel::collect_node(uint32_t region, tn_node id, int32_t target, std::vector<Region>& found) {
  const sdk::Node node = graph_.node(id);
  const tn_op_def* def = definition(node.op());
  const bool standard = in_default_domain(node.op_name());
  Requirement need;
  if (standard) {
    need = required_opset(graph_, node, def);
    if (registry_ && !def) pinned_.emplace_back(node.op_name(), node.version());
  }
  const bool function = written_as_function(node, def, need, target);
  if (standard && !function && target && (need.opset > target || runtime_lacks(node.op_name(), target)) &&
      can_expand(graph_, node)) {
    expanded_.insert(id);
  } else if (standard && !function) {
    opset = std::max(opset, need.opset);
    if (options_.opset && need.opset > options_.opset)
      too_new_.push_back(format("node %s (%.*s) needs opset %d for %s", node.label().c_str(),
                                static_cast<int>(node.op_name().size()), node.op_name().data(), need.opset,
                                need.reason.c_str()));
    hole_ = hole_ || node.op_name() == "Swish";
  }
  for (tn_region r : node.regions()) {
    const bool body = sdk::view(graph_.region(r).name) == "body";
    if (function && body)
      found.push_back({r, id, Kind::function, region, 0, {}, {}, {}, {}, {}, {}, 0, {}});
    else if (!function && (!standard || !body || is_control_flow(node.op_name())))
      found.push_back({r, id, Kind::subgraph, region, 0, {}, {}, {}, {}, {}, {}, 0, {}});
  }
}

/// Outputs that will need an Identity (see output_names) of a sequence or optional ask for an opset that has
/// it.
void ExportModel::collect_outputs(uint32_t region) {
  const tn_region_info info = graph_.region(regions_[region].id);
  for (uint32_t i = 0; i < info.output_count; ++i) {
    const tn_value_info v = graph_.value(info.outputs[i]);
    if (v.kind == TN_VALUE_RESULT && v.region == regions_[region].id) continue;
    const int32_t need = identity_since(v.type.kind);
    opset = std::max(opset, need);
    if (options_.opset && need > options_.opset)
      too_new_.push_back(
          format("output %u of graph '%s' needs opset %d, since it hands on a value that is no tensor", i,
                 sdk::text(info.name).c_str(), need));
  }
}

void ExportModel::collect(int32_t target) {
  regions_.clear();
  region_index_.clear();
  expanded_.clear();
  too_new_.clear();
  pinned_.clear();
  opset = oldest_written;
  regions_.push_back({graph_.main(), TN_NONE, Kind::main, 0, 0, {}, {}, {}, {}, {}, {}, 0, {}});
  std::vector<Region> found;
  for (uint32_t i = 0; i < regions_.size(); ++i) {
    found.clear();
    for (tn_node n : graph_.nodes(regions_[i].id).copy()) collect_node(i, n, target, found);
    collect_outputs(i);
    for (Region& r : found) {
      const auto index = static_cast<uint32_t>(regions_.size());
      r.context = r.kind == Kind::function ? index : regions_[i].context;
      region_index_.emplace(r.id, index);
      regions_.push_back(std::move(r));
    }
  }
  if (options_.opset) opset = options_.opset;
}

bool ExportModel::is_baked(tn_value v) const {
  const auto t = graph_.constant(v);
  return t && t->bytes() <= largest_baked_bytes;
}

// Innermost first: what a region reads from outside includes what its own regions read through it.
void ExportModel::find_reads() {
  std::unordered_set<tn_value> seen;
  for (uint32_t i = static_cast<uint32_t>(regions_.size()); i-- > 1;) {
    Region& region = regions_[i];
    const bool inside_function = regions_[region.context].kind == Kind::function;
    seen.clear();
    const auto read = [&](tn_value v) {
      if (v == TN_NONE || !seen.insert(v).second) return;
      const tn_value_info info = graph_.value(v);
      if (info.kind == TN_VALUE_CONSTANT ? (inside_function && is_baked(v)) : info.region == region.id)
        return;
      region.reads.push_back(v);
    };
    for (tn_node n : graph_.nodes(region.id).copy()) {
      const sdk::Node node = graph_.node(n);
      for (tn_value v : node.inputs()) read(v);
      for (tn_region r : node.regions()) {
        const auto child = region_index_.find(r);
        if (child == region_index_.end()) continue;
        for (tn_value v : regions_[child->second].reads) read(v);
      }
    }
    const tn_region_info info = graph_.region(region.id);
    for (uint32_t o = 0; o < info.output_count; ++o) read(info.outputs[o]);
  }
}

// Names
// ----------------------------------------------------------------------------------------------------------

std::string ExportModel::unique(std::string_view wanted) {
  std::string name(wanted.empty() ? "value" : wanted);
  if (used_names_.insert(name).second) return name;
  for (uint32_t n = 1;; ++n) {
    std::string next = name + "_" + std::to_string(n);
    if (used_names_.insert(next).second) return next;
  }
}

/// Inputs and outputs keep the names the outside knows them by; everything else gives way.
void ExportModel::reserve_main_names() {
  names_.assign(graph_.value_bound(), {});
  const tn_region_info main = graph_.region(graph_.main());
  for (uint32_t i = 0; i < main.input_count; ++i)
    names_[main.inputs[i]] = unique(sdk::view(graph_.value(main.inputs[i]).name));
  for (uint32_t i = 0; i < main.output_count; ++i) {
    const tn_value_info v = graph_.value(main.outputs[i]);
    const std::string name(sdk::view(graph_.api()->output_name(graph_.raw(), graph_.main(), i)));
    if (name.empty() || !used_names_.insert(name).second)
      continue;  // an input that is an output, or one listed twice
    if (v.kind == TN_VALUE_RESULT && v.region == graph_.main() && names_[main.outputs[i]].empty())
      names_[main.outputs[i]] = name;
  }
}

const std::string& ExportModel::name_in_main(tn_value v) {
  std::string& name = names_[v];
  if (!name.empty()) return name;
  const tn_value_info info = graph_.value(v);
  name = unique(sdk::view(info.name));
  if (info.kind == TN_VALUE_CONSTANT) initializers.push_back({name, v});
  return name;
}

}  // namespace tenon::onnx
