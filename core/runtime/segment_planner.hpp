// Planning of one segment, in the order of its methods. See plan.hpp for what a segment is.
#pragma once
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/runtime/memory_lifetimes.hpp"
#include "core/runtime/plan.hpp"
#include "core/runtime/plan_context.hpp"
#include "core/runtime/plan_store.hpp"
#include "core/runtime/queue_waits.hpp"

namespace tenon {

constexpr uint64_t buffer_alignment = 64;
constexpr uint64_t rounded_bytes(uint64_t bytes) {
  return (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
}

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
    uint32_t device = 0;
  };
  // Where a node may run. All lists are by device, the host first.
  struct Choice {
    tn_node node = TN_NONE;
    uint32_t planned = 0;  // number in planned_
    std::vector<Selection> selections;
    std::vector<std::string> refusals;  // empty: it may
    std::string note;                   // a pin that could not be kept
  };
  // The bytes of one value in the memory of another device than its own.
  struct Transfer {
    tn_value value = TN_NONE;
    uint32_t from = 0, to = 0;          // classes
    uint32_t after_step = UINT32_MAX;   // the step that makes it; none: it is there before the segment
    uint32_t before_step = UINT32_MAX;  // then: its first reader
  };
  struct RawOp {
    DeviceOp op;
    uint32_t queue = 0;
    std::vector<std::pair<uint32_t, bool>> classes;  // and whether it writes
  };
  // Values that share their bytes.
  struct AliasClass {
    Place place = Place::arena;
    uint32_t device = 0;                   // whose memory
    const DeviceMemory* memory = nullptr;  // of constants on a device
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
  uint32_t add_step(tn_node node, PlanContext& context, Selection& selection, const KernelEntry& kernel,
                    const tn_planned& planned);
  void no_kernel_for(tn_node node, std::span<const Selection> selections, std::vector<tn_node>& to_expand,
                     Diagnostics& refused) const;
  bool can_expand(tn_node node) const;
  void conditions();
  void continuation();
  std::span<const tn_value> captures_of(tn_node node);  // until the next call

  // segment_placement.cpp: which device runs what.
  void add_choice(tn_node node, Selection on_host);
  void place_and_plan(std::vector<tn_node>& to_expand, Diagnostics& refused);
  std::string device_refusal(const Choice& choice, uint32_t device);
  void restrict_choice(Choice& choice);
  bool may_run_on(const Choice& choice, uint32_t device) const { return choice.refusals[device].empty(); }
  PlacementProblem placement_problem();
  void discard_steps();
  void explain_placement(const PlacementProblem& problem, const Placement& placement);
  std::string_view device_name(uint32_t device) const;
  std::string_view device_kind(uint32_t device) const;
  tn_value root_of(tn_value value) const;  // through views: whose bytes it shows

  // segment_devices.cpp: how values get there, and in which order all is issued.
  uint32_t class_on(tn_value value, uint32_t device, bool own = false);
  uint32_t constant_on(tn_value value, uint32_t home, uint32_t device);
  void order_ops();
  void place_device_arenas();
  void finish_ops();
  std::vector<MemoryAccess> accesses_of(const RawOp& raw) const;
  BufferPlace place_of(uint32_t alias_class) const;
  uint32_t queue_of(uint32_t device, bool copies) const;

  // segment_memory.cpp: where everything lives.
  void assign_classes();
  uint32_t class_of(tn_value value);
  uint32_t new_class(tn_value value, Place place, uint64_t bytes);
  void assign_result(const Planned& planned, uint32_t position, uint32_t output);
  bool try_in_place(const Planned& planned, uint32_t position, uint32_t output, uint64_t bytes);
  void give_cells();
  void place_arena();
  ArenaPlan plan_space(uint32_t device, std::vector<uint32_t>* members);
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
  std::vector<std::shared_ptr<OpenDevice>> devices_;  // number d is devices_[d - 1]
  std::vector<KernelPolicy> policies_;                // by device
  std::vector<Choice> choices_;
  std::unordered_map<tn_value, tn_value> view_roots_;
  std::unordered_map<tn_value, uint32_t> producer_steps_;
  std::unordered_map<uint64_t, uint32_t> instances_;  // value and device -> class
  std::vector<Transfer> transfers_;
  std::vector<RawOp> raw_ops_;
  uint32_t current_step_ = 0;
  std::vector<tn_value> captures_;
};

}  // namespace tenon
