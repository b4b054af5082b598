// The verbs under `tenon rules` that write rules.
#pragma once
#include "core/cli/common.hpp"

namespace tenon::cli {

struct LearnVerb {
  PipelineOptions pipeline;
  std::vector<std::string> models, shapes;
  std::string output;
  uint32_t max_rules = 10, max_nodes = 12, min_occurrences = 2;
};
struct NewVerb {
  PipelineOptions pipeline;
  std::string nodes, name = "NewRule", output;
  bool optimized = false;
};
void add_rules_learn(CLI::App& rules, Action& action);

}  // namespace tenon::cli
