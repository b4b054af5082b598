// One number for what a graph computes and how: two graphs of equal number are the same but for names and
// ids.
#pragma once
#include "match/matcher.hpp"

namespace tenon::rules {

/// Over the regions that run, linear in their nodes.
uint64_t graph_hash(const GraphAccess& graph);

}  // namespace tenon::rules
