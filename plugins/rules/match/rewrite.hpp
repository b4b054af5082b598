// Applies one checked match in one transaction: computed constants, new nodes, their body, the old nodes
// erased.
#pragma once
#include "match/match_check.hpp"
#include "tenon/abi/kernel_registry.h"
#include "tenon/sdk/edit.hpp"

namespace tenon::rules {

struct RewriteServices {
  const tn_host* host = nullptr;
  const tn_edit_api* edit = nullptr;
  const tn_registry_api* registry = nullptr;  // NULL: nothing is known of kernels
};

/// An attribute with its own memory: what the graph hands out may move when it is edited.
struct OwnedAttribute {
  tn_sym name = 0;
  uint32_t kind = TN_ATTR_INT;
  int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string> strings;
  std::vector<tn_str> string_views;
  sdk::OwnedTensor tensor;
  tn_tensor tensor_view{};

  /// False: of a kind that is not copied (a type).
  bool copy(const tn_attr& a);
  tn_attr view();  // valid while this lives and stays where it is
};

class Rewriter {
 public:
  enum Outcome { Applied, Refused, LimitReached };
  Rewriter(const GraphAccess& graph, const OpCatalog& ops, RewriteServices services)
      : graph_(graph), ops_(ops), services_(services) {
    if (services_.host)
      kernels_ = static_cast<const tn_kernel_registry_api*>(
          services_.host->get_interface(services_.host, TN_KERNEL_REGISTRY_ID));
  }
  Outcome apply(const Match& match, Refusal* refusal);
  /// Nodes made by the last rewrite, in the matched region.
  const std::vector<tn_node>& made() const { return made_; }
  uint64_t constant_bytes_added() const { return added_; }
  uint64_t constant_bytes_matched() const { return added_ ? matched_bytes_ : 0; }

 private:
  bool compute(Refusal* refusal);
  bool kernels(Refusal* refusal);
  bool growth(Refusal* refusal);
  bool attributes(const NewNode& n, std::vector<OwnedAttribute>* out, Refusal* refusal);
  bool convert(const gx::Value& v, uint32_t kind, OwnedAttribute* out);
  double narrow(double v);
  bool wide() const;
  tn_sym op_of(const NewNode& n) const;
  bool let_is_operand(uint32_t let) const;
  bool outside_reads(tn_value v) const;
  tn_value operand(sdk::Transaction& tx, const NewOperand& o);
  tn_value now(tn_value v) const;
  /// The values of one operand of the replacement: several for a list.
  std::vector<tn_value> operands(sdk::Transaction& tx, const NewOperand& o);
  tn_value let_constant(sdk::Transaction& tx, uint32_t let);
  void build(sdk::Transaction& tx);
  tn_node create(sdk::Transaction& tx, const NewNode& n, std::vector<OwnedAttribute>& attrs,
                 std::vector<tn_value> inputs, uint32_t results, tn_region region, tn_node before);
  void chain_node(sdk::Transaction& tx);
  void origin_body(sdk::Transaction& tx, tn_node parent, const std::vector<tn_value>& operands,
                   const std::vector<tn_value>& results);
  void explicit_body(sdk::Transaction& tx, tn_node parent);
  bool wants_body(tn_sym op) const;
  std::vector<tn_node> matched_in_order() const;
  void erase_matched(sdk::Transaction& tx);
  void take_over(sdk::Transaction& tx, tn_value old_value, tn_node fused, tn_value new_value);

  const GraphAccess& graph_;
  const OpCatalog& ops_;
  RewriteServices services_;
  const tn_kernel_registry_api* kernels_ = nullptr;  // of an older host: NULL
  const Match* match_ = nullptr;
  const Rule* rule_ = nullptr;
  tn_node anchor_ = TN_NONE;
  std::vector<gx::Value> lets_;
  std::vector<sdk::OwnedTensor> exact_;  // per let: what a transform made; else empty
  std::vector<tn_value> let_values_;
  std::vector<tn_value> made_values_;
  std::vector<std::vector<OwnedAttribute>> attrs_, body_attrs_;
  std::vector<std::pair<tn_value, tn_value>> taken_;  // results of the match and what took their place
  std::vector<tn_node> made_;
  uint64_t added_ = 0, matched_bytes_ = 0;
  bool inexact_ = false;  // an attribute was rounded to float32
};

}  // namespace tenon::rules
