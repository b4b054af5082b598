// Explain records as text and as JSON lines, and CANN's fusion_result.json from the same counts.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/pipeline/json_source.hpp"
#include "core/pipeline/pipeline.hpp"

namespace tenon {

// Names of the rules and passes that left a record, sorted.
std::vector<std::string> explained_names(const OptimizeReport& report);
// All that is known of one rule or pass: where it comes from, its switch, counts by reason with an example
// each, near misses, the places where it did not act.
std::string explain_rule_text(const OptimizeReport& report, const Engine& engine, std::string_view rule);
// Every rule and pass that looked at this node, nearest to success first.
std::string explain_node_text(const OptimizeReport& report, std::string_view node);
// True when the record is about the node: as its root, as part of its match, or as what stood in the way.
bool concerns_node(const ExplainEntry& entry, std::string_view node);
// One object of explain.jsonl.
Json explain_record_json(const ExplainEntry& entry);
// All of explain.jsonl: one record a line.
std::string explain_lines(const OptimizeReport& report);
// fusion_result.json: match_times and effect_times of every pass and rule that found something.
Json fusion_result_json(const OptimizeReport& report);

}  // namespace tenon
