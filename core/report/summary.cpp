#include "core/report/summary.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <map>

#include "core/base/text.hpp"

namespace tenon {

LatencySummary summarize_latency(std::vector<double>& durations) {
  LatencySummary s;
  if (durations.empty()) return s;
  std::sort(durations.begin(), durations.end());
  s.runs = durations.size();
  s.min_ms = durations.front();
  s.median_ms = durations[durations.size() / 2];
  s.p95_ms = durations[std::min(durations.size() - 1, durations.size() * 95 / 100)];
  return s;
}

uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

Json run_report_json(const RunReport& r) {
  Json j = Json::object();
  j["model"] = r.model;
  j["nodes_before"] = r.optimize->nodes_before;
  j["nodes_after"] = r.optimize->nodes_after;
  j["arena_bytes"] = r.stats.arena_bytes;
  j["live_bound_bytes"] = r.stats.live_bound_bytes;
  j["no_reuse_bytes"] = r.stats.no_reuse_bytes;
  j["workspace_bytes"] = r.stats.workspace_bytes;
  j["packed_bytes"] = r.stats.packed_bytes;
  j["steps"] = r.stats.steps;
  j["segments"] = r.stats.segments;
  j["kernels"] = Json::object();
  for (const auto& [plugin, count] : r.stats.kernels) j["kernels"][plugin] = count;
  j["devices"] = Json::object();
  for (const auto& [device, count] : r.stats.devices) j["devices"][device] = count;
  j["copies"] = r.stats.copies;
  j["copied_bytes"] = r.stats.copied_bytes;
  j["device_arena_bytes"] = r.stats.device_arena_bytes;
  j["fallbacks"] = Json::array();
  for (const auto& f : r.stats.fallbacks)
    j["fallbacks"].push_back({{"node", f.node}, {"op", f.op}, {"reason", f.reason}});
  j["latency_ms"] = {{"min", r.latency.min_ms},
                     {"median", r.latency.median_ms},
                     {"p95", r.latency.p95_ms},
                     {"runs", r.latency.runs}};
  j["load_ms"] = r.load_ms;
  j["plan_ms"] = r.stats.plan_ms;
  j["peak_rss_mb"] = static_cast<double>(peak_rss_bytes()) / 1048576.0;
  j["rules"] = Json::object();
  for (const auto& [name, count] : r.optimize->rules)
    j["rules"][name] = {{"matched", count.matched}, {"applied", count.applied}};
  j["precision"] = r.precision;
  j["isa"] = r.isa;
  j["threads"] = r.threads;
  return j;
}

namespace {

// "61 dtype, 22 no kernel": the reasons of the fallbacks, most frequent first, each cut at its first colon.
std::string fallback_reasons(const std::vector<Fallback>& fallbacks) {
  std::map<std::string, uint64_t> counts;
  for (const auto& f : fallbacks) {
    std::string reason = f.reason.substr(0, f.reason.find('\n'));
    if (reason.size() > 60) reason = reason.substr(0, 57) + "...";
    ++counts[reason.empty() ? "no other kernel" : reason];
  }
  std::vector<std::pair<uint64_t, std::string>> order;
  for (const auto& [reason, n] : counts) order.emplace_back(n, reason);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::string text;
  for (size_t i = 0; i < order.size() && i < 3; ++i)
    text += fmt::format("{}{} {}", i ? "; " : "", order[i].first, order[i].second);
  return text;
}

std::string percent_less(uint64_t before, uint64_t after) {
  if (before == 0) return "0 %";
  return fmt::format("{:+.0f} %", (static_cast<double>(after) / static_cast<double>(before) - 1) * 100);
}

}  // namespace

std::string run_report_text(const RunReport& r) {
  std::string s = fmt::format("nodes    {} -> {} ({})", r.optimize->nodes_before, r.optimize->nodes_after,
                              percent_less(r.optimize->nodes_before, r.optimize->nodes_after));
  std::vector<std::string> applied;
  for (const auto& [name, count] : r.optimize->rules)
    if (count.applied) applied.push_back(fmt::format("{} {}", name, count.applied));
  if (!applied.empty()) s += "; " + join(applied, ", ");
  uint64_t nodes = 0;
  for (const auto& [plugin, count] : r.stats.kernels) nodes += count;
  s += "\nkernels  ";
  bool first = true;
  for (const auto& [plugin, count] : r.stats.kernels) {
    s += fmt::format("{}{} {}/{} nodes", first ? "" : ", ", plugin, count, nodes);
    first = false;
  }
  if (r.stats.views || r.stats.folded)
    s += fmt::format("; {} views and {} shape computations cost nothing", r.stats.views, r.stats.folded);
  if (!r.stats.fallbacks.empty())
    s += fmt::format("\n         not the preferred kernel for {} nodes: {}", r.stats.fallbacks.size(),
                     fallback_reasons(r.stats.fallbacks));
  if (!r.stats.devices.empty()) {
    s += "\ndevices  ";
    first = true;
    for (const auto& [device, count] : r.stats.devices) {
      s += fmt::format("{}{} {} node{}", first ? "" : ", ", device, count, count == 1 ? "" : "s");
      first = false;
    }
    s += fmt::format("; {} cop{} of {} a run", r.stats.copies, r.stats.copies == 1 ? "y" : "ies",
                     format_bytes(r.stats.copied_bytes));
    if (r.stats.device_arena_bytes != 0)
      s += fmt::format(", arena there {}", format_bytes(r.stats.device_arena_bytes));
  }
  s += fmt::format("\nmemory   arena {} ({} without reuse, {}), lower bound {}",
                   format_bytes(r.stats.arena_bytes), format_bytes(r.stats.no_reuse_bytes),
                   percent_less(r.stats.no_reuse_bytes, r.stats.arena_bytes),
                   format_bytes(r.stats.live_bound_bytes));
  if (r.stats.packed_bytes) s += fmt::format(", packed weights {}", format_bytes(r.stats.packed_bytes));
  if (r.latency.runs > 0) {
    s += fmt::format("\nlatency  {:.3f} ms", r.latency.median_ms);
    if (r.latency.runs > 1)
      s += fmt::format(" median of {} (min {:.3f}, p95 {:.3f})", r.latency.runs, r.latency.min_ms,
                       r.latency.p95_ms);
    s += ", ";
  } else {
    s += "\nruns on  ";
  }
  s += fmt::format("{} thread{}, {}, precision {}; load {:.0f} ms", r.threads, r.threads == 1 ? "" : "s",
                   r.isa, r.precision, r.load_ms);
  return s + "\n";
}

Json optimize_report_json(const OptimizeReport& report) {
  Json j = {
      {"nodes_before", report.nodes_before}, {"nodes_after", report.nodes_after}, {"edits", report.edits}};
  j["passes"] = Json::array();
  for (const auto& pass : report.passes)
    j["passes"].push_back({{"id", pass.id},
                           {"ms", pass.seconds * 1e3},
                           {"nodes_before", pass.nodes_before},
                           {"nodes_after", pass.nodes_after},
                           {"edits", pass.edits},
                           {"match_ms", pass.matching.seconds * 1e3},
                           {"match_steps", pass.matching.steps}});
  j["rules"] = Json::object();
  for (const auto& [name, count] : report.rules)
    j["rules"][name] = {{"matched", count.matched}, {"applied", count.applied}};
  j["matching"] = Json::object();
  for (const auto& [name, cost] : report.matching)
    j["matching"][name] = {{"ms", cost.seconds * 1e3}, {"steps", cost.steps}};
  return j;
}

std::string optimize_report_text(const OptimizeReport& report) {
  std::string s = pass_table(report);
  for (const auto& [name, count] : report.rules)
    if (count.matched)
      s += fmt::format("  {:<24} matched {} applied {}\n", name, count.matched, count.applied);
  return s;
}

std::string pass_table(const OptimizeReport& report) {
  std::string s = "pass            ms      nodes            edits  result\n";
  for (const auto& p : report.passes) {
    const char* outcome = "";
    switch (p.outcome) {
      case PassReport::Outcome::ran:
        outcome = "changed the graph";
        break;
      case PassReport::Outcome::unchanged:
        outcome = "nothing to do";
        break;
      case PassReport::Outcome::switched_off:
        outcome = "switched off";
        break;
      case PassReport::Outcome::rolled_back:
        outcome = "rolled back";
        break;
    }
    s += fmt::format("{:<14} {:>6.1f}  {:>7} -> {:<7} {:>5}  {}{}{}\n", p.id, p.seconds * 1e3, p.nodes_before,
                     p.nodes_after, p.edits, outcome, p.reason.empty() ? "" : ": ", p.reason);
  }
  return s;
}

}  // namespace tenon
