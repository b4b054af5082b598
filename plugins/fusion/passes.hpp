// The passes of this plugin and what they share.
#pragma once
#include <vector>

#include "tenon/sdk/pass.hpp"

namespace tenon::fusion {

void run_canonicalize(sdk::Pass& pass);
void run_algebra(sdk::Pass& pass);
void run_control(sdk::Pass& pass);
void run_move(sdk::Pass& pass);
void run_fold(sdk::Pass& pass);
void run_cse(sdk::Pass& pass);
void run_clean(sdk::Pass& pass);
void run_fold_profiled(sdk::Pass& pass);

/// Regions of the graph that are reachable from live nodes, a region always after the one that holds its
/// owner.
std::vector<tn_region> regions_outer_first(const sdk::GraphView& graph);
/// Live nodes of a region in topological order, as a copy that outlives edits.
std::vector<tn_node> node_list(const sdk::GraphView& graph, tn_region region);
/// May be computed at any time, any number of times, or not at all.
bool is_pure(const tn_op_def* op);

}  // namespace tenon::fusion
