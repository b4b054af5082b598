// Writes a rule whose pattern is given nodes of a graph.
#pragma once
#include "prove/prove.hpp"

namespace tenon::rules {

struct Draft {
  std::string name, text, summary;
  uint64_t bytes_saved = 0;  // of one occurrence: inner values neither written nor read
  uint32_t nodes = 0;
};

class DraftWriter {
 public:
  DraftWriter(const TestServices& services, const OpCatalog& ops, const GraphAccess& graph)
      : services_(services), ops_(ops), graph_(graph) {}
  /// Empty: the node may stand in a pattern, else why not.
  std::string refusal(tn_node node) const;
  /// The rule, proved on its own cases; Failure when the nodes make no rule, with the reason. `doc`: its
  /// first line.
  Draft write(std::vector<tn_node> nodes, const std::string& name, const std::string& doc) const;
  /// A small constant, which is part of the pattern: one number, or a list of whole ones.
  bool is_small(tn_value value, tn_tensor* tensor) const;
  /// Bytes of a value, unknown extents at their lower bound.
  uint64_t bytes(tn_value value) const;

 private:
  void order(std::vector<tn_node>* nodes) const;
  std::string rule_text(const std::vector<tn_node>& nodes, const std::string& name, const std::string& doc,
                        int64_t shrink_above, Draft* draft) const;
  bool accepted(const std::string& text, std::string* why) const;

  TestServices services_;
  const OpCatalog& ops_;
  const GraphAccess& graph_;
};

std::string quoted(std::string_view text);  // as JSON
std::string literal_text(const tn_tensor& tensor);

}  // namespace tenon::rules
