// Level 4: kernels of devices, on their devices.
#include <algorithm>
#include <thread>

#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/device_call.hpp"
#include "core/check/kernel_look.hpp"
#include "core/check/levels.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/runtime/session.hpp"

namespace tenon::check {

namespace {

// A kernel planned for its open device; of records for a device that this machine lacks there is none.
struct OnDevice {
  DeviceTrial& device;
  const KernelTrial& trial;
  KernelRun run(int alias = -1) const {
    DeviceCall call(trial, device, alias);
    call.enqueue(device.stream());
    return call.collect();
  }
};

template <class Use>
void on_device(const KernelLook& look, const char* precision, Use&& use) {
  const DeviceEntry* const entry = device_of(look.registries, look.kernel);
  if (entry == nullptr) return;
  DeviceTrial device(*entry);
  KernelTrial::Setup setup;
  setup.precision = precision;
  setup.device = device.handle();
  const auto trial = look.plan(setup);
  // The host's are results whose size the run finds, and texts.
  if (trial == nullptr || !trial->has_known_results()) return;
  use(OnDevice{device, *trial});
}

void tell(Checker& checker, const KernelRun& run, const std::string& where) {
  for (const std::string& text : run.damages) checker.finding(where + text);
}

Session session_of(const Graph& graph, const Registries& registries, const std::string& kind) {
  RuntimeOptions options;
  options.threads = 1;
  options.random_seed = 1;
  if (!kind.empty()) {
    options.devices.use = {kind};
    options.devices.pin = {{"*", kind}};
  }
  return Session(graph.clone(), registries, options);
}

RunResult run_session(const Session& session, std::span<const Tensor> inputs) {
  RunResult result;
  try {
    std::vector<NamedTensor> named;
    for (size_t i = 0; i < inputs.size(); ++i)
      named.push_back({session.inputs()[i].name, inputs[i].view(), nullptr});
    result.outputs = session.run(named);
    for (NamedOutput& output : result.outputs) output.value = with_own_texts(output.value.get());
  } catch (const Error& error) {
    result.error = error.what();
  }
  return result;
}

// The graph over the device, by two threads at once, against the host alone.
void check_graph_on(Checker& checker, const CorpusGraph& one, const std::string& kind) {
  const Registries& registries = checker.engine().registries();
  Random random = checker.random(one.name);
  const std::vector<Tensor> inputs = random_inputs(*one.graph, random, Fill::tame);
  const RunResult want = run_graph(*one.graph, registries, inputs, {});
  if (!want.error.empty() || !is_steady(*one.graph, registries, inputs, want)) return;
  try {
    const Session session = session_of(*one.graph, registries, kind);
    RunResult results[3];
    results[0] = run_session(session, inputs);
    std::thread other([&] { results[1] = run_session(session, inputs); });
    results[2] = run_session(session, inputs);
    other.join();
    for (const RunResult& result : results) {
      const std::optional<std::string> text =
          result.error.empty() ? difference(want.outputs, result.outputs) : result.error;
      if (!text) continue;
      checker.finding(*text);
      return;
    }
  } catch (const Error& error) {
    checker.finding(error.what());
  }
}

}  // namespace

void check_device_kernel_values(Checker& checker) {
  each_kernel(
      checker, KernelPlace::device, 8,
      [&](const KernelLook& look) {
        on_device(look, "faithful", [&](const OnDevice& planned) {
          compare_with_others(checker, look, planned.run(), "faithful");
        });
        Random random = checker.random(look.node.name);
        refill(look.node, random, Fill::tame);
        on_device(look, "exact", [&](const OnDevice& planned) {
          compare_with_others(checker, look, planned.run(), "exact");
        });
      },
      true);
}

void check_device_kernel_bounds(Checker& checker) {
  each_kernel(checker, KernelPlace::device, 6, [&](const KernelLook& look) {
    on_device(look, "faithful", [&](const OnDevice& planned) {
      const KernelRun apart = planned.run();
      tell(checker, apart, "");
      const tn_kernel_record& record = *look.kernel.record;
      for (uint32_t a = 0; a < record.alias_count; ++a) {
        const tn_alias& alias = record.aliases[a];
        if (alias.kind != TN_ALIAS_IN_PLACE || !planned.trial.fits(alias) || look.is_random() ||
            look.node.constant[alias.input])
          continue;
        const KernelRun together = planned.run(static_cast<int>(a));
        compare_runs(checker, apart, together,
                     fmt::format("with result {} in the place of input {}", alias.output, alias.input),
                     false);
        tell(checker, together, "in place ");
      }
    });
  });
}

void check_device_kernels_at_once(Checker& checker) {
  each_kernel(checker, KernelPlace::device, 4, [&](const KernelLook& look) {
    if (look.is_random()) return;
    on_device(look, "faithful", [&](const OnDevice& planned) {
      const bool bits = (look.kernel.record->flags & TN_KERNEL_DETERMINISTIC) != 0;
      const KernelRun alone = planned.run();
      compare_runs(checker, alone, planned.run(), "the second time", bits);
      // All are enqueued before the first is waited for; the second half has other numbers.
      NodeCase& node = look.node;
      const std::vector<std::shared_ptr<Tensor>> inputs = node.inputs;
      std::vector<std::unique_ptr<DeviceCall>> calls;
      const auto enqueue = [&](tn_stream* stream) {
        calls.push_back(std::make_unique<DeviceCall>(planned.trial, planned.device));
        calls.back()->enqueue(stream);
      };
      tn_stream* const streams[] = {planned.device.stream(), planned.device.stream()};
      for (tn_stream* const stream : streams) enqueue(stream);
      Random random = checker.random(node.name);
      refill(node, random, Fill::tame);
      for (tn_stream* const stream : streams) enqueue(stream);
      const KernelRun first = calls[1]->collect(), other = calls[3]->collect();
      compare_runs(checker, alone, first, "in two streams at once", bits);
      compare_runs(checker, alone, calls[0]->collect(), "in two streams at once", bits);
      compare_runs(checker, other, calls[2]->collect(), "in two streams at once, twice in each", bits);
      compare_runs(checker, planned.run(), other, "enqueued before others were done", bits);
      node.inputs = inputs;
    });
  });
}

void check_graphs_on_devices(Checker& checker) {
  const Registries& registries = checker.engine().registries();
  std::vector<CorpusGraph> corpus;
  for (const DeviceEntry& entry : registries.devices()) {
    if (!checker.is_own(entry.plugin) || entry.record->count(entry.instance) == 0) continue;
    if (corpus.empty()) corpus = load_corpus(registries, checker.request());
    const std::string kind = string(entry.record->kind);
    for (const CorpusGraph& one : corpus) {
      const std::span<const tn_node> nodes = one.graph->nodes(Graph::main_region);
      const bool has_own = std::any_of(nodes.begin(), nodes.end(), [&](tn_node node) {
        const auto& kernels = registries.kernels(one.graph->node(node).op);
        return std::any_of(kernels.begin(), kernels.end(),
                           [&](const KernelEntry& kernel) { return view(kernel.record->device) == kind; });
      });
      if (has_own && checker.begin(fmt::format("device {}: {}", kind, one.name)))
        check_graph_on(checker, one, kind);
    }
  }
}

}  // namespace tenon::check
