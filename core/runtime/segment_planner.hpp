// Planning of one segment, in the order of its methods. See plan.hpp for what a segment is.
#pragma once
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/runtime/plan.hpp"
#include "core/runtime/plan_context.hpp"
#include "core/runtime/plan_store.hpp"

namespace tenon {

class SegmentPlanner {
 public:
  SegmentPlanner(RunEnvironment& environment, RunGraph& graph, RegionProgram& program,
                 const Segment* previous, std::span<const Cell> cells);
  std::shared_ptr<Segment> plan();

 private:
  enum class Fate : uint8_t { folded, planned, waiting };
  // A node of this segment that is needed.
  struct Planned {
    tn_node node = TN_NONE;
    bool is_view = false;
    uint32_t view_input = 0;
    uint32_t step = UINT32_MAX;
  };
  // Values that share their bytes.
  struct AliasClass {
    Place place = Place::arena;
    uint32_t cell = UINT32_MAX;
    const void* constant = nullptr;
    uint64_t bytes = 0;
    uint64_t offset = 0;
    uint32_t first_step = UINT32_MAX, last_step = 0;
    uint32_t last_use = 0;  // position among all nodes; after_all: it leaves the segment
    bool lent = false;      // a step saw it as a handle, which may be inside a sequence since
    uint32_t slot_step = UINT32_MAX;
    tn_value value = TN_NONE;
  };
  static constexpr uint32_t after_all = UINT32_MAX;

  // segment_planner.cpp: what there is to do.
  void infer();
  bool must_wait(tn_node node);
  bool infer_one(tn_node node, std::optional<Error>& failure);
  bool results_known(tn_node node);
  bool fold(tn_node node);
  bool fold_by_elements(tn_node node);
  bool fold_view(tn_node node);
  bool fold_by_kernel(tn_node node);
  void find_needed();
  void select_kernels();
  bool plan_as_view(tn_node node, const Selection* selection, uint32_t* input);
  void add_step(tn_node node, PlanContext& context, Selection& selection, const KernelEntry& kernel,
                const tn_planned& planned);
  bool can_expand(tn_node node) const;
  void conditions();
  void continuation();
  std::span<const tn_value> captures_of(tn_node node);  // until the next call

  // segment_memory.cpp: where everything lives.
  void assign_classes();
  uint32_t class_of(tn_value value);
  uint32_t new_class(tn_value value, Place place, uint64_t bytes);
  void assign_result(const Planned& planned, uint32_t position, uint32_t output);
  bool try_in_place(const Planned& planned, uint32_t position, uint32_t output, uint64_t bytes);
  void give_cells();
  void place_arena();
  void lay_out_pointers();
  void add_pointer(uint32_t pointer, uint32_t alias_class);
  void add_operand(tn_value value);
  uint64_t bytes_of(tn_value value);

  RunEnvironment& environment_;
  RunGraph& run_graph_;
  Graph& graph_;
  RegionProgram& program_;
  const Registries& registries_;
  const Segment* previous_;
  std::span<const Cell> cells_;
  const std::vector<tn_node>& nodes_;
  std::vector<tn_value> cell_values_;
  PlanStore store_;
  std::shared_ptr<Segment> segment_;

  std::vector<Fate> fates_;
  std::vector<bool> needed_;
  std::unordered_set<tn_value> waiting_values_;
  std::unordered_set<tn_value> leaving_;  // read after this segment
  std::unordered_map<tn_value, uint32_t> last_use_;
  std::unordered_map<tn_value, uint32_t> class_by_value_;
  std::unordered_map<tn_value, uint32_t> cell_by_value_;
  std::vector<AliasClass> classes_;
  std::vector<Planned> planned_;
  std::vector<tn_value> captures_;
};

}  // namespace tenon
