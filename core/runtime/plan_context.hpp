// One node as a kernel sees it while it is chosen and planned.
#pragma once
#include <vector>

#include "core/runtime/kernel_selection.hpp"
#include "core/runtime/plan.hpp"
#include "core/runtime/plan_store.hpp"

struct tn_plan_ctx {
  tenon::RunEnvironment* environment = nullptr;
  tenon::RunGraph* graph = nullptr;
  tenon::PlanStore* store = nullptr;
  tn_node node = TN_NONE;
  std::vector<std::shared_ptr<const tenon::PackedBlob>> blobs;
};

namespace tenon {

class PlanContext {
 public:
  // `device` null: the host.
  PlanContext(RunEnvironment& environment, RunGraph& graph, PlanStore& store, tn_node node,
              const OpenDevice* device = nullptr);
  PlanContext(const PlanContext&) = delete;
  PlanContext& operator=(const PlanContext&) = delete;

  const tn_plan_view& view() const { return view_; }
  // Asks the candidates in order until one plans the node; null when all decline, with the reasons in
  // `selection`. Throws Error when a kernel fails otherwise.
  const KernelEntry* plan(Selection& selection, tn_planned* planned);
  std::vector<std::shared_ptr<const PackedBlob>>& blobs() { return context_.blobs; }

 private:
  tn_node_info info_{};
  tn_plan_view view_{};
  tn_plan_ctx context_;
  std::vector<tn_operand> inputs_, outputs_;
  std::vector<tn_str> region_names_;
};

tn_node_info node_info(Graph& graph, tn_node node);
// The region that says what a fused node computes; TN_NONE: it has none. An operator of ai.onnx that nobody
// defines may run its region "body" in its own way (SequenceMap does), so that one is none.
tn_region body_of(const Graph& graph, const OpRegistry& ops, tn_node node);
bool op_has_flag(const OpRegistry& ops, tn_sym op, uint32_t flag);

}  // namespace tenon
