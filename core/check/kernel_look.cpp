#include "core/check/kernel_look.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/pipeline/pipeline.hpp"

namespace tenon::check {

std::unique_ptr<KernelTrial> KernelLook::plan(KernelTrial::Setup setup) const {
  auto trial = std::make_unique<KernelTrial>(registries, kernel, node, std::move(setup));
  std::string said;
  if (!trial->refusal().empty() || trial->plan(said) != TN_OK) return nullptr;
  if (is_for_host(kernel) ? !trial->is_planned() : !trial->is_enqueued()) return nullptr;
  return trial;
}

bool KernelLook::is_random() const {
  const OpEntry* const entry = registries.find(kernel.op);
  return entry != nullptr && (entry->def->flags & TN_OP_NONDETERMINISTIC) != 0;
}

void each_kernel(Checker& checker, KernelPlace place, size_t cases,
                 const std::function<void(const KernelLook&)>& look, bool tell_unreached) {
  Engine& engine = checker.engine();
  const Registries& registries = engine.registries();
  std::unique_ptr<CaseLibrary> library;
  std::vector<std::string> unreached;
  for (const tn_sym op : registries.kernel_ops())
    for (const KernelEntry& kernel : registries.kernels(op)) {
      if (!checker.is_own(kernel.plugin) || (kernel.record->flags & TN_KERNEL_CONTROL_FLOW) != 0 ||
          is_for_host(kernel) != (place == KernelPlace::host))
        continue;
      if (library == nullptr) library = std::make_unique<CaseLibrary>(checker);
      const std::string id = string(kernel.record->id);
      if (!checker.begin(fmt::format("kernel {}: match on nodes for it", id)) && checker.ended_here())
        continue;
      const std::vector<NodeCase*> taken = library->accepted(kernel, cases);
      if (taken.empty()) unreached.push_back(id);
      for (NodeCase* node : taken) {
        if (!checker.begin(fmt::format("kernel {} on {}", id, node->name))) continue;
        try {
          look({kernel, *node, registries});
        } catch (const DeviceFault& fault) {
          checker.finding(fault.what());
        }
      }
    }
  if (tell_unreached && !unreached.empty())
    checker.note(
        fmt::format("{} records took none of the nodes tried: {}; give --samples FOLDER with graphs that "
                    "have such nodes",
                    unreached.size(), join(unreached, ", ")));
}

void compare_with_others(Checker& checker, const KernelLook& look, const KernelRun& run,
                         const char* precision) {
  if (look.is_random()) return;
  RunWith with;
  with.precision = precision;
  with.deny = {string(look.kernel.record->id)};
  const RunResult want = run_graph(*look.node.graph, look.registries, graph_inputs(look.node), with);
  if (!want.error.empty()) return;  // nobody else can do it, or it is an error for the other too
  if (run.status != 0) {
    checker.finding(fmt::format("it fails with {}{}, where another kernel gives a result", run.status,
                                run.failure.empty() ? "" : ": " + run.failure));
    return;
  }
  size_t output = 0;
  for (size_t i = 0; i < run.results.size(); ++i) {
    if (look.node.graph->node(look.node.node).output(static_cast<uint32_t>(i)) == TN_NONE) continue;
    const AnyRef& expected = want.outputs[output++].value;
    if (!run.results[i] || expected->kind != TN_KIND_TENSOR || run.results[i]->kind != TN_KIND_TENSOR)
      continue;
    if (auto text = difference(expected->tensor(), run.results[i]->tensor()))
      checker.finding(fmt::format("result {}: {}", i, *text));
  }
}

void compare_runs(Checker& checker, const KernelRun& a, const KernelRun& b, std::string_view what,
                  bool bits) {
  if (a.status != b.status) {
    checker.finding(fmt::format("{}: it answers {}, else {}", what, b.status, a.status));
    return;
  }
  for (size_t i = 0; i < std::min(a.results.size(), b.results.size()); ++i) {
    if (!a.results[i] || !b.results[i] || a.results[i]->kind != TN_KIND_TENSOR ||
        b.results[i]->kind != TN_KIND_TENSOR)
      continue;
    const tn_tensor want = a.results[i]->tensor(), got = b.results[i]->tensor();
    if (auto text = bits ? bit_difference(want, got) : difference(want, got))
      checker.finding(fmt::format("{}: result {}: {}", what, i, *text));
  }
}

const DeviceEntry* device_of(const Registries& registries, const KernelEntry& kernel) {
  for (const DeviceEntry& entry : registries.devices())
    if (view(entry.record->kind) == view(kernel.record->device) && entry.record->count(entry.instance) != 0)
      return &entry;
  return nullptr;
}

bool KernelDevices::give(const KernelEntry& kernel, KernelTrial::Setup& setup) {
  if (is_for_host(kernel)) return true;
  const std::string kind = string(kernel.record->device);
  const auto [place, is_new] = open_.try_emplace(kind);
  if (is_new) {
    const DeviceEntry* const entry = device_of(checker_.engine().registries(), kernel);
    try {
      if (entry != nullptr) place->second = std::make_unique<DeviceTrial>(*entry);
    } catch (const DeviceFault&) {
    }
  }
  if (place->second == nullptr) return false;
  setup.device = place->second->handle();
  return true;
}

}  // namespace tenon::check
