// What commit checks, in this order: refused calls, erased values still used, visibility and order of what
// changed (all of it after a build), names after a build, types. Each step assumes the ones before.
#include <algorithm>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/graph/edit.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/order.hpp"

using namespace tenon;

bool tn_edit::fail(Diagnostics& diagnostics, std::string_view code, std::string_view where,
                   std::string text) const {
  diagnostics.error(code, where, is_build() || who.empty() ? text : fmt::format("'{}': {}", who, text));
  return false;
}

tn_status tn_edit::commit(Diagnostics& diagnostics) {
  const bool good =
      check_pending(diagnostics) && check_erased(diagnostics) &&
      (is_build() ? check_whole(diagnostics) && check_names(diagnostics) : check_uses(diagnostics)) &&
      (is_build() || (flags & TN_EDIT_NO_INFER) || infer(diagnostics));
  if (!good) return TN_ERR_INVALID;
  // Without inference what was known or declared of a replaced value is a hint for the inference to come.
  if (flags & TN_EDIT_NO_INFER)
    for (const auto& pair : replaced_)
      if (graph.value(pair.to).kind == TN_VALUE_RESULT && graph.value(pair.to).type == 0 &&
          graph.value(pair.from).type != 0)
        graph.set_type(pair.to, graph.value(pair.from).type, true);
  if (!is_build() && graph.version_ != start_version_) {
    ++graph.edits_committed_;
    graph.edit_authors_.push_back(graph.names_.add(who));
  }
  graph.recording_ = !graph.snapshots_.empty();
  if (!graph.recording_) {
    graph.journal_.clear();
    graph.saved_outputs_.clear();
    graph.saved_texts_.clear();
    graph.saved_constants_.clear();
  }
  return TN_OK;
}

void tn_edit::rollback() {
  if (fresh_build_) {
    graph.reset();
  } else {
    graph.undo_to(start_);
    graph.version_ = start_version_;
  }
  graph.recording_ = !graph.snapshots_.empty();
}

bool tn_edit::check_pending(Diagnostics& diagnostics) {
  for (const std::string& text : refused_) fail(diagnostics, "G301", "", text);
  return refused_.empty();
}

bool tn_edit::check_erased(Diagnostics& diagnostics) {
  bool good = true;
  for (const tn_node node : erased_) {
    if (graph.node(node).alive) continue;
    for (const tn_value output : graph.node(node).outputs()) {
      if (output == TN_NONE || graph.value(output).uses.size() == 0) continue;
      const tn_use& use = graph.users(output)[0];
      good = fail(diagnostics, "G302", node_place(graph, node),
                  fmt::format("was erased while its result {} is still used by {}; replace the uses first",
                              value_place(graph, output),
                              use.node == TN_NONE ? fmt::format("output {} of the graph", use.index)
                                                  : node_place(graph, use.node)));
    }
  }
  return good;
}

namespace {
tn_value used_value(const Graph& graph, const tn_use& use) {
  if (use.node != TN_NONE) return graph.node(use.node).input(use.index);
  const auto& outputs = graph.region(use.region).outputs;
  return use.index < outputs.size() ? outputs[use.index] : TN_NONE;
}
std::string user_place(const Graph& graph, const tn_use& use) {
  if (use.node != TN_NONE) return node_place(graph, use.node);
  return fmt::format("output {} of region '{}'", use.index, graph.region_name(use.region));
}
// True if `inner`, of a region in a node around which `outer` is made, is written before `outer` is: by the
// very node that makes `outer` (an If whose branches call their result as it does), or an earlier one. It
// does not see `outer` then.
bool precedes(const Graph& graph, const Value& inner, const Value& outer) {
  if (outer.kind != TN_VALUE_RESULT || inner.region == outer.region) return false;
  const tn_node owner = graph.owner_within(outer.region, inner.region);
  return owner != TN_NONE && !graph.comes_before(outer.producer, owner);
}

}  // namespace

void tn_edit::report_cycle(const std::vector<tn_node>& cycle, Diagnostics& diagnostics) const {
  std::string names;
  for (size_t i = 0; i < cycle.size() && i < 8; ++i) names += (i ? " -> " : "") + node_place(graph, cycle[i]);
  if (cycle.size() > 8) names += fmt::format(" -> ... ({} nodes)", cycle.size());
  fail(diagnostics, "G304", cycle.empty() ? std::string() : node_place(graph, cycle[0]),
       fmt::format("nodes depend on each other in a cycle: {}; a graph must be acyclic", names));
}

bool tn_edit::check_use(const tn_use& use, Diagnostics& diagnostics) {
  const bool live = use.node == TN_NONE ? graph.region(use.region).alive : graph.node(use.node).alive;
  if (!live) return true;
  const tn_region region = use.node == TN_NONE ? use.region : graph.node(use.node).region_id;
  const tn_value id = used_value(graph, use);
  if (id == TN_NONE) return true;
  const Value& value = graph.value(id);
  if (value.kind == TN_VALUE_DEAD)
    return fail(diagnostics, "G302", user_place(graph, use),
                fmt::format("reads {}, which was erased", value_place(graph, id)));
  if (value.kind == TN_VALUE_CONSTANT) return true;
  if (!graph.is_visible(value.region, region))
    return fail(
        diagnostics, "G303", user_place(graph, use),
        fmt::format("reads {}, which is defined in region '{}' and not visible here; pass it out as a result",
                    value_place(graph, id), graph.region_name(value.region)));
  if (value.kind != TN_VALUE_RESULT) return true;
  const tn_node user = user_within(graph, value.region, {use.node, use.index, region});
  if (user == TN_NONE || graph.comes_before(value.producer, user)) return true;
  std::vector<tn_node> cycle;
  if (graph.bring_before(value.producer, user, cycle)) return true;
  report_cycle(cycle, diagnostics);
  return false;
}

bool tn_edit::check_uses(Diagnostics& diagnostics) {
  for (const tn_use& use : uses_)
    if (!check_use(use, diagnostics)) return false;
  return true;
}

// After a build: everything, and regions out of order are sorted.
bool tn_edit::check_whole(Diagnostics& diagnostics) {
  for (tn_value id = 0; id < graph.value_bound(); ++id) {
    const Value& value = graph.value(id);
    if (value.region == Graph::main_region) {
      if (value.kind != TN_VALUE_DEAD || value.uses.size() == 0) continue;
    }
    for (const tn_use& use : graph.users(id)) {
      if (value.kind == TN_VALUE_DEAD)
        return fail(diagnostics, "G302", user_place(graph, use),
                    fmt::format("reads {}, which was erased", value_place(graph, id)));
      if (!graph.is_visible(value.region, use.region))
        return fail(diagnostics, "G303", user_place(graph, use),
                    fmt::format("reads {}, which is defined in region '{}' and not visible here",
                                value_place(graph, id), graph.region_name(value.region)));
    }
  }
  for (tn_region region = 0; region < graph.region_bound(); ++region) {
    if (!graph.region(region).alive || graph.order_holds(region)) continue;
    std::vector<tn_node> cycle;
    if (graph.sort_region(region, cycle)) continue;
    report_cycle(cycle, diagnostics);
    return false;
  }
  return true;
}

// A value may share its name with one of a sibling region or one that is made later, not with anything it can
// see. Inputs of inner regions are renamed, since nobody outside knows their names; for results that is an
// error of the model.
bool tn_edit::check_names(Diagnostics& diagnostics) {
  bool good = true;
  for (const tn_value id : suspects_) {
    const uint32_t name = graph.value(id).name;
    if (name == NamePool::none) continue;
    for (tn_value other = graph.names_.entry(name).first_value, next; other != TN_NONE; other = next) {
      const Value& value = graph.value(id);
      const Value& twin = graph.value(other);
      next = twin.next_of_name;
      if (other == id || value.name != name || twin.kind == TN_VALUE_CONSTANT) continue;
      const bool inner = graph.is_visible(twin.region, value.region),
                 outer = graph.is_visible(value.region, twin.region);
      if (!inner && !outer) continue;
      const bool hides_value = inner && (value.kind == TN_VALUE_REGION_INPUT || precedes(graph, value, twin));
      const bool hides_twin = outer && (twin.kind == TN_VALUE_REGION_INPUT || precedes(graph, twin, value));
      const tn_value hidden = hides_value ? id : hides_twin ? other : TN_NONE;
      if (hidden != TN_NONE && graph.value(hidden).region != Graph::main_region) {
        graph.rename_value(hidden, graph.unique_name(std::string(graph.name_text(name)), false));
        continue;
      }
      good =
          fail(diagnostics, "G305",
               value.kind == TN_VALUE_RESULT ? node_place(graph, value.producer) : value_place(graph, id),
               fmt::format("value '{}' is written twice, here and {}; single static assignment requires that "
                           "every value has one producer: rename one of the two",
                           graph.name(id),
                           twin.kind == TN_VALUE_RESULT ? "by " + node_place(graph, twin.producer)
                                                        : std::string("as an input of a graph around it")));
      break;
    }
  }
  return good;
}

void tn_edit::log_refusals() const {
  for (const std::string& text : refused_) log::warning("'{}': {}", who, text);
}
