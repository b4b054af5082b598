// Types at commit: the new nodes, what was changed, and a bounded worklist of users whose operands became
// more precise.
#include <algorithm>
#include <queue>
#include <set>
#include <tuple>

#include "core/base/text.hpp"
#include "core/graph/edit.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/type_store.hpp"

namespace tenon {

class CommitInference {
 public:
  CommitInference(tn_edit& edit, Diagnostics& diagnostics)
      : edit_(edit), graph_(edit.graph), store_(edit.graph), diagnostics_(diagnostics) {}

  bool run() {
    for (const tn_node node : edit_.created_) enqueue(node);
    for (const tn_node node : edit_.changed_) enqueue(node);
    for (const tn_value value : edit_.retyped_) enqueue_users(value);
    left_ = queued_.size() + max_followers;
    if (!drain()) return false;
    for (const auto& pair : edit_.replaced_)
      if (!settle(pair.from, pair.to)) return false;
    return drain();
  }

 private:
  // Narrowing is an improvement, not a need: beyond this many nodes the rest keeps what it knows.
  static constexpr size_t max_followers = 4096;

  struct Place {
    uint32_t depth;
    uint64_t label;
    tn_node node;
    bool operator<(const Place& other) const {
      return std::tie(depth, label, node) < std::tie(other.depth, other.label, other.node);
    }
  };

  void enqueue(tn_node node) {
    if (!graph_.node(node).alive) return;
    queued_.insert({graph_.depth(graph_.node(node).region_id), graph_.node(node).label, node});
  }
  void enqueue_users(tn_value value) {
    for (const tn_use& use : graph_.users(value)) {
      const tn_node node = use.node != TN_NONE ? use.node : graph_.region(use.region).parent;
      if (node != TN_NONE) enqueue(node);
    }
  }

  // Takes nodes in order, owners of regions before what they own; followers are users of results that
  // changed.
  bool drain() {
    while (!queued_.empty()) {
      if (left_ == 0) {
        queued_.clear();
        break;
      }
      --left_;
      const Place place = *queued_.begin();
      queued_.erase(queued_.begin());
      store_.changed.clear();
      Diagnostics found;
      const tn_status status = infer_node(graph_, *graph_.registry(), place.node, store_, found);
      for (Diagnostic diagnostic : found.all()) {
        if (!edit_.who.empty()) diagnostic.text = fmt::format("'{}': {}", edit_.who, diagnostic.text);
        diagnostics_.add(std::move(diagnostic));
      }
      if (status != TN_OK) return false;
      if (!store_.conflicts.empty()) {
        const auto& conflict = store_.conflicts[0];
        return edit_.fail(diagnostics_, "G311", node_place(graph_, place.node),
                          fmt::format("value {} was {} and would become {}; a type may narrow, never change",
                                      value_place(graph_, conflict.value), type_text(graph_, conflict.had),
                                      type_text(graph_, conflict.found)));
      }
      // Values inside the node's regions changed by the node's own doing: only its results concern others.
      for (const tn_value value : store_.changed)
        if (graph_.value(value).producer == place.node) enqueue_users(value);
    }
    return true;
  }

  // What replaces a value describes the same data: contradictions are errors, and what was known is kept.
  bool settle(tn_value from, tn_value to) {
    const tn_type had = graph_.type(from), got = graph_.type(to);
    std::vector<tn_dim> dims;
    tn_type joined{};
    const Value& target = graph_.value(to);
    const bool can_narrow = target.kind == TN_VALUE_RESULT;
    if (!meet_types(graph_, got, had, &joined, dims) || (!can_narrow && !is_as_precise(graph_, got, had))) {
      const tn_node producer = target.producer != TN_NONE ? target.producer : graph_.value(from).producer;
      return edit_.fail(diagnostics_, "G313",
                        producer == TN_NONE ? value_place(graph_, to) : node_place(graph_, producer),
                        fmt::format("value {} of type {} was to be replaced by {} of type {}; the "
                                    "replacement must have an equal or more precise type",
                                    value_place(graph_, from), type_text(graph_, had),
                                    value_place(graph_, to), type_text(graph_, got)));
    }
    if (can_narrow && !types_equal(joined, got)) graph_.set_type(to, graph_.intern_type(joined), false);
    const tn_dim* elements = nullptr;
    uint32_t count = 0;
    const bool knew = graph_.find_elements(from, &elements, &count);
    const bool knows = graph_.find_elements(to, &elements, &count);
    if (knew && !knows && can_narrow) graph_.set_elements(to, graph_.value(from).elements);
    if (!types_equal(graph_.type(to), had) || graph_.value(to).elements != graph_.value(from).elements)
      enqueue_users(to);
    return true;
  }

  tn_edit& edit_;
  Graph& graph_;
  GraphTypeStore store_;
  Diagnostics& diagnostics_;
  std::set<Place> queued_;
  size_t left_ = 0;  // inferences that may still be made
};

}  // namespace tenon

bool tn_edit::infer(tenon::Diagnostics& diagnostics) {
  if (!graph.registry()) return true;
  return tenon::CommitInference(*this, diagnostics).run();
}
