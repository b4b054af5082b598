#include "core/report/explain_text.hpp"

#include <tenon/abi/explain.h>

#include <algorithm>
#include <set>

#include "core/base/text.hpp"

namespace tenon {

namespace {

constexpr size_t most_places = 20;

uint32_t missing(const ExplainEntry& e) {
  return e.pattern_nodes - std::min(e.matched_nodes, e.pattern_nodes);
}

std::string entry_text(const ExplainEntry& e) {
  std::string s = e.place;
  if (e.reason == TN_REASON_STRUCTURE && e.pattern_nodes != 0) {
    s += fmt::format(": {} of {} nodes", e.matched_nodes, e.pattern_nodes);
    if (!e.got.empty()) s += ", then " + e.got;
    if (!e.expr.empty()) s += ", " + e.expr;
  } else if (e.reason == TN_REASON_APPLIED) {
    // "new <- old, old": the new node is the place.
    const size_t arrow = e.got.find("<-");
    if (arrow != std::string::npos) s += " " + e.got.substr(arrow);
    if (!e.expr.empty()) s += " (" + e.expr + ")";
  } else {
    if (!e.expr.empty()) s += (s.empty() ? "" : ": ") + e.expr;
    if (!e.got.empty()) s += (!e.expr.empty() ? " -- " : s.empty() ? "" : ": ") + e.got;
  }
  if (!e.variant.empty()) s += " [" + e.variant + "]";
  if (!e.hint.empty()) s += "   hint: " + e.hint;
  return s;
}

std::string_view label(uint32_t reason) {
  return reason == TN_REASON_STRUCTURE ? "near miss" : reason_name(reason);
}

// Applied first, then what was refused as a whole, then near misses with the fewest nodes missing.
bool before(const ExplainEntry& a, const ExplainEntry& b) {
  const auto rank = [](const ExplainEntry& e) {
    return e.reason == TN_REASON_APPLIED ? 0u : e.reason == TN_REASON_STRUCTURE ? 2u : 1u;
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  return missing(a) < missing(b);
}

std::vector<const ExplainEntry*> best_first(std::vector<const ExplainEntry*> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto* a, const auto* b) { return before(*a, *b); });
  return entries;
}

std::string switch_text(const Switches& switches, const RuleInfo& rule) {
  std::vector<std::string> names = {rule.name, rule.switch_name};
  names.insert(names.end(), rule.aliases.begin(), rule.aliases.end());
  for (const std::string& name : names) {
    const SwitchState state = switches.state(name);
    if (state == SwitchState::unset) continue;
    return fmt::format("{} ({})", state == SwitchState::on ? "on" : "off", switches.decided_by(name));
  }
  return rule.enabled ? "on (default)" : "off (its rule says so)";
}

std::string constants_text(const ExplainCount& count) {
  if (count.constants_added == 0 && count.constants_removed == 0) return {};
  return fmt::format("   constants +{} -{}", format_bytes(count.constants_added),
                     format_bytes(count.constants_removed));
}

}  // namespace

std::vector<std::string> explained_names(const OptimizeReport& report) {
  std::set<std::string> names;
  for (const auto& [key, count] : report.explained) names.insert(key.first);
  for (const auto& [name, count] : report.rules) names.insert(name);
  return {names.begin(), names.end()};
}

std::string explain_rule_text(const OptimizeReport& report, const Engine& engine, std::string_view name) {
  std::string s;
  const auto rule = std::find_if(engine.rules().begin(), engine.rules().end(),
                                 [&](const RuleInfo& r) { return r.name == name; });
  if (rule != engine.rules().end())
    s = fmt::format("rule {}   {}:{}  {}  stage {}  priority {}", name, rule->path, rule->line,
                    report.switched_off.count(rule->name) != 0 ? "off (its check failed)"
                                                               : switch_text(engine.switches(), *rule),
                    rule->stage, rule->priority);
  else
    s = fmt::format("{}", name);
  const auto counts = report.rules.find(std::string(name));
  if (counts != report.rules.end()) {
    s += "  ";
    if (counts->second.roots != 0) s += fmt::format(" roots {} ", counts->second.roots);
    s += fmt::format(" matched {}  applied {}", counts->second.matched, counts->second.applied);
  }
  s += "\n";
  for (const auto& [key, count] : report.explained) {
    if (key.first != name || key.second == TN_REASON_STRUCTURE) continue;
    s += fmt::format("  {:<9} {:>5}  {}{}\n", label(key.second), count.count, entry_text(count.example),
                     constants_text(count));
  }
  std::vector<const ExplainEntry*> places;
  for (const ExplainEntry& e : report.records)
    if (e.who == name && e.reason != TN_REASON_APPLIED && e.reason != TN_REASON_SWITCH) places.push_back(&e);
  if (!places.empty()) s += "  where it did not act, the nearest to a match first:\n";
  places = best_first(std::move(places));
  for (size_t i = 0; i < places.size() && i < most_places; ++i)
    s += fmt::format("    {:<9} {}\n", label(places[i]->reason), entry_text(*places[i]));
  if (places.size() > most_places)
    s += fmt::format("    ... and {} more (--json lists all)\n", places.size() - most_places);
  return s;
}

bool concerns_node(const ExplainEntry& e, std::string_view node) {
  return e.place == node || std::find(e.nodes.begin(), e.nodes.end(), node) != e.nodes.end() ||
         std::find(e.by.begin(), e.by.end(), node) != e.by.end();
}

std::string explain_node_text(const OptimizeReport& report, std::string_view node) {
  std::vector<const ExplainEntry*> found;
  for (const ExplainEntry& e : report.records)
    if (concerns_node(e, node)) found.push_back(&e);
  std::string s;
  for (const ExplainEntry* e : best_first(std::move(found)))
    s += fmt::format("  {:<24} {:<9} {}\n", e->who, label(e->reason), entry_text(*e));
  return s;
}

Json explain_record_json(const ExplainEntry& e) {
  Json j = {{"rule", e.who},    {"root", e.place}, {"result", std::string(reason_name(e.reason))},
            {"value", e.value}, {"by", e.by},      {"expr", e.expr},
            {"got", e.got},     {"hint", e.hint},  {"variant", e.variant},
            {"pass", e.pass},   {"nodes", e.nodes}};
  if (e.pattern_nodes != 0) {
    j["matched_nodes"] = e.matched_nodes;
    j["pattern_nodes"] = e.pattern_nodes;
  }
  return j;
}

std::string explain_lines(const OptimizeReport& report) {
  std::string s;
  for (const ExplainEntry& e : report.records)
    s += explain_record_json(e).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return s;
}

// One session and one graph, which CANN numbers "0_0". What rules of our stages rewrite is CANN's graph
// fusion; its fusion of operators inside a kernel library has no counterpart here, so that group is empty.
Json fusion_result_json(const OptimizeReport& report) {
  Json passes = Json::object();
  for (const auto& [name, count] : report.rules) {
    if (count.matched == 0) continue;
    passes[name] = {{"match_times", std::to_string(count.matched)},
                    {"effect_times", std::to_string(count.applied)},
                    {"repository_hit_times", "0"}};
  }
  return {{"session_and_graph_id_0_0", {{"graph_fusion", passes}, {"ub_fusion", Json::object()}}}};
}

}  // namespace tenon
