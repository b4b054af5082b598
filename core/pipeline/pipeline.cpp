#include "core/pipeline/pipeline.hpp"

#include <algorithm>
#include <span>

#include "core/base/files.hpp"
#include "core/base/memory_budget.hpp"
#include "core/base/text.hpp"
#include "core/graph/graph.hpp"
#include "core/pipeline/model_loader.hpp"

namespace tenon {

Engine::Engine(Manifest manifest, EngineOptions options)
    : manifest_(std::move(manifest)),
      options_(std::move(options)),
      plugins_(host_, options_.scan),
      choices_(host_, manifest_.choices_file, options_.measure, options_.machine) {
  if (manifest_.runtime.memory_limit != 0) set_memory_limit(manifest_.runtime.memory_limit);
  provide_core_services(host_);
  if (!manifest_.lock_file.empty()) load_lock();
  plugins_.load(manifest_.plugins, diagnostics_);
  name_isolated();
  diagnostics_.throw_if_errors(exit_bad_input);

  choices_.read(diagnostics_);
  collect_rules();
  switches_.add_manifest(manifest_.switches);
  const std::filesystem::path& switch_file =
      options_.switch_file.empty() ? manifest_.switch_file : options_.switch_file;
  if (!switch_file.empty()) switches_.add_file(switch_file, diagnostics_);
  switches_.add_command_line(options_.switches, diagnostics_);
  declare_switches();
  switches_.resolve(diagnostics_);
  passes_ = PassManager(host_, registries(), switches_, rule_sources_)
                .prepare(manifest_.pipeline, manifest_.pipeline_is_default, diagnostics_);
  cut_after_stop();
  diagnostics_.throw_if_errors(exit_bad_input);
}

void Engine::load_lock() {
  PluginLock lock = read_plugin_lock(manifest_.lock_file, manifest_.path);
  for (const LockedPlugin& plugin : lock.plugins) {
    const bool is_named =
        std::any_of(manifest_.plugins.begin(), manifest_.plugins.end(),
                    [&](const PluginRequest& request) { return lock.find(request) == &plugin; });
    if (!is_named)
      diagnostics_.warning("M333", lock.file.string(),
                           "has plugin " + (plugin.name.empty() ? plugin.path.string() : plugin.name) +
                               ", which " + manifest_.path +
                               " does not name; write it again with `tenon plugins lock " + manifest_.path +
                               "`");
  }
  plugins_.set_lock(std::move(lock));
}

Engine::~Engine() = default;

// By name or id in the manifest; kernels know their plugin's name.
void Engine::name_isolated() {
  for (std::string& wanted : manifest_.runtime.isolate) {
    if (const LoadedPlugin* plugin = plugins_.find(wanted)) {
      wanted = plugin->name;
      continue;
    }
    std::vector<std::string> known;
    for (const LoadedPlugin& plugin : plugins_.loaded()) known.push_back(plugin.name);
    diagnostics_.error("M236", "runtime.isolate",
                       "no plugin '" + wanted + "' is loaded" + did_you_mean(wanted, known) +
                           "; loaded: " + join(known, ", "));
  }
}

void Engine::cut_after_stop() {
  if (options_.stop_after.empty()) return;
  if (options_.stop_after == "load" || options_.stop_after == "upgrade" || options_.stop_after == "infer") {
    passes_.clear();
    return;
  }
  std::vector<std::string> known = {"load", "upgrade", "infer"};
  size_t last = passes_.size();
  for (size_t i = 0; i < passes_.size(); ++i) {
    known.push_back(string(passes_[i].entry->record->id));
    if (known.back() == options_.stop_after) last = i;
  }
  if (last == passes_.size()) {
    diagnostics_.error("M235", "--stop-after",
                       "no stage of the pipeline is called '" + options_.stop_after + "'" +
                           did_you_mean(options_.stop_after, known) + "; stages: " + join(known, ", "));
    return;
  }
  passes_.resize(last + 1);
}

void Engine::collect_rules() {
  const auto add = [this](std::string path, std::string text, bool builtin) {
    rule_texts_.push_back(std::make_unique<std::string>(std::move(path)));
    const tn_str place = to_abi(*rule_texts_.back());
    rule_texts_.push_back(std::make_unique<std::string>(std::move(text)));
    rule_sources_.push_back({place, to_abi(*rule_texts_.back()), builtin ? 1u : 0u, 0});
  };
  const auto add_file = [&](const std::filesystem::path& path, bool builtin, const RuleRequest& request) {
    try {
      if (!request.sha256.empty()) {
        if (const std::string is = sha256_file(path); is != request.sha256) {
          diagnostics_.error(
              "M251", request.where,
              path.string() + " has the sha256 " + is + "; the manifest pins " + request.sha256);
          return;
        }
      }
      add(path.string(), read_text_file(path, uint64_t{64} << 20), builtin);
    } catch (const Error& error) {
      for (const Diagnostic& diagnostic : error.diagnostics)
        diagnostics_.error("M251", request.where, "rules file " + diagnostic.where + ": " + diagnostic.text);
    }
  };
  bool is_wanted = false;
  for (const RuleRequest& request : manifest_.rules) {
    if (!request.inline_text.empty()) {
      add(request.where, request.inline_text, false);
      is_wanted = true;
    } else if (!request.path.empty()) {
      add_file(request.path, request.builtin, request);
      is_wanted = is_wanted || !request.builtin;
    } else {
      const std::vector<std::filesystem::path> files = builtin_rule_files();
      if (files.empty())
        diagnostics_.add(TN_SEVERITY_WARNING, "M252", request.where,
                         "there are no built-in rules in " +
                             (install_root() / "share" / "tenon" / "rules").string() +
                             ", so nothing will be fused; install them beside the program, or take "
                             "\"builtin\" out of \"rules\"");
      for (const std::filesystem::path& file : files) add_file(file, true, request);
    }
  }
  // Plugins load before rules; what they carry comes after the manifest's own.
  for (const tn_rule_source& source : registries().rule_sources()) {
    rule_sources_.push_back(source);
    is_wanted = true;
  }
  if (registries().rule_engine() == nullptr && !rule_sources_.empty()) {
    diagnostics_.add(
        is_wanted ? TN_SEVERITY_WARNING : TN_SEVERITY_INFO, "M253", "rules",
        std::to_string(rule_sources_.size()) +
            " rule files have no effect: no loaded plugin has a rule engine; add \"rules\" to \"plugins\"");
  }
}

void Engine::declare_switches() {
  for (const PassEntry& pass : registries().passes()) {
    std::vector<std::string> names = {string(pass.record->id)};
    for (uint32_t i = 0; i < pass.record->alias_count; ++i) names.push_back(string(pass.record->aliases[i]));
    switches_.declare(names, pass.record->level >= 2);
  }
  const RuleEngineEntry* engine = registries().rule_engine();
  if (engine == nullptr || rule_sources_.empty()) return;
  const auto sink = [](void* context, const tn_rule_info* info) {
    if (!TN_HAS(info, enabled)) return;
    RuleInfo rule;
    rule.name = string(info->name);
    rule.switch_name = string(info->switch_name);
    rule.path = string(info->path);
    rule.stage = string(info->stage);
    rule.line = info->line;
    rule.priority = info->priority;
    rule.enabled = info->enabled != 0;
    if (TN_HAS(info, proved_by_cases)) {
      rule.builtin = info->builtin != 0;
      rule.proved_by_cases = info->proved_by_cases != 0;
    }
    for (uint32_t i = 0; i < info->alias_count; ++i) rule.aliases.push_back(string(info->aliases[i]));
    static_cast<std::vector<RuleInfo>*>(context)->push_back(std::move(rule));
  };
  const auto check = [&](std::span<const tn_rule_source> sources, Diagnostics& found) {
    rules_.clear();
    const tn_status status =
        engine->record->check(engine->instance, sources.data(), static_cast<uint32_t>(sources.size()),
                              options_.rules_strict, sink, &rules_, found.abi());
    if (status != TN_OK && !found.has_errors())
      found.error(
          "M254", "rules",
          "the rule engine refuses them with status " + std::to_string(status) + " and did not say why");
  };
  // Faults of rule files are found here, all at once, before the model is touched.
  Diagnostics found;
  check(rule_sources_, found);
  if (found.has_errors()) {
    // A built-in file that does not fit the plugins loaded costs its rules, not the run; one's own file has
    // to be right.
    const auto is_faulty = [&](const tn_rule_source& source) {
      if (source.builtin == 0) return false;
      Diagnostics own;
      check({&source, 1}, own);
      if (!own.has_errors()) return false;
      diagnostics_.warning("M255", string(source.path),
                           "these built-in rules are left out: " + own.first_error());
      return true;
    };
    const size_t before = rule_sources_.size();
    std::erase_if(rule_sources_, is_faulty);
    if (rule_sources_.size() != before) {
      found.clear();
      check(rule_sources_, found);
    }
  }
  diagnostics_.append(found);
  for (const RuleInfo& rule : rules_) {
    std::vector<std::string> names = {rule.name, rule.switch_name};
    names.insert(names.end(), rule.aliases.begin(), rule.aliases.end());
    switches_.declare(names, rule.stage != "canonicalize");
  }
}

std::unique_ptr<Graph> Engine::load_model(const std::filesystem::path& path) {
  Manifest other = manifest_;
  other.model_path = path;
  other.model_sha256.clear();
  return load(other);
}

std::unique_ptr<Graph> Engine::load_model() { return load(manifest_); }

std::unique_ptr<Graph> Engine::load(const Manifest& manifest) {
  std::unique_ptr<Graph> graph = read_model(manifest, registries(), host_, diagnostics_);
  if (options_.stop_after == "load") return graph;
  apply_shapes(*graph, manifest_.shapes, diagnostics_);
  diagnostics_.throw_if_errors(exit_bad_input);
  upgrade_and_infer(*graph, registries(), diagnostics_);
  return graph;
}

void Engine::optimize(Graph& graph, OptimizeReport& report, std::span<const tn_tensor> samples) {
  PassOptions pass_options;
  pass_options.level = manifest_.level;
  pass_options.precision_mode = manifest_.precision.mode;
  pass_options.rules_verify = static_cast<uint32_t>(manifest_.rules_verify);
  pass_options.samples = samples;
  pass_options.on_error = manifest_.on_error;
  pass_options.verify_graph = options_.verify_graph;
  pass_options.explain = options_.explain;
  pass_options.edit_limit = options_.edit_limit;
  pass_options.dump_folder = options_.dump_folder;
  pass_options.cancel = options_.cancel;
  PassManager(host_, registries(), switches_, rule_sources_)
      .run(graph, passes_, pass_options, report, diagnostics_);
  choices_.write();
}

}  // namespace tenon
