// Finds one match of a variant at an anchor node: backtracking over operand orders, with a budget of steps.
#pragma once
#include <functional>

#include "load/variants.hpp"
#include "tenon/sdk/graph.hpp"

namespace tenon::rules {

/// The graph as matcher and rewriter read it: plain calls, no exceptions on the hot path.
class GraphAccess {
 public:
  GraphAccess(const tn_graph_api* api, const tn_symbols_api* symbols, tn_graph* graph)
      : api_(api), symbols_(symbols), graph_(graph) {}
  tn_node_info node(tn_node id) const {
    tn_node_info i{};
    i.size = sizeof i;
    if (api_->node(graph_, id, &i) != TN_OK) i.alive = 0;
    return i;
  }
  tn_value_info value(tn_value id) const {
    tn_value_info v{};
    v.size = sizeof v;
    if (api_->value(graph_, id, &v) != TN_OK) v.kind = TN_VALUE_DEAD;
    return v;
  }
  sdk::Span<const tn_use> users(tn_value v) const {
    const tn_use* u = nullptr;
    uint32_t n = 0;
    if (api_->users(graph_, v, &u, &n) != TN_OK) n = 0;
    return {u, n};
  }
  bool constant(tn_value v, tn_tensor* t) const {
    return v != TN_NONE && api_->constant(graph_, v, t) == TN_OK;
  }
  std::string value_name(tn_value v) const;
  std::string node_name(tn_node n) const;
  std::string_view op_name(tn_sym op) const { return sdk::view(api_->symbol_text(op)); }
  const tn_graph_api* api() const { return api_; }
  const tn_symbols_api* symbols() const { return symbols_; }
  tn_graph* raw() const { return graph_; }

 private:
  const tn_graph_api* api_;
  const tn_symbols_api* symbols_;
  tn_graph* graph_;
};

constexpr uint32_t unbound = TN_NONE - 1;  // TN_NONE itself is "absent"

struct Match {
  const Variant* variant = nullptr;
  std::vector<tn_node> nodes;    // per node of the variant
  std::vector<tn_value> values;  // per value: bound, TN_NONE (absent) or unbound
  std::vector<tn_node> inner;    // further nodes of assoc trees
  std::vector<std::pair<uint32_t, std::vector<tn_value>>> rests;  // what "...name" of one node took
  tn_region region = 0;

  tn_value value(uint32_t v) const {
    if (v == none || v >= variant->alias.size()) return TN_NONE;
    // Aliases of aliases were followed where they were used; names of the rule are followed here.
    for (size_t i = 0; i < variant->alias.size() && variant->alias[v] != v; ++i) {
      v = variant->alias[v];
      if (v == none) return TN_NONE;
    }
    return values[v] == unbound ? TN_NONE : values[v];
  }
  /// The operands that a list of the rule stands for; TN_NONE: a hole among them.
  std::vector<tn_value> list(uint32_t v) const {
    for (const auto& r : rests)
      if (r.first == v) return r.second;
    std::vector<tn_value> all;
    for (const uint32_t each : variant->lists[v]) all.push_back(value(each));
    return all;
  }
  /// The graph node of a node of the rule; TN_NONE when the variant is without it.
  tn_node node(uint32_t rule_node) const {
    for (size_t i = 0; i < variant->nodes.size(); ++i)
      if (variant->nodes[i].node == rule_node) return nodes[i];
    return TN_NONE;
  }
  bool has(tn_node n) const {
    for (const tn_node m : nodes)
      if (m == n) return true;
    for (const tn_node m : inner)
      if (m == n) return true;
    return false;
  }
};

/// Nodes of the regions that run, region by region, each in topological order. Bodies that fused nodes keep
/// are what they were fused from, and left out.
std::vector<tn_node> running_nodes(const GraphAccess& graph, const OpCatalog& ops);

/// The deepest failed attempt, for near misses.
struct NearMiss {
  uint32_t matched = 0;  // nodes of the pattern
  tn_node at = TN_NONE;
  tn_value value = TN_NONE;
  std::string wanted;                // "Relu|Sigmoid"; filled when details are wanted
  std::vector<tn_node> nodes;        // that fitted
  const Variant* variant = nullptr;  // whose attempt it was
};

class Matcher {
 public:
  Matcher(const GraphAccess& graph, const OpCatalog& ops) : graph_(graph), ops_(ops) {}
  /// accept: looks at a complete match; false: search on. `detailed`: keep near misses.
  using Accept = std::function<bool(Match&)>;
  enum Result { Found, NotFound, OverBudget };
  Result run(const Variant& variant, tn_node anchor, Match* match, const Accept& accept, bool detailed,
             int budget = step_budget);
  const NearMiss& near_miss() const { return near_; }
  int steps() const { return steps_; }  // of the last run
  /// Kinds of nodes that a rule may not match again ("once").
  std::function<bool(const Rule&, tn_node)> made_by;

  static constexpr int step_budget = 10000;  // of all variants of a rule at one anchor

 private:
  struct Goal {
    uint32_t node;
    tn_node at;
  };
  bool solve(size_t goal);
  bool down();
  bool match_node(uint32_t n, tn_node at, size_t goal);
  bool operands(uint32_t n, const tn_value* in, uint32_t count, size_t goal);
  bool bind_operand(uint32_t n, size_t slot, tn_value v);
  bool bind_rest(uint32_t value, std::vector<tn_value> operands);
  bool assoc(uint32_t n, tn_node at, size_t goal);
  bool assoc_tree(uint32_t n, std::vector<tn_value>& leaves, size_t goal);
  bool branch(uint32_t n, tn_value leaf, tn_node_info* below, tn_node* node);
  bool flatten(uint32_t n, std::vector<tn_value>& leaves);
  bool assign(uint32_t n, const std::vector<tn_value>& leaves, std::vector<bool>& used, size_t slot,
              size_t goal);
  bool chain_operand(uint32_t n, const tn_node_info& info, size_t goal);
  bool bind(uint32_t value, tn_value graph_value);
  bool slot(const VariantNode& n, size_t i, tn_value v, const tn_value* in, uint32_t count);
  bool literal(const Slot& s, tn_value v, const tn_value* in, uint32_t count);
  bool attributes(const VariantNode& n, const tn_node_info& info);
  bool commutes(const VariantNode& n, tn_sym op) const;
  bool in_any_order(const VariantNode& n, const tn_node_info& info) const;
  uint32_t flags_of(tn_sym op) const;
  void undo(size_t trail, size_t goals);
  void miss(tn_node at, tn_value value, const VariantNode* wanted);

  const GraphAccess& graph_;
  const OpCatalog& ops_;
  const Variant* variant_ = nullptr;
  Match* match_ = nullptr;
  const Accept* accept_ = nullptr;
  bool detailed_ = false;
  int steps_ = 0, budget_ = step_budget;
  std::vector<Goal> goals_;
  struct Trail {
    enum Kind : uint8_t { Node, Value, Rest } kind;
    uint32_t index;
  };
  std::vector<Trail> trail_;
  NearMiss near_;
  mutable std::vector<std::pair<tn_sym, uint32_t>> flags_;  // of operators met, and `variadic`
};

/// The attribute's value as the operator means it: the node's own, else the default. NULL: none.
const tn_attr* effective_attribute(const tn_node_info& node, tn_sym name, std::string_view text,
                                   const OpCatalog& ops, tn_attr* scratch);
bool meets(const Predicate& wish, const tn_attr& attribute);

}  // namespace tenon::rules
