// The plugin tenon.rules: passes `raise` and `fuse`, and the engine behind `tenon rules`.
#include "tenon/sdk/plugin.hpp"

#include "match/engine.hpp"
#include "prove/prove.hpp"

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
  explicit PassListener(const sdk::Pass& pass) : pass_(pass) {}
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
  void warn(const std::string& code, const std::string& text) override { pass_.diag().warn("", text, code); }
  bool cancelled() override { return pass_.cancelled(); }

 private:
  const sdk::Pass& pass_;
};

tn_status run_stage(void* instance, const tn_pass_ctx* ctx, const tn_diag* diag, Stage stage) noexcept {
  return sdk::guarded(diag, [&] {
    auto& self = *static_cast<Instance*>(instance);
    sdk::Pass pass(ctx, diag);
    const RuleSet& rules = self.load(ctx->rule_sources, ctx->rule_source_count, sdk::Diag(diag));
    GraphAccess graph(self.graph, self.symbols, ctx->graph);
    PassListener listener(pass);
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
    RuleTester tester(
        {self.host, self.graph, self.edit, self.symbols, self.registry, self.get<tn_eval_api>(TN_EVAL_ID)},
        self.ops, rules, seed);
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

const tn_rule_engine_api rule_engine = {sizeof(tn_rule_engine_api), 0, check_rules, test_rules};

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
