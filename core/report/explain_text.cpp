#include "core/report/explain_text.hpp"

#include <tenon/abi/explain.h>

#include <algorithm>
#include <set>

#include "core/base/text.hpp"

namespace tenon {

std::vector<std::string> explained_names(const OptimizeReport& report) {
  std::set<std::string> names;
  for (const auto& [key, count] : report.explained) names.insert(key.first);
  for (const auto& [name, count] : report.rules) names.insert(name);
  return {names.begin(), names.end()};
}

namespace {

std::string entry_text(const ExplainEntry& e) {
  std::string s = e.place.empty() ? "(no node)" : e.place;
  if (!e.expr.empty()) s += ": " + e.expr;
  if (!e.got.empty()) s += (e.expr.empty() ? ": " : " -- ") + e.got;
  if (e.pattern_nodes && e.reason == TN_REASON_STRUCTURE)
    s += fmt::format(" ({} of {} nodes)", e.matched_nodes, e.pattern_nodes);
  if (!e.hint.empty()) s += "   hint: " + e.hint;
  return s;
}

// Applied first; near misses last, the nearest of them first.
bool before(const ExplainEntry& a, const ExplainEntry& b) {
  const auto rank = [](const ExplainEntry& e) {
    return e.reason == TN_REASON_APPLIED ? 0u : e.reason == TN_REASON_STRUCTURE ? 2u : 1u;
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  return a.pattern_nodes - a.matched_nodes < b.pattern_nodes - b.matched_nodes;
}

}  // namespace

std::string explain_rule_text(const OptimizeReport& report, std::string_view rule) {
  const auto counts = report.rules.find(std::string(rule));
  std::string s = fmt::format("{}", rule);
  if (counts != report.rules.end())
    s += fmt::format("   matched {} applied {}", counts->second.matched, counts->second.applied);
  s += "\n";
  for (const auto& [key, count] : report.explained) {
    if (key.first != rule) continue;
    s += fmt::format("  {:<10} {:>5}  {}\n", reason_name(key.second), count.count, entry_text(count.example));
  }
  std::vector<const ExplainEntry*> misses;
  for (const auto& e : report.records)
    if (e.who == rule && e.reason != TN_REASON_APPLIED) misses.push_back(&e);
  std::stable_sort(misses.begin(), misses.end(), [](const auto* a, const auto* b) { return before(*a, *b); });
  if (!misses.empty()) s += "  where it did not act:\n";
  for (size_t i = 0; i < misses.size() && i < 20; ++i)
    s += fmt::format("    {:<9} {}\n", reason_name(misses[i]->reason), entry_text(*misses[i]));
  if (misses.size() > 20) s += fmt::format("    ... and {} more (--json lists all)\n", misses.size() - 20);
  return s;
}

std::string explain_node_text(const OptimizeReport& report, std::string_view node) {
  std::vector<const ExplainEntry*> found;
  for (const auto& e : report.records)
    if (e.place == node) found.push_back(&e);
  std::stable_sort(found.begin(), found.end(), [](const auto* a, const auto* b) { return before(*a, *b); });
  std::string s;
  for (const auto* e : found)
    s += fmt::format("  {:<24} {:<9} {}\n", e->who, reason_name(e->reason), entry_text(*e));
  return s;
}

Json explain_record_json(const ExplainEntry& e) {
  Json j = {
      {"pass", e.pass}, {"rule", e.who}, {"root", e.place}, {"result", std::string(reason_name(e.reason))}};
  if (!e.expr.empty()) j["expr"] = e.expr;
  if (!e.got.empty()) j["got"] = e.got;
  if (!e.hint.empty()) j["hint"] = e.hint;
  if (e.pattern_nodes) j["matched_nodes"] = e.matched_nodes, j["pattern_nodes"] = e.pattern_nodes;
  return j;
}

}  // namespace tenon
