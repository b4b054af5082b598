// Finds what a graph repeats and what a fusion of it would save.
#pragma once
#include "learn/draft.hpp"

namespace tenon::rules {

struct LearnOptions {
  uint32_t max_rules = 10, max_nodes = 12, min_occurrences = 2;
};

struct Learned {
  Draft draft;
  uint64_t occurrences = 0, bytes_saved = 0;
  std::vector<tn_node> roots;
};

/// Frequent connected sub-graphs that are memory-bound (element-wise, reductions, data movement, by the
/// traits of their operators) and closed (inner values are read inside alone), the one that saves most first.
/// Occurrences of one proposal and of the ones before it do not overlap.
std::vector<Learned> learn(const TestServices& services, const OpCatalog& ops, const GraphAccess& graph,
                           const LearnOptions& options);

}  // namespace tenon::rules
