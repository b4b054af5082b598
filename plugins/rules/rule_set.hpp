// All rules of a run, compiled.
#pragma once
#include "load/loader.hpp"
#include "load/variants.hpp"
#include "tenon/abi/rules.h"

namespace tenon::rules {

/// The operators of the host's registry.
class HostCatalog : public OpCatalog {
 public:
  HostCatalog(const tn_host* host, const tn_graph_api* graph, const tn_registry_api* registry)
      : host_(host), graph_(graph), registry_(registry) {}
  tn_sym symbol(std::string_view text) const override { return graph_->symbol(sdk::str(text)); }
  std::string_view text(tn_sym symbol) const override { return sdk::view(graph_->symbol_text(symbol)); }
  int resolve(std::string_view name, tn_sym* op) const override;
  const tn_op_def* find(tn_sym op) const override { return registry_->find(host_, op); }
  std::vector<std::string_view> names() const override;
  std::vector<Transform> transforms() const override;
  std::string provider(std::string_view op) const override;

 private:
  const tn_host* host_;
  const tn_graph_api* graph_;
  const tn_registry_api* registry_;
};

class RuleSet {
 public:
  struct Entry {
    std::unique_ptr<Rule> rule;
    std::vector<Variant> variants;  // largest first
    int32_t order = 0;              // the priority, moved where `before` and `after` ask for it
  };

  /// Reads, checks and compiles; findings go to diag. Good rules are there even when others are bad.
  RuleSet(const tn_rule_source* sources, uint32_t count, const OpCatalog& ops, const sdk::Diag& diag,
          bool strict = false);
  bool ok() const { return errors_ == 0; }
  const std::vector<Entry>& entries() const { return entries_; }
  static uint64_t digest(const tn_rule_source* sources, uint32_t count);

 private:
  void order(const sdk::Diag& diag);
  static std::string ring_of(std::vector<std::pair<Entry*, Entry*>> edges);
  void chains_by_name();

  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<Entry> entries_;
  size_t errors_ = 0;
};

}  // namespace tenon::rules
