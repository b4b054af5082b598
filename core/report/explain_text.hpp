// Explain records as text and as JSON lines.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "core/pipeline/json_source.hpp"
#include "core/pipeline/pass_manager.hpp"

namespace tenon {

// Names of the rules and passes that left a record, sorted.
std::vector<std::string> explained_names(const OptimizeReport& report);
// All that is known of one rule or pass: counts by reason, examples, near misses.
std::string explain_rule_text(const OptimizeReport& report, std::string_view rule);
// Every record whose place, or a node it names, is this node, nearest to success first.
std::string explain_node_text(const OptimizeReport& report, std::string_view node);
Json explain_record_json(const ExplainEntry& entry);

}  // namespace tenon
