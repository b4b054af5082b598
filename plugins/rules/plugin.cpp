// The plugin tenon.rules: passes `raise` and `fuse`, and the engine behind `tenon rules`.
#include "tenon/sdk/plugin.hpp"

#include <algorithm>

#include "learn/mine.hpp"
#include "match/engine.hpp"
#include "prove/measure.hpp"
#include "prove/real_match.hpp"

namespace tenon::rules {
namespace {

/// What an instance keeps: the rules compiled last. A pipeline runs the same ones several times.
struct Instance : sdk::Services {
  explicit Instance(const tn_host* h) : Services(h), ops(h, graph, registry) {
    if (!graph || !edit || !symbols || !registry)
      sdk::fail("the host lacks one of the services graph, graph-edit, symbols, registry");
  }
  HostCatalog ops;
  std::unique_ptr<RuleSet> rules;
  uint64_t digest = 0;

  TestServices test_services() const {
    return {host, graph, edit, symbols, registry, get<tn_eval_api>(TN_EVAL_ID)};
  }

  const RuleSet& load(const tn_rule_source* sources, uint32_t count, const sdk::Diag& diag) {
    const uint64_t wanted = RuleSet::digest(sources, count) ^ registry->count(host) ^
                            static_cast<uint64_t>(ops.transforms().size()) << 32;
    if (!rules || digest != wanted) {
      rules.reset();
      rules = std::make_unique<RuleSet>(sources, count, ops, diag);
      digest = wanted;
    }
    if (!rules->ok()) {
      rules.reset();
      throw sdk::Failure(TN_ERR_INVALID,
                         "rule files have errors (see above); 'tenon rules check' lists them too");
    }
    return *rules;
  }
};

class PassListener : public EngineListener {
 public:
  PassListener(const sdk::Pass& pass, Instance& self, const RuleSet& rules, const GraphAccess& graph)
      : pass_(pass),
        rules_(rules),
        graph_(graph),
        matches_(self.test_services(), self.ops, rules, check_mode(&pass.raw()), samples(&pass.raw())),
        measurer_(self.test_services(), self.get<tn_choices_api>(TN_CHOICES_ID), self.ops, rules,
                  samples(&pass.raw()), std::string(pass.precision())) {}
  std::string_view switch_of(const std::string& name) override {
    return pass_.raw().switch_of ? pass_.switch_of(name) : std::string_view();
  }
  void explain(const tn_explain_record& r) override {
    const auto* x = pass_.raw().explain;
    if (x && x->record) x->record(x->context, &r);
  }
  void count(const std::string& rule, uint64_t matched, uint64_t applied) override {
    if (pass_.raw().count) pass_.count(rule, matched, applied);
  }
  void spent(const std::string& rule, uint64_t nanoseconds, uint64_t steps) override {
    pass_.spent(rule, nanoseconds, steps);
  }
  void warn(const std::string& code, const std::string& text) override { pass_.diag().warn("", text, code); }
  bool cancelled() override { return pass_.cancelled(); }
  void tried(const std::string& rule, uint64_t roots) override {
    if (TN_HAS(&pass_.raw(), tried) && pass_.raw().tried)
      pass_.raw().tried(&pass_.raw(), sdk::str(rule), roots);
  }
  std::string check(uint32_t entry, uint32_t variant, const Match& match) override {
    if (!matches_.wants(entry, variant)) return {};
    const Rule& rule = *rules_.entries()[entry].rule;
    const RealMatchCheck::Answer answer = matches_.check(graph_, match);
    if (!answer.wrong.empty())
      pass_.raw().switch_off(&pass_.raw(), sdk::str(rule.name), sdk::str(answer.wrong));
    if (!answer.not_checked.empty())
      pass_.diag().report(TN_SEVERITY_INFO, "E321", "rule " + rule.name,
                          "a match could not be checked: " + answer.not_checked);
    return answer.wrong;
  }
  Measured measured(const Match& match) override {
    Measured answer = measurer_.ask(graph_, match);
    const std::string& rule = match.variant->rule->name;
    const bool is_new = std::find(not_measured_.begin(), not_measured_.end(), rule) == not_measured_.end();
    if (answer.choice == Measured::Unknown && !answer.text.empty() && is_new) {
      not_measured_.push_back(rule);
      pass_.diag().report(TN_SEVERITY_WARNING, "E322", "rule " + rule,
                          "a match could not be measured, so its static cost decides: " + answer.text);
    }
    return answer;
  }

 private:
  /// A host that cannot undo the pass gets no checks.
  static CheckMode check_mode(const tn_pass_ctx* ctx) {
    return TN_HAS(ctx, switch_off) && ctx->switch_off && ctx->rules_verify <= 2
               ? static_cast<CheckMode>(ctx->rules_verify)
               : CheckMode::Off;
  }
  static Samples samples(const tn_pass_ctx* ctx) {
    return TN_HAS(ctx, sample_count) ? Samples{ctx->samples, ctx->sample_count} : Samples{};
  }
  const sdk::Pass& pass_;
  const RuleSet& rules_;
  const GraphAccess& graph_;
  RealMatchCheck matches_;
  Measurer measurer_;
  std::vector<std::string> not_measured_;  // rules
};

tn_status run_stage(void* instance, const tn_pass_ctx* ctx, const tn_diag* diag, Stage stage) noexcept {
  return sdk::guarded(diag, [&] {
    auto& self = *static_cast<Instance*>(instance);
    sdk::Pass pass(ctx, diag);
    const RuleSet& rules = self.load(ctx->rule_sources, ctx->rule_source_count, sdk::Diag(diag));
    GraphAccess graph(self.graph, self.symbols, ctx->graph);
    PassListener listener(pass, self, rules, graph);
    EngineOptions options;
    options.stage = stage;
    options.max_rounds = pass.option_int("max_rounds");
    options.level = pass.level();
    options.precision = std::string(pass.precision());
    options.detailed = pass.detailed();
    Engine(graph, self.ops, rules, {self.host, self.edit, self.registry}, listener, options).run();
  });
}

tn_status check_rules(void* instance, const tn_rule_source* sources, uint32_t count, int strict,
                      void (*sink)(void*, const tn_rule_info*), void* context, const tn_diag* diag) noexcept {
  return sdk::guarded(diag, [&]() -> tn_status {
    auto& self = *static_cast<Instance*>(instance);
    const RuleSet rules(sources, count, self.ops, sdk::Diag(diag), strict != 0);
    for (const auto& e : rules.entries()) {
      const Rule& r = *e.rule;
      std::vector<tn_str> aliases;
      for (const auto& a : r.aliases) aliases.push_back(sdk::str(a));
      tn_rule_info info{};
      info.size = sizeof info;
      info.priority = r.priority;
      info.name = sdk::str(r.name);
      info.doc = sdk::str(r.doc);
      info.path = sdk::str(r.source->path);
      info.stage = sdk::str(stage_name(r.stage));
      info.switch_name = sdk::str(r.switch_name);
      info.precision = sdk::str(precision_name(r.precision));
      info.aliases = aliases.data();
      info.alias_count = static_cast<uint32_t>(aliases.size());
      info.level = r.level;
      info.line = r.source->place(r.offset).line;
      info.enabled = r.enabled;
      info.builtin = r.source->builtin;
      info.proved_by_cases = !r.verify.cases.empty();
      if (sink) sink(context, &info);
    }
    return rules.ok() ? TN_OK : TN_ERR_INVALID;
  });
}

tn_status test_rules(void* instance, const tn_rule_source* sources, uint32_t count, tn_str only_rule,
                     uint64_t seed, void (*report)(void*, tn_str, tn_str, int, tn_str), void* context,
                     const tn_diag* diag) noexcept {
  return sdk::guarded(diag, [&]() -> tn_status {
    auto& self = *static_cast<Instance*>(instance);
    const RuleSet rules(sources, count, self.ops, sdk::Diag(diag));
    RuleTester tester(self.test_services(), self.ops, rules, seed);
    bool found = false, passed = true;
    for (const auto& e : rules.entries()) {
      if (only_rule.size && e.rule->name != sdk::view(only_rule)) continue;
      found = true;
      passed = tester.test(*e.rule, [&](const std::string& name, bool ok, const std::string& text) {
        if (report) report(context, sdk::str(e.rule->name), sdk::str(name), ok, sdk::str(text));
      }) && passed;
    }
    if (only_rule.size && !found)
      throw sdk::Failure(TN_ERR_NOT_FOUND, "no rule '" + sdk::text(only_rule) + "' in these files");
    return rules.ok() && passed ? TN_OK : TN_ERR_INVALID;
  });
}

void give(void (*sink)(void*, const tn_rule_draft*), void* context, const Draft& draft, uint64_t occurrences,
          uint64_t bytes_saved, const std::vector<tn_node>& roots) {
  tn_rule_draft out{};
  out.size = sizeof out;
  out.nodes = draft.nodes;
  out.name = sdk::str(draft.name);
  out.text = sdk::str(draft.text);
  out.summary = sdk::str(draft.summary);
  out.occurrences = occurrences;
  out.bytes_saved = bytes_saved;
  out.roots = roots.data();
  out.root_count = static_cast<uint32_t>(roots.size());
  sink(context, &out);
}

tn_status learn_rules(void* instance, tn_graph* graph, const tn_learn_options* options,
                      void (*sink)(void*, const tn_rule_draft*), void* context,
                      const tn_diag* diag) noexcept {
  return sdk::guarded(diag, [&] {
    auto& self = *static_cast<Instance*>(instance);
    const GraphAccess access(self.graph, self.symbols, graph);
    LearnOptions wanted;
    if (options && options->max_rules) wanted.max_rules = options->max_rules;
    if (options && options->max_nodes) wanted.max_nodes = options->max_nodes;
    if (options && options->min_occurrences) wanted.min_occurrences = options->min_occurrences;
    for (const Learned& l : learn(self.test_services(), self.ops, access, wanted))
      give(sink, context, l.draft, l.occurrences, l.bytes_saved, l.roots);
  });
}

tn_status rule_from_nodes(void* instance, tn_graph* graph, const tn_node* nodes, uint32_t count, tn_str name,
                          void (*sink)(void*, const tn_rule_draft*), void* context,
                          const tn_diag* diag) noexcept {
  return sdk::guarded(diag, [&] {
    auto& self = *static_cast<Instance*>(instance);
    const GraphAccess access(self.graph, self.symbols, graph);
    const std::vector<tn_node> wanted(nodes, nodes + count);
    std::string names;
    for (const tn_node n : wanted) names += (names.empty() ? "" : ", ") + access.node_name(n);
    const Draft draft = DraftWriter(self.test_services(), self.ops, access)
                            .write(wanted, sdk::text(name), "Written from the nodes " + names + ".");
    give(sink, context, draft, 1, draft.bytes_saved, {});
  });
}

const tn_rule_engine_api rule_engine = {
    sizeof(tn_rule_engine_api), 0, check_rules, test_rules, learn_rules, rule_from_nodes};

/// Pass records whose run gets the instance, which holds the compiled rules: one pass a stage.
struct Passes {
  sdk::PassBuilder raise{"raise"}, fuse{"fuse"}, layout{"layout_rules"}, device{"device_rules"};
  tn_pass_record records[4]{};
  const tn_pass_record* list[4]{};
  tn_pass_list table{};
  Passes() {
    raise
        .summary(
            "Rules of stage canonicalize: decomposed Gelu, LayerNormalization, Swish... become one operator")
        .doc(
            "Wants folded constants and no-op casts gone. Leaves operators of ai.onnx, which have reference "
            "kernels.");
    fuse.summary("Rules of stage fuse: Conv+BatchNormalization, Conv+Add+Relu, MatMul+bias...")
        .doc(
            "Wants the graph canonical. Leaves fused operators of domain tenon, each with the body it stands "
            "for.")
        .after("raise")
        .alias("operator_fusion");
    layout
        .summary(
            "Rules of stage layout: what wants the fused operators and settles how their operands lie in "
            "memory")
        .doc("No built-in rule has this stage; a plugin's or a user's may.")
        .after("fuse");
    device
        .summary("Rules of stage device: the last ones, for what the devices of a run do better another way")
        .doc("No built-in rule has this stage; a plugin's or a user's may.")
        .after("layout_rules");
    add<Stage::Canonicalize>(raise, 1);
    add<Stage::Fuse>(fuse, 2);
    add<Stage::Layout>(layout, 1);
    add<Stage::Device>(device, 1);
    table = {sizeof table, 4, list};
  }
  Passes(const Passes&) = delete;
  Passes& operator=(const Passes&) = delete;

 private:
  template <Stage S>
  void add(sdk::PassBuilder& b, int level) {
    b.level(level).option_int("max_rounds", 10, 1, 1000,
                              "Sweeps at most; each looks only near what the one before changed.");
    auto& record = records[static_cast<size_t>(S)];
    record = *b.finish();
    record.run = [](void* instance, const tn_pass_ctx* ctx, const tn_diag* diag) noexcept {
      return run_stage(instance, ctx, diag, S);
    };
    list[static_cast<size_t>(S)] = &record;
  }
};

void provide(sdk::Plugin& p) {
  static const Passes* const passes = new Passes;  // tables live as long as the library is mapped
  p.id(TENON_PLUGIN_ID)
      .name(TENON_PLUGIN_NAME)
      .version(TENON_PLUGIN_VERSION)
      .vendor("Tenon")
      .summary("Fusion rules as JSON: the engine and a pass for each stage");
  p.instance<Instance>();
  p.provide(TN_PASSES_ID, &passes->table);
  p.provide(TN_RULE_ENGINE_ID, &rule_engine);
}

}  // namespace
}  // namespace tenon::rules

TENON_PLUGIN(tenon::rules::provide)
