#include "core/runtime/kernel_selection.hpp"

#include <algorithm>

#include "core/base/diagnostics.hpp"
#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/runtime/cpu_features.hpp"

namespace tenon {
namespace {

std::string kind_name(uint32_t kind) {
  switch (kind) {
    case TN_KIND_TENSOR:
      return "tensor";
    case TN_KIND_SEQUENCE:
      return "sequence";
    case TN_KIND_OPTIONAL:
      return "optional";
    case TN_KIND_OPTIONAL_SEQUENCE:
      return "optional sequence";
    default:
      return "not known";
  }
}

std::string dtype_list(const tn_operand_rule& rule) {
  std::string text;
  for (uint32_t i = 0; i < rule.dtype_count; ++i) {
    if (i != 0) text += ", ";
    text += dtype_name(rule.dtypes[i]);
  }
  return text;
}

bool variadic_at(const OpRegistry& ops, tn_sym op, bool input, uint32_t index) {
  const OpEntry* entry = ops.find(op);
  if (entry == nullptr || entry->def == nullptr)
    return true;  // nothing is known: the record's last rule decides
  const tn_param_def* params = input ? entry->def->inputs : entry->def->outputs;
  const uint32_t count = input ? entry->def->input_count : entry->def->output_count;
  if (params == nullptr || count == 0) return true;
  return index >= count - 1 && (params[count - 1].flags & TN_PARAM_VARIADIC) != 0;
}

bool all_numbers(const tn_type& type) {
  if (type.rank < 0) return false;
  return std::all_of(type.dims, type.dims + type.rank, [](tn_dim dim) { return dim >= 0; });
}

std::string operand_refusal(const tn_operand& operand, const tn_operand_rule& rule, std::string_view side,
                            uint32_t index, const tn_plan_view& view) {
  const auto refuse = [&](std::string text) { return fmt::format("{} {}: {}", side, index, text); };
  if (operand.present == 0) return {};
  if ((rule.flags & TN_OPERAND_ABSENT) != 0) return refuse("is given, must be omitted");
  const tn_type& type = operand.type;
  const uint32_t kinds = rule.kinds == 0 ? 1u << TN_KIND_TENSOR : rule.kinds;
  if (type.kind != TN_KIND_NONE && (kinds & (1u << type.kind)) == 0)
    return refuse("is a " + kind_name(type.kind));
  if (rule.dtypes != nullptr && type.dtype != TN_DTYPE_NONE &&
      std::find(rule.dtypes, rule.dtypes + rule.dtype_count, type.dtype) == rule.dtypes + rule.dtype_count) {
    return refuse(fmt::format("dtype {}, takes {}", dtype_name(type.dtype), dtype_list(rule)));
  }
  if (type.kind == TN_KIND_TENSOR && type.rank >= 0) {
    if (type.rank < rule.min_rank)
      return refuse(fmt::format("rank {}, takes {} and more", type.rank, rule.min_rank));
    if (rule.max_rank >= 0 && type.rank > rule.max_rank)
      return refuse(fmt::format("rank {}, takes up to {}", type.rank, rule.max_rank));
    if ((rule.flags & TN_OPERAND_SCALAR) != 0) {
      for (int32_t d = 0; d < type.rank; ++d) {
        if (type.dims[d] >= 0 && type.dims[d] != 1) return refuse("has more than one element");
      }
    }
  }
  if ((rule.flags & TN_OPERAND_CONSTANT) != 0 && operand.constant == 0) return refuse("is no constant");
  if (rule.same_dtype_as != 0) {
    const uint32_t other = rule.same_dtype_as - 1;
    if (other < view.input_count && view.inputs[other].present != 0) {
      const tn_dtype expected = view.inputs[other].type.dtype;
      if (type.dtype != TN_DTYPE_NONE && expected != TN_DTYPE_NONE && type.dtype != expected) {
        return refuse(fmt::format("dtype {} differs from input {}'s {}", dtype_name(type.dtype), other,
                                  dtype_name(expected)));
      }
    }
  }
  return {};
}

std::string rules_refusal(const OpRegistry& ops, const tn_plan_view& view, const tn_kernel_record& record,
                          bool input) {
  const tn_operand_rule* rules = input ? record.input_rules : record.output_rules;
  const uint32_t rule_count = input ? record.input_rule_count : record.output_rule_count;
  const tn_operand* operands = input ? view.inputs : view.outputs;
  const uint32_t count = input ? view.input_count : view.output_count;
  for (uint32_t i = 0; rule_count != 0 && i < count; ++i) {
    if (i >= rule_count && !variadic_at(ops, view.node->op, input, i)) continue;
    std::string text =
        operand_refusal(operands[i], rules[std::min(i, rule_count - 1)], input ? "input" : "result", i, view);
    if (!text.empty()) return text;
  }
  return {};
}

std::string shape_refusal(const tn_plan_view& view, const tn_kernel_record& record) {
  const bool any_input = (record.flags & (TN_KERNEL_DYNAMIC_INPUT | TN_KERNEL_CONTROL_FLOW)) != 0;
  for (uint32_t i = 0; i < view.input_count && !any_input; ++i) {
    const tn_operand& operand = view.inputs[i];
    if (operand.present != 0 && operand.type.kind == TN_KIND_TENSOR && !all_numbers(operand.type)) {
      return fmt::format(
          "input {}: its shape is known only in the run, the kernel is not flagged dynamic_input", i);
    }
  }
  const bool any_output = (record.flags & (TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_CONTROL_FLOW)) != 0;
  for (uint32_t i = 0; i < view.output_count && !any_output; ++i) {
    const tn_operand& operand = view.outputs[i];
    if (operand.present == 0) continue;
    if (operand.type.kind != TN_KIND_TENSOR || !all_numbers(operand.type)) {
      return fmt::format("result {}: its size depends on data, the kernel is not flagged dynamic_output", i);
    }
  }
  return {};
}

double cost_of(const KernelEntry& kernel, const tn_plan_view& view) {
  if (kernel.record->cost != nullptr) {
    const double told = kernel.record->cost(kernel.instance, &view);
    if (told >= 0) return told;  // anything else: not known
  }
  double elements = 0;
  for (uint32_t i = 0; i < view.output_count; ++i) {
    const tn_type& type = view.outputs[i].type;
    double product = type.rank < 0 ? 0 : 1;
    for (int32_t d = 0; d < type.rank; ++d)
      product *= type.dims[d] < 0 ? 1.0 : static_cast<double>(type.dims[d]);
    elements += product;
  }
  return 10 * elements;
}

}  // namespace

const std::string* pin_of(const KernelPolicy& policy, std::string_view node_name) {
  for (const auto& [pattern, id] : policy.pin) {
    if (pattern == node_name) return &id;
  }
  for (const auto& [pattern, id] : policy.pin) {
    if (glob_match(pattern, node_name)) return &id;
  }
  return nullptr;
}

size_t preference_of(const KernelPolicy& policy, const KernelEntry& kernel) {
  const auto found = std::find_if(policy.prefer.begin(), policy.prefer.end(), [&](const std::string& wish) {
    return wish == kernel.plugin || glob_match(wish, tenon::view(kernel.record->id));
  });
  return static_cast<size_t>(found - policy.prefer.begin());
}

std::string refusal_of(const KernelEntry& kernel, const OpRegistry& ops, const tn_plan_view& view,
                       const KernelPolicy& policy, bool concrete) {
  const tn_kernel_record& record = *kernel.record;
  const std::string_view id = tenon::view(record.id);
  for (const std::string& pattern : policy.deny) {
    if (glob_match(pattern, id)) return fmt::format("denied by kernels.deny \"{}\"", pattern);
  }
  if (record.device.size != 0 && tenon::view(record.device) != policy.device) {
    return fmt::format("is for device {}, the run is on {}", tenon::view(record.device), policy.device);
  }
  const uint64_t missing = record.cpu_features & ~view.cpu_features;
  if (missing != 0) return "the processor (or TENON_MAX_ISA) lacks " + cpu_feature_names(missing);
  const int32_t version = view.node->op_version;
  if (version != 0 && ((record.min_version != 0 && version < record.min_version) ||
                       (record.max_version != 0 && version > record.max_version))) {
    return fmt::format("operator version {}, takes {}..{}", version, record.min_version,
                       record.max_version == 0 ? std::string("any") : std::to_string(record.max_version));
  }
  std::string text = rules_refusal(ops, view, record, true);
  if (text.empty()) text = rules_refusal(ops, view, record, false);
  if (text.empty() && concrete) text = shape_refusal(view, record);
  if (!text.empty() || !concrete || record.match == nullptr) return text;
  Diagnostics why;
  const tn_status status = record.match(kernel.instance, &view, why.abi());
  if (status == TN_OK) return {};
  const std::string reason = why.empty() ? std::string() : why.all().front().text;
  if (status == TN_DECLINED || status == TN_ERR_UNSUPPORTED)
    return reason.empty() ? "it declined without a reason" : reason;
  return fmt::format("match failed with status {}: {}", status, reason);
}

Selection select_kernel(const Registries& registries, const KernelPolicy& policy, const tn_plan_view& view,
                        bool concrete) {
  Selection selection;
  const std::string_view name = tenon::view(view.node->name);
  const std::string* pin = pin_of(policy, name);
  for (const KernelEntry& kernel : registries.kernels(view.node->op)) {
    Candidate candidate;
    candidate.kernel = &kernel;
    candidate.preferred = preference_of(policy, kernel) < policy.prefer.size();
    const bool pinned = pin != nullptr && glob_match(*pin, tenon::view(kernel.record->id));
    candidate.refusal = refusal_of(kernel, registries, view, policy, concrete);
    if (candidate.refusal.empty() && concrete) candidate.cost_ns = cost_of(kernel, view);
    if (pinned) candidate.preferred = true;
    if (candidate.refusal.empty() && pin != nullptr && !pinned)
      candidate.refusal = fmt::format("node is pinned to {}", *pin);
    selection.candidates.push_back(std::move(candidate));
  }
  // A pin that cannot be kept is said by its own refusal; the others are then taken back.
  const bool pin_holds = std::any_of(selection.candidates.begin(), selection.candidates.end(),
                                     [](const Candidate& c) { return c.refusal.empty(); });
  if (pin != nullptr && !pin_holds) {
    for (Candidate& candidate : selection.candidates) {
      if (candidate.refusal == fmt::format("node is pinned to {}", *pin)) candidate.refusal.clear();
      if (candidate.refusal.empty() && concrete) candidate.cost_ns = cost_of(*candidate.kernel, view);
    }
  }
  const auto key = [&](const Candidate& c) {
    const bool reference = (c.kernel->record->flags & TN_KERNEL_REFERENCE) != 0;
    return std::make_tuple(!c.refusal.empty(), policy.prefer_reference ? !reference : false,
                           preference_of(policy, *c.kernel), policy.prefer_reference ? false : reference,
                           c.cost_ns, -c.kernel->record->rank, tenon::view(c.kernel->record->id));
  };
  std::stable_sort(selection.candidates.begin(), selection.candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
  return selection;
}

std::string selection_text(const Selection& selection) {
  std::string text;
  for (size_t i = 0; i < selection.candidates.size(); ++i) {
    const Candidate& candidate = selection.candidates[i];
    const std::string_view id = tenon::view(candidate.kernel->record->id);
    if (candidate.refusal.empty()) {
      text += fmt::format("  {} {}  cost {:.1f} us\n", i == 0 ? '*' : ' ', id, candidate.cost_ns / 1000);
    } else {
      text += fmt::format("    {}  refused: {}\n", id, candidate.refusal);
    }
  }
  return text;
}

}  // namespace tenon
