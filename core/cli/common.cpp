#include "core/cli/common.hpp"

#include <algorithm>
#include <cstdio>

#include "core/base/files.hpp"
#include "core/base/memory_budget.hpp"
#include "core/base/text.hpp"
#include "core/cli/tensors.hpp"
#include "core/graph/graph.hpp"
#include "core/report/explain_text.hpp"
#include "core/runtime/cpu_features.hpp"
#include "core/runtime/session_inputs.hpp"

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {
// CLI11's own check answers with the whole range of its number type.
const CLI::Validator at_least_zero(
    [](std::string& text) {
      return text.empty() || text.find_first_not_of("0123456789") != std::string::npos
                 ? "'" + text + "' is not allowed; expected a whole number from 0 up"
                 : std::string();
    },
    "NUMBER");
}  // namespace

void add_pipeline_options(CLI::App& app, PipelineOptions& o, bool target) {
  if (target) app.add_option("target", o.target, "pipeline manifest (.json) or model file")->required();
  app.add_option("--set", o.set,
                 "override a manifest key, as in --set runtime.threads=2 (JSON value, else text)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--rules", o.rules, "add a rule file")->type_name("FILE")->allow_extra_args(false);
  app.add_option("--plugin", o.plugins, "add a plugin: an installed name or a library's path")
      ->type_name("NAME|FILE")
      ->allow_extra_args(false);
  app.add_option("--precision", o.precision, "strict, exact, faithful (default), bf16, fp16 or fast");
  app.add_option("--device", o.devices,
                 "run on this device what it can run, the rest on the host (cpu: all); several: by cost; "
                 "auto: by cost "
                 "among all that plugins bring")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("--threads", o.threads, "threads to run on; 0: all that this process may use")
      ->check(at_least_zero);
  app.add_option("--memory-limit", o.memory_limit,
                 "what tensors may take together, as in 500MB or 2GiB; default: what the machine has")
      ->type_name("SIZE");
  app.add_option("--isolate", o.isolate,
                 "run this plugin's kernels in processes of their own, so that a crash of one is an error")
      ->type_name("PLUGIN")
      ->allow_extra_args(false);
  app.add_option("--fusion_switch_file", o.switch_file, "switches of passes and rules, a file")
      ->type_name("FILE");
  app.add_option("--optimization_switch", o.switches, "switches of passes and rules: \"A:on;B:off\"");
  app.add_option(
         "--verify", o.rules_verify,
         "repeat a rule's numeric check at its matches: auto (rules of your own; default), sample (all "
         "rules) or off; with --inputs the check uses them")
      ->check(CLI::IsMember({"auto", "sample", "off"}));
  app.add_option("--choices", o.choices,
                 "what was decided by measuring, a file: the same is decided again; see --measure")
      ->type_name("FILE");
  app.add_flag(
      "--measure", o.measure,
      "rules with cost.measure: time both sides at matches that the file of choices does not know, keep "
      "the faster, and write it to the file");
  app.add_flag("--rules-strict", o.rules_strict, "a rule without verify cases is an error");
  app.add_option(
         "--export_compile_stat", o.compile_stat,
         "1 or 2: write fusion_result.json, how often each rule and pass matched and took effect, once "
         "the passes have run; 0: do not")
      ->check(CLI::Range(0, 2));
  app.add_option("--stat-dir", o.stat_folder, "the folder of fusion_result.json; default: the current one")
      ->type_name("DIR");
  app.add_option("--bisect-limit", o.bisect_limit, "stop after this many applied rewrites")
      ->check(at_least_zero);
  app.add_option("--dump-dir", o.dump_folder, "write the graph's text form after each pass here")
      ->type_name("DIR");
  app.add_flag("--verify-graph", o.verify_graph, "run the full graph verifier after each pass");
  app.add_flag("--json", o.json, "print one JSON object");
  app.add_flag("--quiet,-q", o.quiet, "print results and errors only");
  app.add_flag("--print-resolved", o.print_resolved,
               "print the manifest with all defaults, versions and digests, and stop");
}

Manifest read_target(const PipelineOptions& o) {
  ManifestOptions mo;
  mo.set = o.set;
  if (!o.precision.empty()) mo.set.push_back("precision.mode=" + o.precision);
  if (!o.rules_verify.empty()) mo.set.push_back("rules_verify=" + quoted(o.rules_verify));
  if (!o.choices.empty()) mo.set.push_back("choices=" + quoted(fs::absolute(o.choices).string()));
  if (!o.memory_limit.empty()) {
    if (!parse_memory_size(o.memory_limit))
      throw Error(exit_bad_input, "--memory-limit " + o.memory_limit,
                  "is no amount of memory; expected a number of bytes, or 500MB, 2GiB and the like");
    mo.set.push_back("runtime.memory_limit=" + quoted(o.memory_limit));
  }
  if (!o.devices.empty()) {
    const bool all = o.devices == std::vector<std::string>{"auto"};
    mo.set.push_back("devices.use=" + (all ? Json("auto") : Json(o.devices)).dump());
    mo.set.push_back("devices.pin.*=" + Json(o.devices.size() == 1 ? o.devices.front() : "auto").dump());
  }
  if (o.threads >= 0) mo.set.push_back("runtime.threads=" + std::to_string(o.threads));
  const fs::path target(o.target);
  Diagnostics findings;
  Manifest m;
  if (target.extension() == ".json") {
    m = read_manifest(target, mo, findings);
  } else {
    mo.model_path = target;
    m = default_manifest(mo, findings);
  }
  m.runtime.isolate.insert(m.runtime.isolate.end(), o.isolate.begin(), o.isolate.end());
  if (!o.quiet) print_findings(findings.all(), false);
  findings.throw_if_errors(exit_bad_input);
  for (const auto& r : o.rules) m.rules.push_back(rule_request(r, "--rules " + r));
  for (const auto& p : o.plugins) m.plugins.push_back(plugin_request(p, "--plugin " + p));
  return m;
}

namespace {

// What the time of a kernel depends on.
std::string machine_text(const Manifest& m) {
  std::string kernels;
  for (const PluginRequest& plugin : m.plugins)
    kernels += " " + (plugin.path.empty() ? plugin.name : plugin.path.filename().string());
  const unsigned threads = m.runtime.threads == 0 ? usable_processors() : m.runtime.threads;
  return fmt::format("{}, {} thread{}, precision {}, plugins{}", isa_name(cpu_features()), threads,
                     threads == 1 ? "" : "s", m.precision.mode, kernels);
}

}  // namespace

Pipeline open_pipeline(const PipelineOptions& o, Manifest manifest, bool explain) {
  EngineOptions eo;
  if (!o.switch_file.empty()) eo.switch_file = fs::absolute(o.switch_file);
  eo.switches = o.switches;
  eo.verify_graph = o.verify_graph;
  eo.explain = explain;
  eo.rules_strict = o.rules_strict;
  eo.measure = o.measure;
  eo.machine = machine_text(manifest);
  if (o.bisect_limit >= 0) eo.edit_limit = static_cast<uint64_t>(o.bisect_limit);
  if (!o.dump_folder.empty()) eo.dump_folder = fs::absolute(o.dump_folder);
  eo.stop_after = o.stop_after;
  Pipeline p;
  p.engine = std::make_unique<Engine>(std::move(manifest), eo);
  p.manifest_ = p.engine->manifest();
  p.evaluator =
      std::make_unique<Evaluator>(p.engine->host(), p.engine->registries(), runtime_options(p.manifest_));
  return p;
}

namespace {

// Rules that are checked at their matches see the tensors the run will see, where there are some.
void optimize_with_samples(const PipelineOptions& o, Pipeline& p) {
  if (!o.samples.empty()) {
    p.engine->optimize(*p.graph, p.report, o.samples);
    return;
  }
  const auto& rules = p.engine->rules();
  const bool checks = p.manifest().rules_verify == RulesVerify::sample ||
                      (p.manifest().rules_verify == RulesVerify::automatic &&
                       std::any_of(rules.begin(), rules.end(), [](const RuleInfo& r) { return !r.builtin; }));
  const bool given =
      !o.sample_inputs.empty() || !p.manifest().inputs.empty() || !p.manifest().inputs_path.empty();
  if ((!checks && !o.measure) || !given) {
    p.engine->optimize(*p.graph, p.report);
    return;
  }
  const InputChecker checker(*p.graph);
  const InputSet inputs = collect_inputs(o.sample_inputs, p.manifest(), p.engine->registries(),
                                         p.engine->host(), checker.inputs());
  std::vector<int> order;
  checker.check(inputs.tensors, &order);
  std::vector<tn_tensor> samples(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] >= 0) samples[i] = tensor_of(inputs, static_cast<size_t>(order[i]));
  p.engine->optimize(*p.graph, p.report, samples);
}

}  // namespace

Pipeline load_pipeline(const PipelineOptions& o, bool explain) {
  const Stopwatch watch;
  Manifest manifest = read_target(o);
  if (o.change_manifest) o.change_manifest(manifest);
  Pipeline p = open_pipeline(o, std::move(manifest), explain);
  if (p.manifest().model_path.empty())
    throw Error(exit_bad_input, p.manifest().path,
                "no model: add \"model\": {\"path\": \"...\"} to the manifest, or --set model.path=FILE");
  p.graph = p.engine->load_model();
  p.engine->require_supported(*p.graph);
  optimize_with_samples(o, p);
  p.load_ms = watch.ms();
  if (!o.quiet) print_findings(p.engine->diagnostics().all(), false);
  if (o.compile_stat != 0) {
    const fs::path folder = o.stat_folder.empty() ? fs::path(".") : fs::path(o.stat_folder);
    std::error_code error;
    fs::create_directories(folder, error);  // what is wrong with it the writer says
    write_file_atomically(folder / "fusion_result.json", fusion_result_json(p.report).dump(2) + "\n");
  }
  return p;
}

int print_resolved_manifest(const PipelineOptions& o) {
  Pipeline p = open_pipeline(o, read_target(o));
  std::printf("%s\n", print_resolved(p.manifest(), p.engine->plugins()).c_str());
  return 0;
}

std::unique_ptr<Session> make_session(Pipeline& p, bool explain) {
  const Stopwatch watch;
  auto session = std::make_unique<Session>(std::move(p.graph), p.engine->registries(),
                                           runtime_options(p.manifest(), explain));
  p.load_ms += watch.ms();
  return session;
}

void print_findings(const std::vector<Diagnostic>& findings, bool notes) {
  for (const auto& d : findings) {
    // What a group switch left on is said to whoever asked for it.
    if (d.severity < TN_SEVERITY_WARNING && !notes && d.code != "E505") continue;
    std::fprintf(stderr, "tenon: %s\n", printable(to_string(d)).c_str());
  }
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

void print_json(const Json& json) {
  // Text from outside may be no UTF-8; it must not stop the report.
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace tenon::cli
