// Groups of element-wise nodes that one loop can compute.
#pragma once
#include <vector>

#include "tenon/sdk/pass.hpp"

namespace tenon::elementwise {

/// Nodes of one region in topological order. Only the last one's result is read outside, and what is read
/// inside comes from above, so a group taken as one node makes no cycle.
struct Group {
  std::vector<tn_node> nodes;
  tn_value computed = TN_NONE;  // has the shape that all element-wise nodes of the group have
};

/// Why a node does not join the group of its readers.
struct Refusal {
  tn_node node;
  tn_reason reason;
  const char* text;
};

struct Found {
  std::vector<Group> groups;      // of two nodes and more, in topological order of their last ones
  std::vector<Refusal> refusals;  // of element-wise nodes below which a node of a group stands
};

class GroupFinder {
 public:
  GroupFinder(const sdk::Pass& pass, const sdk::GraphView& graph, size_t max_nodes)
      : pass_(pass),
        graph_(graph),
        max_nodes_(max_nodes),
        group_of_(graph.node_bound(), nobody),
        from_shapes_(graph.value_bound(), 0) {}
  /// Linear in the region's nodes and their uses. A region comes after the one around it.
  Found look(tn_region region);

 private:
  static constexpr uint32_t nobody = UINT32_MAX;
  enum class Part { none, element_wise, reduction };
  Part part(const sdk::Node& node) const;
  bool reduces_last_axes(const sdk::Node& node, const tn_type& result) const;
  void mark_from_shapes(const std::vector<tn_node>& order);
  uint32_t group_of_readers(tn_value v, bool* shared) const;
  /// False for the result of a fused node that came after the finder was made.
  bool from_shapes(tn_value v) const { return v < from_shapes_.size() && from_shapes_[v]; }

  const sdk::Pass& pass_;
  const sdk::GraphView& graph_;
  size_t max_nodes_;
  std::vector<uint32_t> group_of_;    // by node, over all regions
  std::vector<uint8_t> from_shapes_;  // by value: nothing but shapes and constants tell it
  uint32_t groups_before_ = 0;        // those of the regions looked at already
};

}  // namespace tenon::elementwise
