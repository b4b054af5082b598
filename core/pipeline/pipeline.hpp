// From a manifest to an optimised graph: plugins, rules, model, upgrade, inference, passes. Running it is the
// runtime's work.
#pragma once
#include <atomic>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/pipeline/choices.hpp"
#include "core/pipeline/manifest.hpp"
#include "core/pipeline/pass_manager.hpp"
#include "core/pipeline/switches.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/plugin_set.hpp"

namespace tenon {

class Graph;

struct EngineOptions {
  ScanOptions scan;
  std::filesystem::path switch_file;  // --fusion_switch_file; beats the manifest's
  std::string switches;               // --optimization_switch
  bool rules_strict = false;          // a rule of one's own without verify cases is an error
  bool measure = false;               // decide by measuring what the file of choices does not know
  std::string machine;                // where and how it would be measured: kept with each choice
  bool verify_graph = false;
  bool explain = false;
  uint64_t edit_limit = UINT64_MAX;
  std::filesystem::path dump_folder;
  std::string stop_after;  // "load", "infer" or a pass id; what comes after it does not run
  const std::atomic<bool>* cancel = nullptr;
};

// A rule that was loaded.
struct RuleInfo {
  std::string name, switch_name, path, stage;
  std::vector<std::string> aliases;
  uint32_t line = 0;
  int32_t priority = 0;
  bool enabled = true, builtin = false, proved_by_cases = false;
};

// An operator of the model that nothing loaded can define or run.
struct UnsupportedOperator {
  std::string op;  // "com.acme::Fancy"
  uint64_t count = 0;
  std::vector<std::string> nodes;        // the first few
  std::vector<std::string> nearest;      // operators that are defined
  std::vector<std::string> provided_by;  // installed plugins, not named in the manifest, that have it
  bool defined = false;                  // it has a definition, but neither a kernel nor a decomposition
};

std::string to_string(const UnsupportedOperator& op);  // one line

class Engine {
 public:
  // Loads the plugins and rules; throws Error (exit code 2) with all findings.
  explicit Engine(Manifest manifest, EngineOptions options = {});
  ~Engine();

  // Reads the model, brings its operators to canonical versions, applies model.shapes, infers types.
  // Unsupported operators do not stop it. Throws Error (exit code 2).
  std::unique_ptr<Graph> load_model();
  std::unique_ptr<Graph> load_model(const std::filesystem::path& path);  // another one than the manifest's
  std::vector<UnsupportedOperator> unsupported_operators(Graph& graph) const;
  // Throws Error (exit code 2) naming all of them.
  void require_supported(Graph& graph) const;
  // `samples`: tensors for the main region's inputs, in their order, with which rules are checked at their
  // matches; one without a dtype is not given.
  void optimize(Graph& graph, OptimizeReport& report, std::span<const tn_tensor> samples = {});

  const Manifest& manifest() const { return manifest_; }
  Host& host() { return host_; }
  PluginSet& plugins() { return plugins_; }
  const PluginSet& plugins() const { return plugins_; }
  const Registries& registries() const { return plugins_.registries(); }
  const Switches& switches() const { return switches_; }
  const std::vector<PreparedPass>& passes() const { return passes_; }
  const std::vector<tn_rule_source>& rule_sources() const { return rule_sources_; }
  const std::vector<RuleInfo>& rules() const { return rules_; }
  // Warnings and notes so far.
  const Diagnostics& diagnostics() const { return diagnostics_; }
  Diagnostics& diagnostics() { return diagnostics_; }

 private:
  std::unique_ptr<Graph> load(const Manifest& manifest);
  void load_lock();
  void collect_rules();
  void declare_switches();
  void name_isolated();
  void cut_after_stop();

  Manifest manifest_;
  EngineOptions options_;
  Diagnostics diagnostics_;
  Host host_;
  PluginSet plugins_;
  ChoiceStore choices_;
  Switches switches_;
  std::vector<tn_rule_source> rule_sources_;
  std::vector<std::unique_ptr<std::string>> rule_texts_;
  std::vector<RuleInfo> rules_;
  std::vector<PreparedPass> passes_;
};

}  // namespace tenon
