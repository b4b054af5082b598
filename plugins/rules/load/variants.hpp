// Optional nodes, alternatives and repeats expanded: what the matcher works on.
#pragma once
#include "load/findings.hpp"
#include "load/rule_model.hpp"

namespace tenon::rules {

struct VariantNode {
  uint32_t node = none;  // into Rule::nodes
  const PatternNode* from = nullptr;
  const Alternative* what = nullptr;
  std::vector<uint32_t> in;   // per slot of `what`: the value, aliases followed; none
  std::vector<uint32_t> out;  // values, aliases followed; none
  uint32_t chain = none;      // value that feeds it, of a chain
  uint32_t rest = none;       // which slot takes a list of operands
};

struct Variant {
  const Rule* rule = nullptr;
  const Pattern* pattern = nullptr;
  std::vector<VariantNode> nodes;            // in the order of the pattern
  std::vector<uint32_t> alias;               // per value: the value it stands for (absent optional nodes)
  std::vector<uint32_t> producer;            // per value: index into nodes; none: from outside
  std::vector<uint32_t> producer_result;     // and which result of it
  std::vector<std::vector<uint32_t>> lists;  // per value: the values, one a copy, that "...name" collects
  std::vector<uint32_t> copies;              // per node of the rule: how often in a row it is here
  std::vector<uint32_t> outputs;
  uint32_t anchor = 0;  // index into nodes: yields outputs[0]
  uint32_t depth = 1;   // no node of a match is further from the anchor
};

/// Largest first; at most max_variants.
std::vector<Variant> expand(const Rule& rule);

/// "without sc, dv Div": which optional nodes and alternatives a variant has; empty: the rule has but one
/// form.
std::string variant_text(const Variant& variant, const OpCatalog& ops);

/// E204, E209 and unreachable nodes, found when the rule is loaded.
void check_variants(const Rule& rule, const OpCatalog& ops, Findings& findings);

}  // namespace tenon::rules
