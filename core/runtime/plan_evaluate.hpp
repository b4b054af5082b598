// Computing one node while planning.
#pragma once
#include <vector>

#include "core/runtime/plan.hpp"
#include "core/runtime/plan_store.hpp"

namespace tenon {

// Runs the node, whose operands are constants (of the graph or the plan) and whose results' types are known
// in the store, with the kernel that the run would choose. False: no kernel that can be called here. Throws
// Error when it fails.
bool evaluate_with_store(RunEnvironment& environment, RunGraph& graph, PlanStore& store, tn_node node,
                         std::vector<AnyRef>* results);

}  // namespace tenon
