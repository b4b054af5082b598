#include "core/runtime/lowering.hpp"

#include <algorithm>
#include <map>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/plugin/decompose.hpp"
#include "core/runtime/plan_context.hpp"

namespace tenon {
namespace {

constexpr int most_rounds = 64;  // decompositions within decompositions

// All nodes of one operator that cannot run.
struct Missing {
  uint64_t count = 0;
  std::vector<std::string> nodes;
  std::string dtypes;
  std::string reasons;
};

class Lowering {
 public:
  Lowering(Graph& graph, const Registries& registries, const LoweringOptions& options,
           Diagnostics& diagnostics)
      : graph_(graph), registries_(registries), options_(options), diagnostics_(diagnostics) {
    policies_.push_back(options.policy);
    for (const std::string& kind : options.kinds) {
      policies_.push_back(options.policy);
      policies_.back().device = kind;
    }
  }

  LoweringReport run() {
    graph_.set_registry(&registries_);
    graph_.set_edit_limit(UINT64_MAX);  // the limit bounds rewrites; this is none
    for (int round = 0; round < most_rounds; ++round) {
      const std::vector<tn_node> without_kernel = look();
      if (without_kernel.empty()) return report_;
      if (!expand(without_kernel)) break;
    }
    for (const auto& [op, missing] : missing_) {
      diagnostics_.error(
          "", fmt::format("operator {}", op),
          fmt::format("nothing can run it: {} node{} ({}{}), {}; {}", missing.count,
                      missing.count == 1 ? "" : "s", join(missing.nodes, ", "),
                      missing.count > missing.nodes.size() ? ", ..." : "", missing.dtypes, missing.reasons));
    }
    if (missing_.empty())
      diagnostics_.error(
          "", "lowering",
          fmt::format("operators still decompose after {} rounds; a decomposition goes in a circle",
                      most_rounds));
    return report_;
  }

 private:
  // Inside the body of a fused node: runs only when that node is expanded.
  bool is_template(tn_region region) {
    while (graph_.region(region).parent != TN_NONE) {
      const Node& owner = graph_.node(graph_.region(region).parent);
      if (!op_has_flag(registries_, owner.op, TN_OP_CONTROL_FLOW)) return true;
      region = owner.region_id;
    }
    return false;
  }

  bool is_dead(tn_node node) const {
    const Node& n = graph_.node(node);
    if (op_has_flag(registries_, n.op, TN_OP_SIDE_EFFECT)) return false;
    return std::all_of(n.outputs().begin(), n.outputs().end(),
                       [&](tn_value value) { return value == TN_NONE || graph_.users(value).empty(); });
  }

  std::vector<tn_node> look() {
    std::vector<tn_node> found;
    seen_.resize(graph_.node_bound(), false);
    for (tn_region region = 0; region < graph_.region_bound(); ++region) {
      if (!graph_.region(region).alive || is_template(region)) continue;
      for (tn_node node = graph_.first_node(region); node != TN_NONE; node = graph_.next_node(node)) {
        if (seen_[node]) continue;
        seen_[node] = true;
        const auto& forced = options_.always_expand;
        if (std::find(forced.begin(), forced.end(), node) != forced.end() ||
            (!is_dead(node) && !may_run(node)))
          found.push_back(node);
      }
    }
    return found;
  }

  void fill_view(tn_node node) {
    info_ = node_info(graph_, node);
    const Node& n = graph_.node(node);
    const auto fill = [&](std::span<const tn_value> values, std::vector<tn_operand>& operands) {
      operands.assign(values.size(), tn_operand{});
      for (size_t i = 0; i < values.size(); ++i) {
        if (values[i] == TN_NONE) continue;
        operands[i].present = 1;
        operands[i].type = graph_.type(values[i]);
        operands[i].constant = graph_.is_constant(values[i]) ? 1 : 0;
      }
    };
    fill(n.inputs(), inputs_);
    fill(n.outputs(), outputs_);
    view_ = tn_plan_view{};
    view_.size = sizeof view_;
    view_.input_count = static_cast<uint32_t>(inputs_.size());
    view_.output_count = static_cast<uint32_t>(outputs_.size());
    view_.thread_count = options_.thread_count;
    view_.node = &info_;
    view_.inputs = inputs_.data();
    view_.outputs = outputs_.data();
    view_.cpu_features = options_.cpu_features;
    view_.precision_mode = to_abi(options_.precision_mode);
    view_.device = to_abi(options_.policy.device);
    view_.graph_api = graph_api();
    view_.graph = &graph_;
  }

  bool may_run(tn_node node) {
    const Node& n = graph_.node(node);
    // Views need no kernel, and what reads shapes only is computed while planning.
    if (op_has_flag(registries_, n.op, TN_OP_VIEW) && n.output_count == 1) return true;
    if (op_has_flag(registries_, n.op, TN_OP_SHAPE_ONLY)) return true;
    const std::span<const KernelEntry> kernels = registries_.kernels(n.op);
    if (kernels.empty()) return false;
    fill_view(node);
    return std::any_of(policies_.begin(), policies_.end(), [&](const KernelPolicy& policy) {
      view_.device = to_abi(policy.device);
      return std::any_of(kernels.begin(), kernels.end(), [&](const KernelEntry& kernel) {
        return refusal_of(kernel, registries_, view_, policy, false).empty();
      });
    });
  }

  // False: some nodes have neither body nor decomposition; they are noted, and nothing changed.
  bool expand(const std::vector<tn_node>& nodes) {
    Transaction transaction(graph_, "lowering");
    Diagnostics said;
    for (const tn_node node : nodes) {
      if (options_.explain) tell(node);
      if (inline_body(transaction.get(), node)) {
        ++report_.bodies_inlined;
      } else if (decompose(transaction.get(), node, said)) {
        ++report_.decomposed;
        if (options_.explain) report_.expanded.back().how = "decomposition";
      } else {
        note(node);
      }
    }
    if (!missing_.empty()) return false;
    if (transaction.commit(said)) return true;
    diagnostics_.append(said);
    if (!said.has_errors())
      diagnostics_.error("", "lowering", "replacing nodes by their bodies was refused without a reason");
    diagnostics_.throw_if_errors(exit_job_failed);
    return false;
  }

  void need(tn_status status, tn_node node, std::string_view what) {
    if (status == TN_OK) return;
    throw Error(exit_job_failed, node_place(graph_, node),
                fmt::format("lowering could not {} (status {})", what, status));
  }

  bool inline_body(tn_edit* edit, tn_node node) {
    const Node& n = graph_.node(node);
    const tn_region body = body_of(graph_, registries_, node);
    if (body == TN_NONE) return false;
    const std::vector<tn_value> formals = graph_.region(body).inputs;
    std::vector<tn_value> outputs = graph_.region(body).outputs;
    std::vector<tn_value> actuals(formals.size(), TN_NONE);
    for (uint32_t i = 0; i < formals.size(); ++i) actuals[i] = n.input(i);
    for (tn_value& output : outputs) {
      const auto formal = std::find(formals.begin(), formals.end(), output);
      if (formal != formals.end()) output = actuals[static_cast<size_t>(formal - formals.begin())];
    }
    const std::vector<tn_value> results(n.outputs().begin(), n.outputs().end());
    const tn_edit_api& api = *edit_api();
    need(api.inline_region(edit, body, actuals.data(), static_cast<uint32_t>(actuals.size()), node), node,
         "inline the body");
    for (size_t i = 0; i < results.size() && i < outputs.size(); ++i) {
      if (results[i] != TN_NONE && outputs[i] != TN_NONE)
        need(api.replace_uses(edit, results[i], outputs[i]), node, "replace the results");
    }
    need(api.erase(edit, node), node, "erase the node");
    return true;
  }

  bool decompose(tn_edit* edit, tn_node node, Diagnostics& said) {
    const tn_status status = tenon::decompose(registries_, graph_, edit, node, said.abi());
    if (status == TN_DECLINED) return false;
    if (status != TN_OK) {
      said.throw_if_errors(exit_job_failed);
      need(status, node, "decompose the node");
    }
    return true;
  }

  void tell(tn_node node) {
    ExpandedNode told{std::string(graph_.node_name(node)), std::string(graph_.op_name(node)), {}, "body", ""};
    for (const std::string_view origin : graph_.origins(node)) told.origins.emplace_back(origin);
    fill_view(node);
    for (const KernelEntry& kernel : registries_.kernels(graph_.node(node).op)) {
      const std::string refusal = refusal_of(kernel, registries_, view_, policy_for(kernel), false);
      told.reasons += fmt::format("    {}  refused: {}\n", string(kernel.record->id),
                                  refusal.empty() ? "the shapes of a run" : refusal);
    }
    if (told.reasons.empty()) told.reasons = "    no loaded plugin has a kernel for it\n";
    report_.expanded.push_back(std::move(told));
  }

  void note(tn_node node) {
    const Node& n = graph_.node(node);
    Missing& missing = missing_[std::string(graph_.op_name(node))];
    ++missing.count;
    if (missing.nodes.size() < 3) missing.nodes.push_back(node_place(graph_, node));
    if (missing.count > 1) return;
    fill_view(node);
    for (const tn_operand& operand : inputs_) {
      if (!missing.dtypes.empty()) missing.dtypes += ", ";
      missing.dtypes += operand.present != 0 ? dtype_name(operand.type.dtype) : "-";
    }
    missing.dtypes = "inputs (" + missing.dtypes + ")";
    for (const KernelEntry& kernel : registries_.kernels(n.op)) {
      if (!missing.reasons.empty()) missing.reasons += "; ";
      missing.reasons += string(kernel.record->id) + ": " +
                         refusal_of(kernel, registries_, view_, policy_for(kernel), false);
    }
    if (missing.reasons.empty()) {
      missing.reasons =
          "no loaded plugin has a kernel, and there is no body or decomposition; name a plugin that has one "
          "in the manifest's \"plugins\"";
    }
  }

  // That of the device the kernel is for, so that the reason is the kernel's own; else the first.
  const KernelPolicy& policy_for(const KernelEntry& kernel) const {
    const auto own = std::find_if(policies_.begin(), policies_.end(), [&](const KernelPolicy& policy) {
      return policy.device == view(kernel.record->device);
    });
    return own == policies_.end() ? policies_.front() : *own;
  }

  Graph& graph_;
  const Registries& registries_;
  const LoweringOptions& options_;
  Diagnostics& diagnostics_;
  std::vector<KernelPolicy> policies_;  // a device each
  LoweringReport report_;
  std::vector<bool> seen_;
  std::map<std::string, Missing> missing_;
  tn_node_info info_{};
  tn_plan_view view_{};
  std::vector<tn_operand> inputs_, outputs_;
};

}  // namespace

LoweringReport lower(Graph& graph, const Registries& registries, const LoweringOptions& options,
                     Diagnostics& diagnostics) {
  return Lowering(graph, registries, options, diagnostics).run();
}

}  // namespace tenon
