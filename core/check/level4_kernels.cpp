// Level 4: what kernels compute, and where they read and write.
#include <cstring>

#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/kernel_cases.hpp"
#include "core/check/levels.hpp"
#include "core/pipeline/pipeline.hpp"

namespace tenon::check {

namespace {

// A planned kernel over one case.
struct Planned {
  const KernelEntry& kernel;
  NodeCase& node;
  const Registries& registries;

  std::unique_ptr<KernelTrial> plan(KernelTrial::Setup setup = {}) const {
    auto trial = std::make_unique<KernelTrial>(registries, kernel, node, std::move(setup));
    std::string said;
    if (!trial->refusal().empty() || trial->plan(said) != TN_OK || !trial->is_planned()) return nullptr;
    return trial;
  }
  bool is_random() const {
    const OpEntry* const entry = registries.find(kernel.op);
    return entry != nullptr && (entry->def->flags & TN_OP_NONDETERMINISTIC) != 0;
  }
};

// Every own record over the cases it takes; the subject is begun. Records that run regions, or that want what
// is no tensor, are run by sessions only.
template <class Look>
void each_planned(Checker& checker, size_t cases, Look&& look, bool tell_unreached = false) {
  Engine& engine = checker.engine();
  const Registries& registries = engine.registries();
  std::unique_ptr<CaseLibrary> library;
  std::vector<std::string> unreached;
  for (const tn_sym op : registries.kernel_ops())
    for (const KernelEntry& kernel : registries.kernels(op)) {
      if (!checker.is_own(kernel.plugin) || (kernel.record->flags & TN_KERNEL_CONTROL_FLOW) != 0) continue;
      if (library == nullptr) library = std::make_unique<CaseLibrary>(checker);
      const std::string id = string(kernel.record->id);
      if (!checker.begin(fmt::format("kernel {}: match on nodes for it", id)) && checker.ended_here())
        continue;
      const std::vector<NodeCase*> taken = library->accepted(kernel, cases);
      if (taken.empty()) unreached.push_back(id);
      for (NodeCase* node : taken)
        if (checker.begin(fmt::format("kernel {} on {}", id, node->name)))
          look(Planned{kernel, *node, registries});
    }
  if (tell_unreached && !unreached.empty())
    checker.note(
        fmt::format("{} records took none of the nodes tried: {}; give --samples FOLDER with graphs that "
                    "have such nodes",
                    unreached.size(), join(unreached, ", ")));
}

RunResult reference(const Planned& planned, const char* precision) {
  RunWith with;
  with.precision = precision;
  with.deny = {string(planned.kernel.record->id)};
  return run_graph(*planned.node.graph, planned.registries, graph_inputs(planned.node), with);
}

// The kernel's results against those of another kernel, or of the operator's decomposition.
void compare_with_reference(Checker& checker, const Planned& planned, const char* precision) {
  if (planned.is_random()) return;
  KernelTrial::Setup setup;
  setup.precision = precision;
  const auto trial = planned.plan(setup);
  if (trial == nullptr) return;
  const KernelRun run = trial->run({});
  const RunResult want = reference(planned, precision);
  if (!want.error.empty()) return;  // nobody else can do it, or it is an error for the other too
  if (run.status != 0) {
    checker.finding(fmt::format("it fails with {}{}, where another kernel gives a result", run.status,
                                run.failure.empty() ? "" : ": " + run.failure));
    return;
  }
  size_t output = 0;
  for (size_t i = 0; i < run.results.size(); ++i) {
    if (planned.node.graph->node(planned.node.node).output(static_cast<uint32_t>(i)) == TN_NONE) continue;
    const AnyRef& expected = want.outputs[output++].value;
    if (!run.results[i] || expected->kind != TN_KIND_TENSOR || run.results[i]->kind != TN_KIND_TENSOR)
      continue;
    if (auto text = difference(expected->tensor(), run.results[i]->tensor()))
      checker.finding(fmt::format("result {}: {}", i, *text));
  }
}

// Two runs of what should be the same.
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

}  // namespace

void check_kernel_values(Checker& checker) {
  each_planned(
      checker, 8,
      [&](const Planned& planned) {
        compare_with_reference(checker, planned, "faithful");
        Random random = checker.random(planned.node.name);
        refill(planned.node, random, Fill::tame);
        compare_with_reference(checker, planned, "exact");
      },
      true);
}

void check_kernel_bounds(Checker& checker) {
  each_planned(checker, 8, [&](const Planned& planned) {
    if (const auto trial = planned.plan())
      for (const std::string& text : trial->run({}).damages) checker.finding(text);
  });
}

void check_kernel_alignment(Checker& checker) {
  each_planned(checker, 4, [&](const Planned& planned) {
    if (planned.is_random()) return;
    const auto trial = planned.plan();
    if (trial == nullptr) return;
    RunSetup least;
    least.alignment = 0;
    const KernelRun aligned = trial->run({}), unaligned = trial->run(least);
    compare_runs(checker, aligned, unaligned, "with operands aligned to their elements only", false);
    for (const std::string& text : unaligned.damages)
      checker.finding("with operands aligned to their elements only " + text);
  });
}

void check_kernel_aliases(Checker& checker) {
  each_planned(checker, 6, [&](const Planned& planned) {
    const tn_kernel_record& record = *planned.kernel.record;
    for (uint32_t a = 0; a < record.alias_count; ++a) {
      const auto trial = planned.plan();
      if (trial == nullptr || !trial->fits(record.aliases[a]) || planned.is_random()) continue;
      const uint32_t input = record.aliases[a].input, output = record.aliases[a].output;
      const KernelRun apart = trial->run({});
      if (apart.status != 0 || planned.node.constant[input]) continue;
      if (record.aliases[a].kind == TN_ALIAS_VIEW) {
        const tn_tensor bytes = planned.node.inputs[input]->view();
        if (apart.results[output] && apart.results[output]->bytes == bytes.bytes && bytes.bytes != 0 &&
            std::memcmp(apart.results[output]->data, bytes.data, bytes.bytes) != 0)
          checker.finding(fmt::format("result {} is said to be a view of input {}, but its bytes are others",
                                      output, input));
        continue;
      }
      RunSetup in_place;
      in_place.alias = static_cast<int>(a);
      const KernelRun together = trial->run(in_place);
      compare_runs(checker, apart, together,
                   fmt::format("with result {} in the place of input {}", output, input), false);
      for (const std::string& text : together.damages) checker.finding("in place " + text);
    }
  });
}

void check_kernel_odd_numbers(Checker& checker) {
  each_planned(checker, 6, [&](const Planned& planned) {
    Random random = checker.random(planned.node.name);
    refill(planned.node, random, Fill::wild);
    compare_with_reference(checker, planned, "strict");
  });
}

void check_kernel_determinism(Checker& checker) {
  each_planned(checker, 6, [&](const Planned& planned) {
    if ((planned.kernel.record->flags & TN_KERNEL_DETERMINISTIC) == 0) return;
    KernelTrial::Setup one, four;
    four.threads = 4;
    const auto trial = planned.plan(one), wide = planned.plan(four);
    if (trial == nullptr || wide == nullptr) return;
    const KernelRun first = trial->run({});
    RunSetup backwards;
    backwards.tiles_backwards = true;
    compare_runs(checker, first, trial->run({}), "the second time", true);
    compare_runs(checker, first, trial->run(backwards), "with its tiles in the other order", true);
    compare_runs(checker, first, wide->run({}), "planned for four workers", true);
  });
}

void check_kernels_at_once(Checker& checker) {
  each_planned(checker, 3, [&](const Planned& planned) {
    if (planned.is_random()) return;
    const auto trial = planned.plan();
    if (trial == nullptr) return;
    const KernelRun alone = trial->run({});
    RunSetup many;
    many.threads_at_once = 4;
    const KernelRun together = trial->run(many);
    compare_runs(checker, alone, together, "with four runs of one plan at once", false);
    if (!together.threads_agree) checker.finding("four runs of one plan at once give different results");
  });
}

}  // namespace tenon::check
