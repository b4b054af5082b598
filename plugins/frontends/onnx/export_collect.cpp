// ExportModel: regions, names and the operator set.
#include <algorithm>

#include "export_lower.hpp"
#include "export_model.hpp"

namespace tenon::onnx {

using sdk::Failure;
using sdk::format;

namespace {
/// Constants up to this size are written into the functions that read them.
constexpr uint64_t largest_baked_bytes = 64;

}  // namespace

ExportModel::ExportModel(const sdk::Services& services, tn_graph* graph, ExportOptions options)
    : graph_(services.graph, graph),
      symbols_(services.symbols),
      edit_(services.edit),
      choosing_{services.host,
                services.registry,
                services.get<tn_decompose_api>(TN_DECOMPOSE_ID),
                options.opset,
                {}},
      options_(options) {}

void ExportModel::prepare() {
  lower(edit_, graph_, choosing_);
  collect();
  if (!options_.opset) {
    // What the common runtime lacks in the operator set that came out is replaced; so is what came of it.
    choosing_.target = opset;
    lower(edit_, graph_, choosing_);
    collect();
  }
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
          format("opset %d cannot hold the graph: operator %s is kept as opset %d has it, since no plugin "
                 "defines it; load the plugin that defines it, or write that opset",
                 opset, op.c_str(), version));
  find_reads();
  reserve_main_names();
  for (uint32_t i = static_cast<uint32_t>(regions_.size()); i-- > 0;) write_region(i);
}

void ExportModel::ask_for(int32_t needed, const std::string& who, const std::string& reason) {
  opset = std::max(opset, needed);
  if (options_.opset && needed > options_.opset)
    too_new_.push_back(who + format(" needs opset %d for ", needed) + reason);
}

void ExportModel::collect_node(uint32_t region, tn_node id, std::vector<Region>& found) {
  const sdk::Node node = graph_.node(id);
  const std::string_view op = node.op_name();
  const bool standard = in_default_domain(op);
  if (standard && choosing_.registry && !choosing_.definition(node.op()))
    pinned_.emplace_back(op, node.version());
  Choice choice = choosing_.choose(graph_, node);
  const bool function = choice.writing == Writing::function;
  if (choice.writing == Writing::older) {
    older_.emplace(id, std::move(*choice.steps));
  } else if (function) {
    opset = std::max(opset, functions_since);
  } else if (standard) {
    ask_for(choice.need.opset, "node " + node.label() + " (" + std::string(op) + ")", choice.need.reason);
  } else if (op.substr(0, 7) == "tenon::") {
    throw Failure(TN_ERR_UNSUPPORTED,
                  "operator " + std::string(op) +
                      " is no ONNX operator, and this node keeps no body and has no decomposition to write "
                      "instead; leave out the pass or rule that makes it, or give the rule a body",
                  "node " + node.label());
  }
  for (tn_region r : node.regions())
    if (is_written(graph_, node, choosing_, choice.writing, r))
      found.push_back(
          {r, id, function ? Kind::function : Kind::subgraph, region, 0, {}, {}, {}, {}, {}, {}, 0, {}});
}

/// Outputs that will need an Identity (see output_names) of a sequence or optional ask for an opset that has
/// it.
void ExportModel::collect_outputs(uint32_t region) {
  const tn_region_info info = graph_.region(regions_[region].id);
  for (uint32_t i = 0; i < info.output_count; ++i) {
    const tn_value_info v = graph_.value(info.outputs[i]);
    if (v.kind == TN_VALUE_RESULT && v.region == regions_[region].id) continue;
    ask_for(identity_since(v.type.kind), format("output %u of graph '%s'", i, sdk::text(info.name).c_str()),
            "handing on a value that is no tensor");
  }
}

void ExportModel::collect() {
  regions_.clear();
  region_index_.clear();
  older_.clear();
  too_new_.clear();
  pinned_.clear();
  opset = std::max(oldest_chosen, choosing_.target);
  regions_.push_back({graph_.main(), TN_NONE, Kind::main, 0, 0, {}, {}, {}, {}, {}, {}, 0, {}});
  std::vector<Region> found;
  for (uint32_t i = 0; i < regions_.size(); ++i) {
    found.clear();
    for (tn_node n : graph_.nodes(regions_[i].id).copy()) collect_node(i, n, found);
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
