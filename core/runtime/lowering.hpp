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
  bool explain = false;
  std::vector<tn_node> always_expand;  // nodes whose kernels all declined the shapes of a run
};

// A node that no kernel takes.
struct ExpandedNode {
  std::string name, op;
  std::vector<std::string> origins;  // the model's nodes that it stands for
  std::string how;                   // "body" or "decomposition"
  std::string reasons;               // each kernel with why it does not take the node, a line each
};

struct LoweringReport {
  uint64_t bodies_inlined = 0;
  uint64_t decomposed = 0;
  std::vector<ExpandedNode> expanded;  // only with explain
};

// Errors name every operator left without a kernel at once: op, count, node names, dtypes, and why each
// candidate was refused. [main]
LoweringReport lower(Graph& graph, const Registries& registries, const LoweringOptions& options,
                     Diagnostics& diagnostics);

}  // namespace tenon
