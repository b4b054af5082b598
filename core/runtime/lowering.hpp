// Kernel or body: after lowering every node that will run has a kernel that may take it. A node without one
// is replaced by its body (the region "body" of an operator that is no control flow), else by its
// decomposition, until nothing changes. Must have run before: upgrade and inference. Leaves behind: a graph
// of runnable nodes.
#pragma once
#include "core/base/diagnostics.hpp"
#include "core/graph/graph.hpp"
#include "core/runtime/kernel_selection.hpp"

namespace tenon {

struct LoweringOptions {
  KernelPolicy policy;
  std::vector<std::string> kinds;  // of devices besides policy.device; a kernel for one of them will do
  std::string precision_mode = "faithful";
  uint64_t cpu_features = 0;
  uint32_t thread_count = 1;
  std::vector<tn_node> always_expand;  // nodes whose kernels all declined the shapes of a run
};

struct LoweringReport {
  uint64_t bodies_inlined = 0;
  uint64_t decomposed = 0;
};

// Errors name every operator left without a kernel at once: op, count, node names, dtypes, and why each
// candidate was refused. [main]
LoweringReport lower(Graph& graph, const Registries& registries, const LoweringOptions& options,
                     Diagnostics& diagnostics);

}  // namespace tenon
