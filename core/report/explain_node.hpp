// What `tenon explain --node` says of how a node runs.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/runtime/session.hpp"

namespace tenon {

/// The planned nodes that are this node of the model, or what became of it.
std::vector<PlannedNode> nodes_of(const Session& session, const std::string& node);

/// Kernel, device, and every candidate with its reason, a line each.
std::string planned_text(const PlannedNode& node);

/// Why the node runs as its body or decomposition; empty when it does not.
std::string expansion_text(const Session& session, const std::string& node);

struct KernelTime {
  std::string kernel;
  uint64_t least_ns = 0;
  unsigned runs = 0;  // 0: the node did not run with it
};
/// The step alone, once for each kernel that takes the node, pinned there: the least of ten runs, or of as
/// many as fit a fifth of a second. Each is a session of its own over a copy of `graph`. Of the host only:
/// steps of devices are not timed.
std::vector<KernelTime> time_kernels(const Graph& graph, const Registries& registries,
                                     const RuntimeOptions& options, const PlannedNode& node,
                                     std::span<const NamedTensor> inputs);
std::string timing_text(const std::vector<KernelTime>& times);

}  // namespace tenon
