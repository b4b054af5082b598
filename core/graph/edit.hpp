// An open transaction: checks what a caller asks, notes what commit has to look at. Private to core/graph.
#pragma once
#include <string>
#include <vector>

#include "core/graph/graph.hpp"

namespace tenon {
class CommitInference;
}

struct tn_edit {
  tn_edit(tenon::Graph& target, std::string_view author, uint32_t edit_flags);

  tn_status create_node(const tn_node_desc& desc, tn_node* node);
  tn_status create_region(tn_node parent, std::string_view name, tn_region* region);
  tn_status region_input(tn_region region, std::string_view name, const tn_type* type, tn_value* value);
  tn_status region_outputs(tn_region region, const tn_value* values, uint32_t count);
  tn_status region_output_name(tn_region region, uint32_t index, std::string_view name);
  tn_status constant_copy(std::string_view name, const tn_tensor* tensor, tn_value* value);
  // Counts as memory in use until it is released; not counted: the bytes are lent.
  tn_status constant_adopt(std::string_view name, const tn_tensor* tensor, void (*release)(void*),
                           void* context, tn_value* value, bool counted = true);
  tn_status constant_slice(std::string_view name, const tn_tensor* tensor, tn_file* file, uint64_t offset,
                           tn_value* value);
  tn_status constant_uniform(std::string_view name, const tn_tensor* tensor, tn_value* value);
  tn_status input_default(tn_value region_input, tn_value constant);
  tn_status replace_uses(tn_value from, tn_value to);
  tn_status set_input(tn_node node, uint32_t index, tn_value value);
  tn_status set_attr(tn_node node, const tn_attr& attr);
  tn_status remove_attr(tn_node node, tn_sym name);
  tn_status set_version(tn_node node, int32_t version);
  tn_status erase(tn_node node);
  tn_status inline_region(tn_region from, const tn_value* inputs, uint32_t count, tn_node anchor);
  tn_status set_type(tn_value value, const tn_type& type);
  tn_status set_opset(std::string_view domain, int32_t version);
  tn_status set_metadata(std::string_view key, std::string_view text);
  tn_status clone_node(tn_node node, tn_region region, tn_node before, const tn_value* inputs, uint32_t count,
                       tn_node* clone);

  // Commit in steps; each adds its errors and answers whether to go on.
  tn_status commit(tenon::Diagnostics& diagnostics);
  void rollback();
  void log_refusals() const;  // of a transaction that its caller gave up: the reasons would be lost

  tenon::Graph& graph;
  std::string who;
  uint32_t flags;

  // Why calls were refused so far.
  const std::vector<std::string>& refused() const { return refused_; }

 private:
  friend class tenon::CommitInference;
  bool is_build() const { return (flags & TN_EDIT_BUILD) != 0; }
  bool is_live_node(tn_node id) const { return id < graph.node_bound() && graph.node(id).alive; }
  bool is_live_value(tn_value id) const {
    return id < graph.value_bound() && graph.value(id).kind != TN_VALUE_DEAD;
  }
  bool is_live_region(tn_region id) const { return id < graph.region_bound() && graph.region(id).alive; }
  tn_status refuse(std::string text);  // remembers why; commit then fails with it
  tn_status check_values(const tn_value* values, uint32_t count, bool may_be_absent, const char* what);
  tn_status check_attr(const tn_attr& attr);
  tn_status check_type(const tn_type& type);
  tn_status check_tensor(std::string_view name, const tn_tensor* tensor);
  tn_value add_constant(std::string_view name, const tn_tensor& tensor, tenon::Constant made);
  uint32_t output_name_for(tn_str wanted, bool named, uint32_t index, uint32_t count, std::string_view base,
                           tn_region region, bool* clash);
  void note_use(const tn_use& use);
  void yield_constant_name(tn_value value);
  void note_origin(tn_node node, uint32_t origin);
  tn_node clone_one(tn_node node, tn_region region, tn_node before, std::span<const tn_value> inputs);

  bool fail(tenon::Diagnostics& diagnostics, std::string_view code, std::string_view where,
            std::string text) const;
  bool check_pending(tenon::Diagnostics& diagnostics);
  bool check_erased(tenon::Diagnostics& diagnostics);
  bool check_uses(tenon::Diagnostics& diagnostics);
  bool check_use(const tn_use& use, tenon::Diagnostics& diagnostics);
  bool check_whole(tenon::Diagnostics& diagnostics);
  bool check_names(tenon::Diagnostics& diagnostics);
  bool infer(tenon::Diagnostics& diagnostics);
  void report_cycle(const std::vector<tn_node>& cycle, tenon::Diagnostics& diagnostics) const;

  struct Replacement {
    tn_value from, to;
  };
  bool fresh_build_;  // an empty graph: no journal, rollback empties
  size_t start_;
  uint64_t start_version_;
  std::vector<std::string> refused_;
  std::vector<tn_node> created_, changed_, erased_;
  std::vector<tn_use> uses_;  // operands and region outputs that got another value
  std::vector<Replacement> replaced_;
  std::vector<tn_value> retyped_;
  std::vector<tn_value> suspects_;  // names that also stand in another region
};
