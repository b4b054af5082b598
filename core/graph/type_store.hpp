// The graph's own types as inference sees them. Private to core/graph.
#pragma once
#include <string>
#include <vector>

#include "core/graph/infer.hpp"

namespace tenon {

// Results of the main region only narrow: what is known stays known, and a contradiction is kept in
// `conflicts`. Values of nested regions follow their owner's inference, which may run a region several times
// with different inputs. Types that a model declared are hints: they fill gaps, and give way.
class GraphTypeStore final : public TypeStore {
 public:
  explicit GraphTypeStore(Graph& graph) : graph_(graph) {}

  tn_type type(tn_value value) override { return graph_.type(value); }
  bool elements(tn_value value, const tn_dim** elements, uint32_t* count) override {
    return graph_.find_elements(value, elements, count);
  }
  bool data(tn_value value, tn_tensor* out) override { return graph_.constant(value, out); }
  void set_type(tn_value value, const tn_type& type) override;
  void set_elements(tn_value value, const tn_dim* elements, uint32_t count) override;
  void clear_elements(tn_value value) override;
  tn_dim data_dependent(tn_node node, uint32_t output, uint32_t axis, int64_t lo, int64_t hi) override {
    return graph_.data_dependent(node, output, axis, lo, hi);
  }
  void inferred(tn_node node) override;

  struct Conflict {
    tn_value value;
    tn_type had, found;  // interned: valid as long as the graph
  };
  std::vector<Conflict> conflicts;        // narrowing failed
  std::vector<Conflict> hints_overruled;  // the model declared something else
  std::vector<tn_value> changed;          // since the caller last cleared it
  void remember_inferred(uint32_t node_bound) { seen_.assign(node_bound, false); }
  bool was_inferred(tn_node node) const { return node < seen_.size() && seen_[node]; }

 private:
  Graph& graph_;
  std::vector<bool> seen_;
  std::vector<tn_dim> dims_;
};

// Reports the conflicts; false when there are any.
bool report_conflicts(const Graph& graph, const GraphTypeStore& store, Diagnostics& diagnostics);

}  // namespace tenon
