// Whether a replacement with several results would read, round about through nodes outside the match, what it
// yields itself. Commit would find that too; here it is a refusal of one match, not a fault of the rule.
#include <algorithm>
#include <unordered_set>

#include "match/match_check.hpp"

namespace tenon::rules {
namespace {
constexpr size_t max_visits = 20000;  // beyond, commit decides
}

/// What a body reads, of the region around it too, its node reads.
void MatchChecker::captures(tn_region region, std::vector<tn_value>* values) const {
  tn_region_info info{};
  info.size = sizeof info;
  if (graph_.api()->region(graph_.raw(), region, &info) != TN_OK) return;
  values->insert(values->end(), info.outputs, info.outputs + info.output_count);
  const tn_node* ids = nullptr;
  uint32_t count = 0;
  if (graph_.api()->nodes(graph_.raw(), region, &ids, &count) != TN_OK) return;
  for (uint32_t k = 0; k < count; ++k) {
    const tn_node_info n = graph_.node(ids[k]);
    values->insert(values->end(), n.inputs, n.inputs + n.input_count);
  }
}

/// The results of the match, numbers in `results`, on which `from` depends through nodes outside it.
std::vector<uint32_t> MatchChecker::depends_on(std::vector<tn_value> from,
                                               const std::vector<tn_value>& results) const {
  uint32_t first = UINT32_MAX;
  for (const tn_node n : match_->nodes) first = std::min(first, place ? place(n) : 0);
  std::vector<uint32_t> found;
  std::unordered_set<tn_node> seen;
  while (!from.empty() && seen.size() < max_visits) {
    const tn_value v = from.back();
    from.pop_back();
    const auto info = v == TN_NONE ? tn_value_info{} : graph_.value(v);
    if (v == TN_NONE || info.kind != TN_VALUE_RESULT) continue;
    if (const auto at = std::find(results.begin(), results.end(), v); at != results.end()) {
      found.push_back(static_cast<uint32_t>(at - results.begin()));
      continue;
    }
    if ((place && place(info.producer) < first) || !seen.insert(info.producer).second) continue;
    const tn_node_info n = graph_.node(info.producer);
    from.insert(from.end(), n.inputs, n.inputs + n.input_count);
    for (uint32_t i = 0; i < n.region_count; ++i) captures(n.regions[i], &from);
  }
  return found;
}

bool MatchChecker::cycles() {
  const auto& nodes = rule_->replace.nodes;
  if (rule_->replace.chain) return true;
  std::vector<tn_value> results;
  std::vector<uint32_t> maker;  // which new node yields it
  for (uint32_t i = 0; i < nodes.size(); ++i)
    for (const auto& o : nodes[i].out)
      if (o.value != none && match_->value(o.value) != TN_NONE) {
        results.push_back(match_->value(o.value));
        maker.push_back(i);
      }
  if (results.size() < 2) return true;
  // before[i]: new nodes that must come before i; grown until nothing is new, there are few of them.
  std::vector<std::vector<bool>> before(nodes.size(), std::vector<bool>(nodes.size()));
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<tn_value> outside;
    for (const auto& o : nodes[i].in)
      for (const auto& c : o.choices) {
        if (c.kind == NameRef::Made) {
          for (size_t j = 0; j < i; ++j)
            for (const auto& made : nodes[j].out)
              if (made.made == c.index) before[i][j] = true;
        } else if (c.kind == NameRef::Value) {
          const std::vector<tn_value> list =
              o.list ? match_->list(c.index) : std::vector<tn_value>{match_->value(c.index)};
          outside.insert(outside.end(), list.begin(), list.end());
        }
      }
    for (const uint32_t r : depends_on(std::move(outside), results)) before[i][maker[r]] = true;
  }
  for (size_t k = 0; k < nodes.size(); ++k)
    for (size_t i = 0; i < nodes.size(); ++i)
      for (size_t j = 0; j < nodes.size(); ++j)
        if (before[i][k] && before[k][j]) before[i][j] = true;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (before[i][i])
      return refuse(5, TN_REASON_ESCAPE, results[0], [&](Refusal& r) {
        r.expr = "the results of the match do not depend on each other";
        r.got =
            "an operand of '" + nodes[i].name + "' is computed outside the match from what the rule replaces";
      });
  return true;
}

}  // namespace tenon::rules
