// tenon rules: check (lint) and test (prove numerically); rules_learn.cpp has the verbs that write rules.
#include "core/cli/rules.hpp"
#include "core/base/files.hpp"
#include "core/base/text.hpp"

namespace tenon::cli {

namespace {

struct Options {
  std::vector<std::string> files, plugins;
  std::string only, format = "text";
  bool strict = false, quiet = false;
  uint64_t seed = 1;
};

/// The plugins of the default manifest and those asked for; the rules are the files given, or the built-in
/// ones.
struct Loaded {
  Pipeline pipeline;
  std::vector<std::string> texts, paths;
  std::vector<tn_rule_source> sources;
};

Loaded load(const Options& o) {
  Loaded l;
  PipelineOptions po;
  po.plugins = o.plugins;
  po.set = {"rules=[]"};
  po.target = "none.onnx";
  po.quiet = true;
  l.pipeline = open_pipeline(po, read_target(po));
  if (!l.pipeline.engine->registries().rule_engine())
    throw Error(exit_bad_input, "rules", "no plugin provides a rule engine; plugin rules does");
  std::vector<std::pair<std::string, bool>> files;
  for (const auto& f : o.files) files.emplace_back(f, false);
  if (o.files.empty())
    for (const auto& f : builtin_rule_files()) files.emplace_back(f.string(), true);
  for (const auto& [file, builtin] : files) {
    l.texts.push_back(read_text_file(file));
    l.paths.push_back(file);
  }
  for (size_t i = 0; i < files.size(); ++i)
    l.sources.push_back({to_abi(l.paths[i]), to_abi(l.texts[i]), files[i].second ? 1u : 0u, 0});
  return l;
}

Json finding_json(const Diagnostic& d) {
  return {{"severity", std::string(severity_name(d.severity))},
          {"code", d.code},
          {"where", d.where},
          {"text", d.text}};
}

int check(const Options& o) {
  Loaded l = load(o);
  const auto* engine = l.pipeline.engine->registries().rule_engine();
  std::vector<Json> rules;
  Diagnostics findings;
  const tn_status s = engine->record->check(
      engine->instance, l.sources.data(), static_cast<uint32_t>(l.sources.size()), o.strict,
      [](void* context, const tn_rule_info* r) {
        static_cast<std::vector<Json>*>(context)->push_back({{"rule", string(r->name)},
                                                             {"path", string(r->path)},
                                                             {"line", r->line},
                                                             {"stage", string(r->stage)},
                                                             {"priority", r->priority},
                                                             {"level", r->level},
                                                             {"switch", string(r->switch_name)},
                                                             {"precision", string(r->precision)},
                                                             {"enabled", r->enabled != 0},
                                                             {"doc", string(r->doc)}});
      },
      &rules, findings.abi());
  const bool failed = s != TN_OK || findings.has_errors();
  if (o.format == "json") {
    Json j = {{"rules", rules}, {"findings", Json::array()}};
    for (const auto& d : findings.all()) j["findings"].push_back(finding_json(d));
    print_json(j);
  } else {
    for (const auto& d : findings.all()) std::fprintf(stderr, "%s\n", to_string(d).c_str());
    if (!o.quiet)
      for (const auto& r : rules)
        std::printf("%-24s %s:%d  stage %s, priority %d%s\n", r["rule"].get<std::string>().c_str(),
                    r["path"].get<std::string>().c_str(), r["line"].get<int>(),
                    r["stage"].get<std::string>().c_str(), r["priority"].get<int>(),
                    r["enabled"].get<bool>() ? "" : ", off by default");
    if (!failed && !o.quiet) std::printf("%zu rules, no error\n", rules.size());
  }
  return failed ? exit_bad_input : 0;
}

int test(const Options& o) {
  if (o.strict) {
    Options strict = o;
    strict.quiet = true;
    strict.format = "text";
    if (const int code = check(strict); code != 0) return code;
  }
  Loaded l = load(o);
  const auto* engine = l.pipeline.engine->registries().rule_engine();
  struct Report {
    const Options* options;
    uint64_t passed = 0, failed = 0;
    std::vector<Json> cases;
  } report{&o, 0, 0, {}};
  Diagnostics findings;
  const tn_status s = engine->record->test(
      engine->instance, l.sources.data(), static_cast<uint32_t>(l.sources.size()), to_abi(o.only), o.seed,
      [](void* context, tn_str rule, tn_str name, int passed, tn_str text) {
        auto& r = *static_cast<Report*>(context);
        ++(passed ? r.passed : r.failed);
        if (r.options->format == "json")
          r.cases.push_back({{"rule", string(rule)},
                             {"case", string(name)},
                             {"passed", passed != 0},
                             {"text", string(text)}});
        else if (!passed || !r.options->quiet)
          std::printf("%s  %s  %s  %s\n", passed ? "ok  " : "FAIL", string(rule).c_str(),
                      string(name).c_str(), string(text).c_str());
      },
      &report, findings.abi());
  if (o.format == "json") {
    Json j = {{"cases", report.cases},
              {"passed", report.passed},
              {"failed", report.failed},
              {"findings", Json::array()}};
    for (const auto& d : findings.all()) j["findings"].push_back(finding_json(d));
    print_json(j);
  } else {
    for (const auto& d : findings.all()) std::fprintf(stderr, "%s\n", to_string(d).c_str());
    std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(report.passed),
                static_cast<unsigned long long>(report.failed));
  }
  if (findings.has_errors()) return exit_bad_input;
  return report.failed || s != TN_OK ? exit_job_failed : 0;
}

void add_common(CLI::App& verb, Options& o) {
  verb.add_option("files", o.files, "rule files; none: the built-in rules")->type_name("FILE");
  verb.add_option("--plugin", o.plugins, "plugins whose operators or transforms the rules name")
      ->allow_extra_args(false);
  verb.add_option("--format", o.format, "text or json")->check(CLI::IsMember({"text", "json"}));
  verb.add_flag("--quiet,-q", o.quiet, "findings and failures only");
}

}  // namespace

void add_rules(CLI::App& app, Action& action) {
  auto* rules = app.add_subcommand("rules", "check and prove fusion rules");
  rules->require_subcommand(1);
  auto o = std::make_shared<Options>();
  auto* lint = rules->add_subcommand("check", "read rule files and report every finding");
  add_common(*lint, *o);
  lint->add_flag("--strict,--rules-strict", o->strict, "a rule without verify cases is an error");
  lint->callback([o, &action] { action = [o] { return check(*o); }; });
  auto* prove =
      rules->add_subcommand("test", "prove rules numerically on graphs made from their own patterns");
  add_common(*prove, *o);
  prove->add_option("--rule", o->only, "this rule only");
  prove->add_option("--seed", o->seed, "of the random tensors");
  prove->add_flag("--strict,--rules-strict", o->strict, "a rule without verify cases is an error");
  prove->callback([o, &action] { action = [o] { return test(*o); }; });
  add_rules_learn(*rules, action);
}

}  // namespace tenon::cli
