// The types and contents that one segment is planned with: flat, concrete, beside the graph's own symbolic
// ones.
#pragma once
#include <deque>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/graph/infer.hpp"
#include "core/runtime/plan.hpp"

namespace tenon {

class PlanStore final : public TypeStore {
 public:
  // `cells` with their values; contents of cells are used only where allowed.
  PlanStore(RunGraph& graph, std::span<const Cell> cells, std::span<const tn_value> cell_values);

  tn_type type(tn_value value) override;
  bool elements(tn_value value, const tn_dim** elements, uint32_t* count) override;
  bool data(tn_value value, tn_tensor* out) override;
  void set_type(tn_value value, const tn_type& type) override;
  void set_elements(tn_value value, const tn_dim* elements, uint32_t count) override;
  void clear_elements(tn_value value) override;
  tn_dim data_dependent(tn_node node, uint32_t output, uint32_t axis, int64_t lo, int64_t hi) override;

  // Before a node is inferred. A first attempt does not look into cells, since a plan that did holds only for
  // those contents; withheld() then says whether it would have helped, late() whether values of this
  // segment's steps would.
  void begin(bool allow_cells) {
    allow_cells_ = allow_cells;
    withheld_ = late_ = false;
  }
  bool withheld() const { return withheld_; }
  bool late() const { return late_; }
  // Cells whose contents planning looked at.
  const std::set<uint32_t>& looked_at() const { return looked_at_; }

  void mark_late(tn_value value) { entry(value).late = true; }  // computed by a step of this segment
  void set_data(tn_value value, AnyRef data);                   // a constant of the plan
  const AnyRef* plan_constant(tn_value value) const;            // null: none
  // Bytes for a kernel's plan: constants, plan constants, and cells that were looked at. *constant as in
  // tn_operand.
  bool known_data(tn_value value, tn_tensor* out, bool* constant);
  // All elements are known numbers.
  bool number_elements(tn_value value, std::vector<int64_t>* numbers);
  bool is_absent(tn_value value) const {
    return absent_.count(value) != 0;
  }                               // an empty cell: an optional input left out
  bool is_known(tn_value value);  // a tensor with all dims numbers, or something else than a tensor

  void restore(const KnownValue& known);
  bool save(tn_value value, KnownValue* known);  // false: nothing is known of it

 private:
  struct Entry {
    uint32_t kind = TN_KIND_NONE;
    tn_dtype dtype = TN_DTYPE_NONE;
    int32_t rank = -1;
    uint32_t encoding = 0;
    bool has_elements = false;
    bool late = false;
    uint32_t cell = UINT32_MAX;
    std::vector<tn_dim> dims;
    std::vector<tn_dim> elements;
    AnyRef data;
  };
  Entry& entry(tn_value value);
  Entry* find(tn_value value);
  const Entry* find(tn_value value) const { return const_cast<PlanStore*>(this)->find(value); }
  bool elements_from(const tn_tensor& tensor, std::vector<tn_dim>* out);

  RunGraph& graph_;
  std::span<const Cell> cells_;
  std::vector<uint32_t> dense_;                    // by value: entry + 1; for the main region
  std::unordered_map<tn_value, uint32_t> sparse_;  // for the others, which are small beside the graph
  std::deque<Entry> entries_;
  std::set<uint32_t> looked_at_;
  std::set<tn_value> absent_;
  bool allow_cells_ = false, withheld_ = false, late_ = false;
};

}  // namespace tenon
