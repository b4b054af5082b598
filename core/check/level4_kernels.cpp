// Level 4: what kernels compute, and where they read and write.
#include <cstring>

#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/kernel_look.hpp"
#include "core/check/levels.hpp"

namespace tenon::check {

namespace {

void compare_with_reference(Checker& checker, const KernelLook& planned, const char* precision) {
  KernelTrial::Setup setup;
  setup.precision = precision;
  if (planned.is_random()) return;
  if (const auto trial = planned.plan(setup))
    compare_with_others(checker, planned, trial->run({}), precision);
}

}  // namespace

void check_kernel_values(Checker& checker) {
  each_kernel(
      checker, KernelPlace::host, 8,
      [&](const KernelLook& planned) {
        compare_with_reference(checker, planned, "faithful");
        Random random = checker.random(planned.node.name);
        refill(planned.node, random, Fill::tame);
        compare_with_reference(checker, planned, "exact");
      },
      true);
}

void check_kernel_bounds(Checker& checker) {
  each_kernel(checker, KernelPlace::host, 8, [&](const KernelLook& planned) {
    if (const auto trial = planned.plan())
      for (const std::string& text : trial->run({}).damages) checker.finding(text);
  });
}

void check_kernel_alignment(Checker& checker) {
  each_kernel(checker, KernelPlace::host, 4, [&](const KernelLook& planned) {
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
  each_kernel(checker, KernelPlace::host, 6, [&](const KernelLook& planned) {
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
  each_kernel(checker, KernelPlace::host, 6, [&](const KernelLook& planned) {
    Random random = checker.random(planned.node.name);
    refill(planned.node, random, Fill::wild);
    compare_with_reference(checker, planned, "strict");
  });
}

void check_kernel_determinism(Checker& checker) {
  each_kernel(checker, KernelPlace::host, 6, [&](const KernelLook& planned) {
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
  each_kernel(checker, KernelPlace::host, 3, [&](const KernelLook& planned) {
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
