// Proves rules: builds the pattern as a graph, runs it, lets the engine rewrite it, runs that, compares.
#pragma once
#include "match/engine.hpp"
#include "tenon/abi/eval.h"

namespace tenon::rules {

struct TestServices {
  const tn_host* host = nullptr;
  const tn_graph_api* graph = nullptr;
  const tn_edit_api* edit = nullptr;
  const tn_symbols_api* symbols = nullptr;
  const tn_registry_api* registry = nullptr;
  const tn_eval_api* eval = nullptr;
};

class RuleTester {
 public:
  using Report = std::function<void(const std::string& name, bool passed, const std::string& text)>;
  RuleTester(TestServices services, const OpCatalog& ops, const RuleSet& rules, uint64_t seed)
      : services_(services), ops_(ops), rules_(rules), seed_(seed) {}
  /// True when every case passed, and at least one graph was rewritten and computed the same.
  bool test(const Rule& rule, const Report& report);

 private:
  TestServices services_;
  const OpCatalog& ops_;
  const RuleSet& rules_;
  uint64_t seed_;
};

}  // namespace tenon::rules
