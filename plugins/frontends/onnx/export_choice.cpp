#include "export_choice.hpp"

#include <algorithm>

#include "older_forms.hpp"
#include "runtime_forms.hpp"

namespace tenon::onnx {

bool is_control_flow(std::string_view op, const tn_op_def* definition) {
  return op == "If" || op == "Loop" || op == "Scan" || op == "SequenceMap" ||
         (definition && (definition->flags & TN_OP_CONTROL_FLOW));
}

tn_region body_of(const sdk::GraphView& graph, const sdk::Node& node, const tn_op_def* definition) {
  if (is_control_flow(node.op_name(), definition)) return TN_NONE;
  // Of an operator nobody defines, "body" is an attribute of the source model.
  if (!definition && node.op_name().substr(0, 7) != "tenon::") return TN_NONE;
  for (const tn_region r : node.regions())
    if (sdk::view(graph.region(r).name) == "body") return r;
  return TN_NONE;
}

std::vector<tn_value> body_operands(const sdk::Node& node, size_t wanted) {
  std::vector<tn_value> operands = node.inputs().copy();
  const auto present = static_cast<size_t>(
      std::count_if(operands.begin(), operands.end(), [](tn_value v) { return v != TN_NONE; }));
  if (operands.size() > wanted && present == wanted)
    operands.erase(std::remove(operands.begin(), operands.end(), TN_NONE), operands.end());
  if (operands.size() > wanted)
    throw sdk::Failure(
        TN_ERR_INTERNAL,
        sdk::format(
            "the node has %zu operands, but its body takes %zu; they must be the same, in the same order",
            operands.size(), wanted),
        "node " + node.label());
  operands.resize(wanted, TN_NONE);
  return operands;
}

Choice Choosing::choose(const sdk::GraphView& graph, const sdk::Node& node) const {
  const std::string_view op = node.op_name();
  const tn_op_def* def = definition(node.op());
  const bool standard = in_default_domain(op);
  Choice choice;
  if (standard) {
    choice.need = required_opset(graph, node, def);
    const tn_dtype first = node.input(0) == TN_NONE ? TN_DTYPE_NONE : graph.value(node.input(0)).type.dtype;
    const RuntimeGap* gap = target && choice.need.opset <= target ? runtime_gap(op, first, target) : nullptr;
    if (!gap && (!target || choice.need.opset <= target)) return choice;
    if (gap) {
      choice.steps = runtime_form(graph, node, def, target, *gap);
      if (choice.steps) {
        choice.writing = Writing::older;
        return choice;
      }
      if (gap->narrow != TN_DTYPE_NONE) return choice;
    }
    if (def && !gap) {
      std::string why;
      choice.steps = older_form(graph, node, def, target, why);
      if (choice.steps) {
        choice.writing = Writing::older;
        return choice;
      }
      if (!why.empty()) choice.need.reason += ", and " + why;
    }
  }
  if (body_of(graph, node, def) != TN_NONE) {
    const bool functions = !target || target >= functions_since;
    choice.writing = functions ? Writing::function : Writing::replaced;
  } else if ((standard || op.substr(0, 7) == "tenon::") && def && def->decompose && decomposing &&
             !is_control_flow(op, def)) {
    choice.writing = Writing::replaced;
  }
  if (choice.writing == Writing::replaced && kept.count(node.id())) choice.writing = Writing::as_it_is;
  return choice;
}

}  // namespace tenon::onnx
