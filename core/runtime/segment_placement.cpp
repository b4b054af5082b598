// Which device runs which node of a segment: what each could, what the manifest wants, the least sum.
#include <algorithm>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/runtime/segment_planner.hpp"

namespace tenon {
namespace {

constexpr uint32_t only_on_host = TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_DYNAMIC_INPUT | TN_KERNEL_CONTROL_FLOW;

// "a: why; b: why" of a selection in which nothing was found.
std::string refusals_of(const Selection& selection) {
  std::string text;
  for (const Candidate& candidate : selection.candidates)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", string(candidate.kernel->record->id),
                        candidate.refusal);
  return text;
}

std::string time_text(PlacementCost picoseconds, bool sign) {
  const double us = static_cast<double>(picoseconds) / 1e6;
  return sign ? fmt::format("{:+.1f} us", us) : fmt::format("{:.1f} us", us);
}

}  // namespace

std::string_view SegmentPlanner::device_name(uint32_t device) const {
  return device == 0 ? std::string_view("cpu") : std::string_view(devices_[device - 1]->name());
}
std::string_view SegmentPlanner::device_kind(uint32_t device) const {
  return device == 0 ? std::string_view("cpu") : devices_[device - 1]->kind();
}

tn_value SegmentPlanner::root_of(tn_value value) const {
  const auto found = view_roots_.find(value);
  return found == view_roots_.end() ? value : found->second;
}

void SegmentPlanner::add_choice(tn_node node, Selection on_host) {
  if (policies_.empty()) {
    policies_.assign(devices_.size() + 1, environment_.options.kernels);
    for (size_t d = 1; d < policies_.size(); ++d) policies_[d].device = std::string(devices_[d - 1]->kind());
  }
  choices_.emplace_back();
  Choice& choice = choices_.back();
  choice.node = node;
  choice.planned = static_cast<uint32_t>(planned_.size());
  planned_.push_back({node, false, 0, UINT32_MAX, 0});
  choice.selections.push_back(std::move(on_host));
  for (uint32_t d = 1; d <= devices_.size(); ++d) {
    PlanContext context(environment_, run_graph_, store_, node, devices_[d - 1].get());
    choice.selections.push_back(select_kernel(registries_, policies_[d], context.view(), true));
  }
  // What is for another device is no candidate here.
  for (uint32_t d = 0; d < choice.selections.size(); ++d) {
    std::erase_if(choice.selections[d].candidates, [&](const Candidate& candidate) {
      const std::string_view kind = view(candidate.kernel->record->device);
      return kind != device_kind(d) && !(d == 0 && kind.empty());
    });
  }
  for (uint32_t d = 0; d < choice.selections.size(); ++d)
    choice.refusals.push_back(device_refusal(choice, d));
  restrict_choice(choice);
}

std::string SegmentPlanner::device_refusal(const Choice& choice, uint32_t device) {
  const Selection& selection = choice.selections[device];
  if (selection.candidates.empty()) return "no kernel for " + std::string(graph_.op_name(choice.node));
  if (!selection.found()) return refusals_of(selection);
  const Node& n = graph_.node(choice.node);
  const std::string* denied = environment_.options.devices.denied(
      device_name(device), device_kind(device), graph_.node_name(choice.node), graph_.op_name(choice.node));
  if (denied != nullptr) return fmt::format("denied by devices.deny \"{}\"", *denied);
  if (device == 0) return {};
  if ((selection.kernel()->record->flags & only_on_host) != 0 || n.region_count != 0)
    return "regions, and results whose size is found in the run, are the host's";
  const auto refusal = [&](std::span<const tn_value> values, std::string_view side) -> std::string {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] == TN_NONE || store_.is_absent(values[i])) continue;
      const tn_type type = store_.type(values[i]);
      if (type.kind != TN_KIND_TENSOR || type.dtype == TN_STRING)
        return fmt::format("{} {} is no tensor of numbers, which stay on the host", side, i);
      if (!store_.is_known(values[i])) return fmt::format("{} {} has a shape known only in the run", side, i);
    }
    return {};
  };
  std::string text = refusal(n.inputs(), "input");
  return text.empty() ? refusal(n.outputs(), "result") : text;
}

// Pins of kernels and of devices, and preferences, leave those devices that fulfil them, if there are any.
void SegmentPlanner::restrict_choice(Choice& choice) {
  const auto keep = [&](const std::function<bool(uint32_t)>& wanted, const std::string& reason) {
    bool possible = false;
    for (uint32_t d = 0; d < choice.refusals.size(); ++d)
      possible = possible || (may_run_on(choice, d) && wanted(d));
    if (!possible) return false;
    for (uint32_t d = 0; d < choice.refusals.size(); ++d) {
      if (may_run_on(choice, d) && !wanted(d)) choice.refusals[d] = reason;
    }
    return true;
  };
  const KernelPolicy& policy = environment_.options.kernels;
  const std::string_view name = graph_.node_name(choice.node);
  if (const std::string* kernel = pin_of(policy, name)) {
    keep([&](uint32_t d) { return glob_match(*kernel, view(choice.selections[d].kernel()->record->id)); },
         fmt::format("node is pinned to kernel {}", *kernel));
  }
  const std::string* device = environment_.options.devices.pin_of(name, graph_.op_name(choice.node));
  if (device != nullptr) {
    const auto is_it = [&](uint32_t d) { return device_name(d) == *device || device_kind(d) == *device; };
    if (!keep(is_it, fmt::format("pinned to {} by devices.pin", *device))) {
      choice.note = fmt::format("pinned to {}, which cannot run it", *device);
      for (uint32_t d = 0; d < choice.refusals.size(); ++d) {
        if (is_it(d)) choice.note += ": " + choice.refusals[d];
      }
    }
  }
  if (policy.prefer.empty()) return;
  size_t best = SIZE_MAX;
  const auto preference = [&](uint32_t d) { return preference_of(policy, *choice.selections[d].kernel()); };
  for (uint32_t d = 0; d < choice.refusals.size(); ++d) {
    if (may_run_on(choice, d)) best = std::min(best, preference(d));
  }
  keep([&](uint32_t d) { return preference(d) == best; }, "kernels.prefer names one of another device first");
}

// Constants are not in it: they are uploaded when planning.
PlacementProblem SegmentPlanner::placement_problem() {
  PlacementProblem problem;
  problem.devices.resize(devices_.size() + 1);
  for (size_t d = 1; d < problem.devices.size(); ++d) {
    problem.devices[d] = devices_[d - 1]->transfers();
    problem.devices[d].peer.resize(problem.devices.size());
    for (size_t to = 1; to < problem.devices.size(); ++to) {
      if (to == d || !devices_[to - 1]->reads(*devices_[d - 1])) continue;
      const tn_link& link = devices_[to - 1]->properties().peer;
      problem.devices[d].peer[to] = TransferCost{link.latency_ns, link.bytes_per_ns};
    }
  }
  std::unordered_map<tn_value, uint32_t> number;
  const auto value_of = [&](tn_value value) -> PlacementProblem::Value* {
    const tn_value root = root_of(value);
    if (store_.is_absent(root) || graph_.is_constant(root) || store_.plan_constant(root) != nullptr)
      return nullptr;
    const auto [place, is_new] = number.try_emplace(root, static_cast<uint32_t>(problem.values.size()));
    if (is_new) {
      const bool sized = store_.type(root).kind == TN_KIND_TENSOR && store_.is_known(root);
      problem.values.push_back({PlacementProblem::no_node, sized ? bytes_of(root) : 0, false, {}});
    }
    return &problem.values[place->second];
  };
  for (uint32_t c = 0; c < choices_.size(); ++c) {
    const Choice& choice = choices_[c];
    const Node& n = graph_.node(choice.node);
    std::vector<PlacementCost> costs;
    for (uint32_t d = 0; d < choice.selections.size(); ++d) {
      costs.push_back(may_run_on(choice, d)
                          ? placement_cost(choice.selections[d].candidates.front().cost_ns, choices_.size())
                          : cannot_run);
    }
    problem.nodes.push_back(std::move(costs));
    const auto read = [&](tn_value value) {
      if (value == TN_NONE) return;
      if (PlacementProblem::Value* known = value_of(value)) known->readers.push_back(c);
    };
    for (const tn_value value : n.inputs()) read(value);
    for (const tn_value value : captures_of(choice.node)) read(value);
    for (const tn_value value : n.outputs()) {
      if (value == TN_NONE) continue;
      if (PlacementProblem::Value* made = value_of(value)) made->producer = c;
    }
  }
  for (const tn_value value : leaving_) {
    const auto found = number.find(root_of(value));
    if (found != number.end()) problem.values[found->second].read_on_host = true;
  }
  return problem;
}

void SegmentPlanner::discard_steps() {
  for (StepInfo& info : segment_->infos) {
    if (info.free_state != nullptr) info.free_state(info.state);
  }
  segment_->infos.clear();
  segment_->steps.clear();
  segment_->blobs.clear();
  segment_->packed_bytes = 0;
}

void SegmentPlanner::place_and_plan(std::vector<tn_node>& to_expand, Diagnostics& refused) {
  for (;;) {
    for (const Choice& choice : choices_) {
      const bool able = std::any_of(choice.refusals.begin(), choice.refusals.end(),
                                    [](const std::string& refusal) { return refusal.empty(); });
      if (able) continue;
      const bool denied =
          std::any_of(choice.refusals.begin(), choice.refusals.end(),
                      [](const std::string& r) { return r.starts_with("denied by devices.deny"); });
      if (!denied) {
        no_kernel_for(choice.node, choice.selections, to_expand, refused);
        continue;
      }
      std::string text = "no device may run this node";
      for (uint32_t d = 0; d < choice.refusals.size(); ++d)
        text += fmt::format("; {}: {}", device_name(d), choice.refusals[d]);
      refused.error("", node_place(graph_, choice.node), text);
    }
    if (!to_expand.empty() || refused.has_errors()) return;
    const PlacementProblem problem = placement_problem();
    const Placement placement = place(problem);
    bool declined = false;
    for (uint32_t c = 0; c < choices_.size(); ++c) {
      Choice& choice = choices_[c];
      const uint32_t device = placement[c];
      PlanContext context(environment_, run_graph_, store_, choice.node,
                          device == 0 ? nullptr : devices_[device - 1].get());
      Selection& selection = choice.selections[device];
      tn_planned planned{};
      const KernelEntry* kernel = context.plan(selection, &planned);
      if (kernel == nullptr) {  // it saw more than match did: without this device, then
        choice.refusals[device] = refusals_of(selection);
        declined = true;
        continue;
      }
      if (declined) {
        if (planned.free_state != nullptr) planned.free_state(planned.state);
        continue;
      }
      const uint32_t step = add_step(choice.node, context, selection, *kernel, planned);
      StepInfo& info = segment_->infos[step];
      info.device = device;
      info.enqueue = planned.enqueue;
      planned_[choice.planned].step = step;
      planned_[choice.planned].device = device;
    }
    if (declined) {
      discard_steps();
      continue;
    }
    const bool elsewhere = std::any_of(placement.begin(), placement.end(), [](uint32_t d) { return d != 0; });
    if (elsewhere) {
      segment_->devices = std::make_unique<DevicePlan>();
      segment_->devices->devices = devices_;
      segment_->devices->arenas.resize(devices_.size() + 1);
      segment_->devices->estimated_ns = static_cast<double>(total_cost(problem, placement)) / 1000;
    }
    if (environment_.explain) explain_placement(problem, placement);
    return;
  }
}

void SegmentPlanner::explain_placement(const PlacementProblem& problem, const Placement& placement) {
  const PlacementExplainer explainer(problem, placement);
  for (uint32_t c = 0; c < choices_.size(); ++c) {
    const Choice& choice = choices_[c];
    std::string text;
    for (uint32_t d = 0; d < choice.selections.size(); ++d) {
      text += fmt::format("  {} on {}: ", d == placement[c] ? '*' : ' ', device_name(d));
      if (!may_run_on(choice, d)) {
        text += choice.refusals[d] + "\n";
        continue;
      }
      text += time_text(problem.nodes[c][d], false);
      if (d != placement[c]) {
        const MoveCost move = explainer.move(c, d);
        text += fmt::format("; this node alone there: kernel {}, copies {}", time_text(move.kernel, true),
                            time_text(move.copies, true));
      }
      text += "\n";
    }
    if (!choice.note.empty()) text += "    " + choice.note + "\n";
    segment_->infos[planned_[choice.planned].step].placement = std::move(text);
  }
}

}  // namespace tenon
