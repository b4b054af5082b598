// How one node gets into a model of an operator set.
#pragma once
#include <optional>
#include <unordered_set>

#include "opset_forms.hpp"
#include "tenon/abi/decompose.h"

namespace tenon::onnx {

enum class Writing {
  as_it_is,
  older,     // in the form of an older operator set: `steps`
  function,  // its body becomes a local function
  replaced   // by its body or what its definition decomposes it to, before anything is written
};

struct Choice {
  Writing writing = Writing::as_it_is;
  Requirement need;  // of an ai.onnx operator written as it is
  std::optional<Steps> steps;
};

struct Choosing {
  const tn_host* host;
  const tn_registry_api* registry;      // NULL: every operator counts as known
  const tn_decompose_api* decomposing;  // NULL: nothing decomposes
  int32_t target;                       // 0: none yet, anything can be said
  std::unordered_set<tn_node> kept;     // cannot be replaced after all

  const tn_op_def* definition(tn_sym op) const { return registry ? registry->find(host, op) : nullptr; }
  Choice choose(const sdk::GraphView& graph, const sdk::Node& node) const;
};

/// The region that says what a fused node computes; TN_NONE: it has none.
tn_region body_of(const sdk::GraphView& graph, const sdk::Node& node, const tn_op_def* definition);
/// What the node hands to a body of so many inputs. Bodies may leave out the operands that the node leaves
/// out.
std::vector<tn_value> body_operands(const sdk::Node& node, size_t wanted);
bool is_control_flow(std::string_view op, const tn_op_def* definition);
inline bool in_default_domain(std::string_view op) { return op.find("::") == std::string_view::npos; }

}  // namespace tenon::onnx
