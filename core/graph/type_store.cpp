#include "core/graph/type_store.hpp"

#include <algorithm>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"

namespace tenon {

void GraphTypeStore::inferred(tn_node node) {
  if (node < seen_.size()) seen_[node] = true;
}

void GraphTypeStore::set_type(tn_value id, const tn_type& type) {
  const Value& value = graph_.value(id);
  const tn_type& old = graph_.type(id);
  const bool nested = value.region != Graph::main_region;
  tn_type merged{};
  if (value.declared) {
    // Inference first; the hint where inference says nothing.
    merged = type;
    if (type.kind == TN_KIND_NONE) {
      merged = old;
    } else if (!meet_types(graph_, type, old, &merged, dims_)) {
      merged = type;
      hints_overruled.push_back({id, old, graph_.types_[graph_.intern_type(type)]});
    } else if (type.rank >= 0) {
      // A number the model claims for a dimension that inference cannot know is not taken on trust.
      dims_.assign(type.dims, type.dims + type.rank);
      merged.dims = dims_.data();
    }
  } else if (nested) {
    if (type.kind == TN_KIND_NONE && old.kind != TN_KIND_NONE) return;
    merged = type;
  } else if (!meet_types(graph_, old, type, &merged, dims_)) {
    conflicts.push_back({id, old, graph_.types_[graph_.intern_type(type)]});
    return;
  }
  const uint32_t interned = graph_.intern_type(merged);
  if (interned != value.type) changed.push_back(id);
  graph_.set_type(id, interned, value.declared && type.kind == TN_KIND_NONE);
}

void GraphTypeStore::set_elements(tn_value id, const tn_dim* elements, uint32_t count) {
  const uint32_t interned = graph_.intern_elements(elements, count);
  if (interned == graph_.value(id).elements) return;
  graph_.set_elements(id, interned);
  changed.push_back(id);
}

void GraphTypeStore::clear_elements(tn_value id) {
  if (graph_.value(id).region == Graph::main_region || graph_.value(id).elements == 0 ||
      graph_.is_constant(id))
    return;
  graph_.set_elements(id, 0);
  changed.push_back(id);
}

bool report_conflicts(const Graph& graph, const GraphTypeStore& store, Diagnostics& diagnostics) {
  for (const auto& conflict : store.conflicts) {
    const Value& value = graph.value(conflict.value);
    diagnostics.error(
        "G311",
        value.producer != TN_NONE ? node_place(graph, value.producer) : value_place(graph, conflict.value),
        fmt::format("value {} was {} and would become {}; a type may narrow, never change",
                    value_place(graph, conflict.value), type_text(graph, conflict.had),
                    type_text(graph, conflict.found)));
  }
  return store.conflicts.empty();
}

tn_status infer_graph(Graph& graph, Diagnostics& diagnostics) {
  if (!graph.registry()) {
    diagnostics.error(
        "G312", "",
        "the graph has no registry of operators, so nothing can be inferred; load the plugins first");
    return TN_ERR_INVALID;
  }
  GraphTypeStore store(graph);
  store.remember_inferred(graph.node_bound());
  const size_t errors_before = diagnostics.error_count();
  // Regions by depth: owners before what they own, so that inputs of a region are typed when its nodes are
  // reached.
  std::vector<tn_region> regions{Graph::main_region};
  for (size_t at = 0; at < regions.size(); ++at) {
    for (tn_node node = graph.first_node(regions[at]); node != TN_NONE; node = graph.next_node(node)) {
      for (const tn_region region : graph.node(node).regions()) regions.push_back(region);
      // What the owner's inference left out never runs (the other branch of a decided If): typed where it can
      // be, but exporters leave there what is wrong for these very shapes, so its faults are not the model's.
      Diagnostics unheard;
      if (!store.was_inferred(node))
        infer_node(graph, *graph.registry(), node, store, at == 0 ? diagnostics : unheard);
    }
  }
  report_conflicts(graph, store, diagnostics);
  for (const auto& overruled : store.hints_overruled) {
    const auto& outputs = graph.region(Graph::main_region).outputs;
    if (std::find(outputs.begin(), outputs.end(), overruled.value) == outputs.end()) continue;
    // Shapes are hints, and often stale. Who reads the output as another type than it has reads rubbish.
    if (overruled.had.kind == overruled.found.kind && overruled.had.dtype != overruled.found.dtype) {
      diagnostics.error("G311", value_place(graph, overruled.value),
                        fmt::format("the model declares this output as {}, its nodes give {}; declare it as "
                                    "what it is, or convert it with a Cast node",
                                    dtype_name(overruled.had.dtype), dtype_name(overruled.found.dtype)));
      continue;
    }
    diagnostics.warning(
        "G311", value_place(graph, overruled.value),
        fmt::format("the model declares this output as {}, its nodes give {}; what the nodes give is used",
                    type_text(graph, overruled.had), type_text(graph, overruled.found)));
  }
  return diagnostics.error_count() == errors_before ? TN_OK : TN_ERR_INVALID;
}

}  // namespace tenon
