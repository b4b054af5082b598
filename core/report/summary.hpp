// What a run did, as the short text at its end and as the JSON object of `run --json`.
#pragma once
#include <string>
#include <vector>

#include "core/pipeline/json_source.hpp"
#include "core/pipeline/pass_manager.hpp"
#include "core/runtime/session.hpp"

namespace tenon {

struct LatencySummary {
  double min_ms = 0, median_ms = 0, p95_ms = 0;
  uint64_t runs = 0;
};
// Of one or more durations, in milliseconds; sorts them.
LatencySummary summarize_latency(std::vector<double>& durations_ms);

struct RunReport {
  std::string model;
  const OptimizeReport* optimize = nullptr;
  RunStats stats;
  LatencySummary latency;
  double load_ms = 0;  // plugins, model, passes and the session, until the first run could begin
  std::string precision, isa;
  unsigned threads = 0;
};

uint64_t peak_rss_bytes();
Json run_report_json(const RunReport& report);
std::string run_report_text(const RunReport& report);
// What the passes did, as `optimize --json` says it.
Json optimize_report_json(const OptimizeReport& report);
// The pass table and a line for each rule that matched.
std::string optimize_report_text(const OptimizeReport& report);
// One line a pass: time, nodes, edits, what it was refused.
std::string pass_table(const OptimizeReport& report);

}  // namespace tenon
