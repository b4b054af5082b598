#include "core/report/explain_node.hpp"

#include <algorithm>
#include <chrono>

#include "core/base/text.hpp"
#include "core/graph/graph.hpp"

namespace tenon {

namespace {

constexpr unsigned most_runs = 10;
constexpr std::chrono::milliseconds long_enough{200};

bool stands_for(const std::string& name, const std::vector<std::string>& origins, const std::string& node) {
  return name == node || std::find(origins.begin(), origins.end(), node) != origins.end();
}

}  // namespace

std::vector<PlannedNode> nodes_of(const Session& session, const std::string& node) {
  std::vector<PlannedNode> nodes = session.planned_nodes();
  std::erase_if(nodes, [&](const PlannedNode& n) { return !stands_for(n.name, n.origins, node); });
  return nodes;
}

std::string planned_text(const PlannedNode& n) {
  return fmt::format("{} {}: {}{}{}\n{}{}", n.op, n.name, n.how, n.kernel.empty() ? "" : " " + n.kernel,
                     n.placement.empty() ? "" : " on " + n.device, n.placement, n.selection);
}

std::string expansion_text(const Session& session, const std::string& node) {
  std::string text;
  for (const ExpandedNode& n : session.expanded_nodes())
    if (stands_for(n.name, n.origins, node))
      text += fmt::format("{} {}: its {}, as no kernel takes it\n{}", n.op, n.name, n.how, n.reasons);
  return text;
}

std::vector<KernelTime> time_kernels(const Graph& graph, const Registries& registries,
                                     const RuntimeOptions& options, const PlannedNode& node,
                                     std::span<const NamedTensor> inputs) {
  std::vector<KernelTime> times;
  for (const std::string& kernel : node.able) {
    RuntimeOptions pinned = options;
    pinned.kernels.pin[node.name] = kernel;
    const Session session(graph.clone(), registries, pinned);
    KernelTime& time = times.emplace_back(KernelTime{kernel});
    const auto end = std::chrono::steady_clock::now() + long_enough;
    do {
      session.run_observed(inputs, [&](const StepTiming& step) {
        if (step.name != node.name || step.kernel != kernel) return;
        const uint64_t ns = step.end_ns - step.begin_ns;
        time.least_ns = time.runs == 0 ? ns : std::min(time.least_ns, ns);
        ++time.runs;
      });
    } while (time.runs != 0 && time.runs < most_runs && std::chrono::steady_clock::now() < end);
  }
  return times;
}

std::string timing_text(const std::vector<KernelTime>& times) {
  std::string text;
  for (const KernelTime& t : times)
    text += t.runs == 0 ? fmt::format("    {}  not timed: it did not run on the host\n", t.kernel)
                        : fmt::format("    {}  measured {:.1f} us, the least of {} runs\n", t.kernel,
                                      static_cast<double>(t.least_ns) / 1000, t.runs);
  return text;
}

}  // namespace tenon
