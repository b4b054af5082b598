// Runs rule passes as a pipeline does: with checks at matches, choices, undo.
#pragma once
#include "core/graph/graph.hpp"
#include "core/pipeline/pass_manager.hpp"
#include "rule_harness.hpp"

namespace tenon::test {

struct Outcome {
  std::unique_ptr<Graph> graph;
  OptimizeReport report;
  std::vector<std::string> said;
  int count(const std::string& op) const {
    int n = 0;
    for (const tn_node id : graph->nodes(0)) n += graph->op_name(id) == op;
    return n;
  }
};

struct Wish {
  uint32_t verify = 1;
  bool builtin = false;
  uint64_t limit = UINT64_MAX;
  std::vector<tn_tensor> samples;
  std::vector<std::string> passes{"fuse"};
};

/// `rule_text`: a file "mine.json".
Outcome optimize(const std::string& text, const std::string& rule_text, const Wish& wish = {});
std::string graph_of(const std::string& inputs, const std::string& body);
/// One finding has this in it.
bool says(const Outcome& o, const std::string& text);

}  // namespace tenon::test
