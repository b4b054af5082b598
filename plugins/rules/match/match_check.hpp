// Whether a complete match may be rewritten: constants, types, shapes, who else reads it, guards, gain.
#pragma once
#include "gx/gx_eval.hpp"
#include "match/matcher.hpp"
#include "tenon/abi/explain.h"

namespace tenon::rules {

/// Why not. Text is filled only when details are wanted.
struct Refusal {
  tn_reason reason = TN_REASON_COUNT;  // COUNT: none
  int progress = -1;                   // how far the check had come; the furthest refusal is told
  tn_value value = TN_NONE;
  std::string expr, got, hint;
  std::vector<std::string> by{};     // nodes that stood in the way
  std::vector<tn_node> nodes{};      // that fitted
  const Variant* variant = nullptr;  // the form of the rule that was tried
  bool any() const { return reason != TN_REASON_COUNT; }
};

/// gx's view of a match.
class MatchScope : public gx::Scope {
 public:
  MatchScope(const GraphAccess& graph, const OpCatalog& ops, const Match& match)
      : graph_(graph), ops_(ops), match_(match), rule_(*match.variant->rule) {}
  gx::Value value(uint32_t index) override;
  gx::Value let(uint32_t index) override {
    return index < lets.size() ? lets[index]
                               : gx::Value::unknown("'" + rule_.lets[index].name + "' is not computed yet");
  }
  bool present(uint32_t node) override { return match_.node(node) != TN_NONE; }
  gx::Value attribute(uint32_t node, const std::string& name) override;
  std::string op(uint32_t node) override;
  gx::Value axes(uint32_t node) override;
  int64_t copies(uint32_t node) override { return match_.variant->copies[node]; }
  tn_type type(tn_value v) override;
  bool constant(tn_value v, tn_tensor* t) override { return graph_.constant(v, t); }
  bool is_constant(tn_value v) override { return graph_.value(v).kind == TN_VALUE_CONSTANT; }
  bool elements(tn_value v, std::vector<tn_dim>* out) override;
  tn_truth compare(tn_dim_relation r, tn_dim a, tn_dim b) override {
    return graph_.symbols()->compare(graph_.raw(), r, a, b);
  }
  tn_dim combine(tn_dim_op op, tn_dim a, tn_dim b) override {
    return graph_.symbols()->combine(graph_.raw(), op, a, b);
  }
  int64_t least(tn_dim dim) override;

  std::vector<gx::Value> lets;

 private:
  const GraphAccess& graph_;
  const OpCatalog& ops_;
  const Match& match_;
  const Rule& rule_;
};

/// What measuring both sides of a match said. Unknown: nobody measured, and the static cost decides.
struct Measured {
  enum Choice : uint8_t { Unknown, Rewrite, Keep } choice = Unknown;
  std::string text;  // the figures; of Unknown: why not, empty when nobody asked
};

class MatchChecker {
 public:
  MatchChecker(const GraphAccess& graph, const OpCatalog& ops) : graph_(graph), ops_(ops) {}
  /// True: the match may be rewritten. Else *refusal holds the reason, unless one that came further is there.
  bool check(const Match& match, Refusal* refusal, bool detailed);
  /// Where a node stands in its graph: what it depends on does not stand behind it. May be empty.
  std::function<uint32_t(tn_node)> place;
  /// Asked of matches of rules with cost.measure. May be empty.
  std::function<Measured(const Match&)> measure;
  bool at_any_cost = false;
  /// The figures that let the last match through; empty: the static cost did.
  const std::string& measured() const { return measured_; }

 private:
  bool values();
  bool wish(const ValueWish& w, tn_value v);
  bool shape(const ValueWish& w, tn_value v);
  bool chain();
  bool own_operands();
  bool escapes();
  bool guards();
  bool gain();
  bool cycles();
  void captures(tn_region region, std::vector<tn_value>* values) const;
  std::vector<uint32_t> depends_on(std::vector<tn_value> from, const std::vector<tn_value>& results) const;
  bool refuse(int progress, tn_reason reason, tn_value value, const std::function<void(Refusal&)>& text);

  const GraphAccess& graph_;
  const OpCatalog& ops_;
  const Match* match_ = nullptr;
  const Rule* rule_ = nullptr;
  Refusal* refusal_ = nullptr;
  bool detailed_ = false;
  std::string measured_;
  std::vector<tn_dim> symbols_;
};

/// A computed constant, by expression or transform. `exact` gets a transform's result as it is; the value
/// then holds its numbers, when it has some.
gx::Value evaluate(const Let& let, MatchScope& scope, gx::Evaluator& eval, sdk::OwnedTensor* exact);
gx::Value attribute_value(const tn_attr& a);
/// What the nodes of a value outside the match read: the policy of a value of the pattern.
Escape escape_of(const Variant& variant, uint32_t value);

}  // namespace tenon::rules
