// Level 4: what kernel records say, how they decline, and what they do when something fails.
#include <algorithm>

#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/draw.hpp"
#include "core/check/kernel_look.hpp"
#include "core/check/levels.hpp"
#include "core/check/process_state.hpp"
#include "core/pipeline/pipeline.hpp"

namespace tenon::check {

namespace {

template <class Look>
void each_record(Checker& checker, Look&& look) {
  const Registries& registries = checker.engine().registries();
  for (const tn_sym op : registries.kernel_ops())
    for (const KernelEntry& kernel : registries.kernels(op))
      if (checker.is_own(kernel.plugin)) look(registries, kernel, string(kernel.record->id));
}

void check_rules_of(Checker& checker, const tn_op_def& def, const tn_kernel_record& record, bool inputs) {
  const tn_operand_rule* const rules = inputs ? record.input_rules : record.output_rules;
  const uint32_t count = inputs ? record.input_rule_count : record.output_rule_count;
  const uint32_t params = inputs ? def.input_count : def.output_count;
  const tn_param_def* const list = inputs ? def.inputs : def.outputs;
  const bool is_variadic = params != 0 && (list[params - 1].flags & TN_PARAM_VARIADIC) != 0;
  for (uint32_t i = 0; i < count; ++i) {
    const auto told = [&](const std::string& text) {
      checker.finding(fmt::format("the rule of {} {}: {}", inputs ? "input" : "result", i, text));
    };
    if (rules[i].dtype_count != 0 && rules[i].dtypes == nullptr) told("counts types, but has none");
    if (rules[i].max_rank >= 0 && rules[i].min_rank > rules[i].max_rank)
      told(fmt::format("the least rank {} is above the largest {}", rules[i].min_rank, rules[i].max_rank));
    if (rules[i].same_dtype_as > def.input_count && !is_variadic)
      told(fmt::format("same_dtype_as is {}, the operator has {} inputs", rules[i].same_dtype_as,
                       def.input_count));
    if ((rules[i].flags & TN_OPERAND_ABSENT) != 0 &&
        (rules[i].flags & (TN_OPERAND_CONSTANT | TN_OPERAND_SCALAR)) != 0)
      told("an absent operand is neither constant nor a scalar");
    if (rules[i].dtypes == nullptr || (i >= params && !is_variadic)) continue;  // never looked at
    for (uint32_t d = 0; d < rules[i].dtype_count; ++d)
      if (!dtype_is_known(rules[i].dtypes[d])) told(fmt::format("{} is no type", rules[i].dtypes[d]));
    // No type in common with the operator's: it never takes anything.
    const std::vector<tn_dtype> allowed = inputs ? allowed_dtypes(def, i) : std::vector<tn_dtype>();
    if (!allowed.empty() &&
        std::none_of(rules[i].dtypes, rules[i].dtypes + rules[i].dtype_count, [&](tn_dtype dtype) {
          return std::find(allowed.begin(), allowed.end(), dtype) != allowed.end() ||
                 TN_DTYPE_BITS(dtype) < 8 || TN_DTYPE_CODE(dtype) >= 5;
        }))
      told("none of its types is one that the operator allows");
  }
}

// Nodes around what the record takes: other types, ranks, sizes, constants that are none.
std::vector<NodeCase> nodes_outside(const Registries& registries, const NodeCase& node, Random& random) {
  std::vector<NodeCase> outside;
  const NodeSource base{node.name, node.graph.get(), node.node, node.inputs, node.constant};
  const auto add = [&](const NodeSource& source, const std::string& what) {
    if (auto made = make_case(source, registries, what)) outside.push_back(std::move(*made));
  };
  const auto remade = [&](const Tensor& tensor, std::vector<int64_t> dims, tn_dtype dtype) {
    auto made = std::make_shared<Tensor>(dtype, std::move(dims));
    fill(*made, random, Fill::tame);
    (void)tensor;
    return made;
  };
  for (size_t i = 0; i < base.inputs.size(); ++i) {
    if (base.inputs[i] == nullptr) continue;
    const Tensor& own = *base.inputs[i];
    const std::vector<int64_t> dims(own.dims().begin(), own.dims().end());
    NodeSource other = base;
    other.constant[i] = !other.constant[i];
    add(other, fmt::format("input {} {} constant", i, other.constant[i] ? "a" : "no"));
    for (const tn_dtype dtype : {TN_FLOAT64, TN_FLOAT16, TN_INT64, TN_INT8, TN_BOOL}) {
      NodeSource typed = base;
      for (size_t k = 0; k < base.inputs.size(); ++k)
        if (base.inputs[k] != nullptr && base.inputs[k]->dtype() == own.dtype())
          typed.inputs[k] =
              remade(*base.inputs[k], {base.inputs[k]->dims().begin(), base.inputs[k]->dims().end()}, dtype);
      if (dtype != own.dtype() && i == 0) add(typed, "as " + dtype_name(dtype));
    }
    std::vector<int64_t> deeper = dims;
    deeper.insert(deeper.begin(), 1);
    other = base;
    other.inputs[i] = remade(own, deeper, own.dtype());
    add(other, fmt::format("input {} of rank {}", i, deeper.size()));
    if (!dims.empty()) {
      other.inputs[i] = remade(own, {dims.begin() + 1, dims.end()}, own.dtype());
      add(other, fmt::format("input {} of rank {}", i, dims.size() - 1));
      for (size_t d = 0; d < dims.size(); ++d) {
        std::vector<int64_t> empty = dims;
        empty[d] = 0;
        other.inputs[i] = remade(own, empty, own.dtype());
        add(other, fmt::format("input {} with dimension {} of 0", i, d));
      }
    }
    if (i + 1 == base.inputs.size()) {
      other = base;
      other.inputs.pop_back();
      other.constant.pop_back();
      add(other, fmt::format("without input {}", i));
    }
  }
  return outside;
}

struct Accepted {
  const Registries& registries;
  const KernelEntry& kernel;
  NodeCase& node;
  KernelTrial::Setup setup;  // with the open device of records for one
};

// Each own record over a few cases it takes; the subject is begun.
template <class Look>
void each_accepted(Checker& checker, size_t most, Look&& look) {
  std::unique_ptr<CaseLibrary> library;
  KernelDevices devices(checker);
  each_record(checker, [&](const Registries& registries, const KernelEntry& kernel, const std::string& id) {
    if ((kernel.record->flags & TN_KERNEL_CONTROL_FLOW) != 0) return;
    if (library == nullptr) library = std::make_unique<CaseLibrary>(checker);
    if (!checker.begin(fmt::format("kernel {}: match on nodes for it", id)) && checker.ended_here()) return;
    KernelTrial::Setup setup;
    if (!devices.give(kernel, setup)) return;
    for (NodeCase* node : library->accepted(kernel, most))
      if (checker.begin(fmt::format("kernel {} on {}", id, node->name)))
        look(Accepted{registries, kernel, *node, setup});
  });
}

}  // namespace

void check_kernel_records(Checker& checker) {
  each_record(checker, [&](const Registries& registries, const KernelEntry& kernel, const std::string& id) {
    if (!checker.begin("kernel " + id)) return;
    const tn_kernel_record& record = *kernel.record;
    if (record.max_version != 0 && record.min_version > record.max_version)
      checker.finding(fmt::format("its least version {} is above its largest {}", record.min_version,
                                  record.max_version));
    const OpEntry* const entry = registries.find(kernel.op);
    for (uint32_t a = 0; a < record.alias_count; ++a) {
      const tn_alias& alias = record.aliases[a];
      if (alias.kind != TN_ALIAS_IN_PLACE && alias.kind != TN_ALIAS_VIEW)
        checker.finding(fmt::format("alias {} has the kind {}", a, alias.kind));
      if (entry == nullptr) continue;
      const tn_op_def& def = *entry->def;
      const bool variadic =
          def.input_count != 0 && (def.inputs[def.input_count - 1].flags & TN_PARAM_VARIADIC) != 0;
      if (alias.output >= std::max(1u, def.output_count) || (alias.input >= def.input_count && !variadic))
        checker.finding(
            fmt::format("alias {} puts result {} in the place of input {}; the operator has {} and {}", a,
                        alias.output, alias.input, def.output_count, def.input_count));
    }
    if (entry == nullptr) {
      checker.finding(fmt::format(
          "nobody defines its operator {}; without a definition no node of it has a type", view(record.op)));
      return;
    }
    check_rules_of(checker, *entry->def, record, true);
    check_rules_of(checker, *entry->def, record, false);
  });
}

void check_kernels_outside(Checker& checker) {
  each_accepted(checker, 2, [&](const Accepted& accepted) {
    const auto& [registries, kernel, node, given] = accepted;
    Random random = checker.random(node.name);
    for (NodeCase& other : nodes_outside(registries, node, random)) {
      KernelTrial trial(registries, kernel, other, given);
      const std::string refusal = trial.refusal();
      if (refusal == "it declined without a reason")
        checker.finding(
            fmt::format("{}: match declines without a reason; say what it cannot take", other.name));
      if (refusal.starts_with("match failed with status"))
        checker.finding(fmt::format("{}: {}; TN_DECLINED is for nodes it cannot take", other.name, refusal));
      if (!refusal.empty()) continue;
      std::string said;
      const tn_status status = trial.plan(said);
      if (status != TN_OK && said.empty())
        checker.finding(fmt::format("{}: plan answers status {} without a reason", other.name, status));
      if (status == TN_OK && !trial.is_planned() && !trial.is_enqueued())
        checker.finding(other.name + ": plan is done, but gives no function");
      if (status != TN_OK || !trial.is_planned()) continue;
      for (const std::string& text : trial.run({}).damages) checker.finding(other.name + ": " + text);
    }
  });
}

void check_plan_view_sizes(Checker& checker) {
  each_accepted(checker, 2, [&](const Accepted& accepted) {
    const auto& [registries, kernel, node, given] = accepted;
    KernelTrial whole(registries, kernel, node, given);
    std::string said;
    if (!whole.refusal().empty() || whole.plan(said) != TN_OK) return;
    // What reads the body of a node needs the graph, and may say so.
    for (const uint32_t size : {static_cast<uint32_t>(offsetof(tn_plan_view, graph)),
                                static_cast<uint32_t>(sizeof(tn_plan_view) + 64)}) {
      // No host that has devices is so old.
      if (given.device != nullptr && size < sizeof(tn_plan_view)) continue;
      KernelTrial::Setup setup = given;
      setup.view_size = size;
      KernelTrial trial(registries, kernel, node, setup);
      if (!trial.refusal().empty()) continue;
      const tn_status status = trial.plan(said);
      if (size > sizeof(tn_plan_view) && status != TN_OK)
        checker.finding(
            fmt::format("with a tn_plan_view of {} bytes, as a newer host has, plan answers status {}: {}",
                        size, status, said));
      if (status != TN_OK && said.empty())
        checker.finding(fmt::format("with a tn_plan_view of {} bytes plan answers status {} without a reason",
                                    size, status));
    }
  });
}

void check_failing_allocation(Checker& checker) {
  each_accepted(checker, 4, [&](const Accepted& accepted) {
    const auto& [registries, kernel, node, given] = accepted;
    {
      KernelTrial::Setup setup = given;
      setup.fail_packing = true;
      KernelTrial trial(registries, kernel, node, setup);
      std::string said;
      if (!trial.refusal().empty()) return;
      const tn_status status = trial.plan(said);
      if (status == TN_OK && trial.is_planned()) trial.run({});  // it packs nothing, or does without
    }
    if ((kernel.record->flags & TN_KERNEL_DYNAMIC_OUTPUT) == 0) return;
    KernelTrial trial(registries, kernel, node, given);
    std::string said;
    if (!trial.refusal().empty() || trial.plan(said) != TN_OK || !trial.is_planned()) return;
    if (trial.has_known_results()) return;
    RunSetup setup;
    setup.fail_allocation = true;
    const KernelRun run = trial.run(setup);
    if (run.status == 0 && run.memory_was_refused)
      checker.finding("the host answers that there is no memory, and the kernel says that it is done");
  });
}

void check_plans_free_their_state(Checker& checker) {
  each_accepted(checker, 2, [&](const Accepted& accepted) {
    const auto& [registries, kernel, node, given] = accepted;
    const auto repeat = [&](int times) {
      for (int i = 0; i < times; ++i) {
        KernelTrial trial(registries, kernel, node, given);
        std::string said;
        if (trial.refusal().empty()) trial.plan(said);
      }
    };
    if (const size_t bytes = kept_by_each(40, repeat))
      checker.finding(fmt::format("every plan keeps {} bytes when it is gone; set free_state", bytes));
  });
}

}  // namespace tenon::check
