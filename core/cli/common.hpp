// What the verbs share: options, loading, input and output tensors, output of results.
#pragma once
#include <CLI/App.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/assembly/assembly.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/report/summary.hpp"
#include "core/runtime/eval.hpp"
#include "core/runtime/session.hpp"

namespace tenon::cli {

/// A verb parses its options into its own struct and leaves `action` to be called; its result is the exit
/// code.
using Action = std::function<int()>;

/// Options of every verb that loads a model.
struct PipelineOptions {
  std::string target;  // manifest (.json) or model file
  std::vector<std::string> set, rules, plugins, devices, isolate;
  std::string precision, switch_file, switches, dump_folder, stop_after, memory_limit;
  std::string rules_verify;   // --verify; empty: the manifest's
  std::string sample_inputs;  // what rules are checked with at their matches; the verb's --inputs
  std::string stat_folder;
  std::string choices;  // --choices; empty: the manifest's
  int64_t threads = -1, bisect_limit = -1, compile_stat = 0;
  bool rules_strict = false, measure = false;
  std::function<void(Manifest&)> change_manifest;  // after it was read
  std::vector<tn_tensor> samples;  // for the model's inputs, in their order; instead of sample_inputs
  bool verify_graph = false, json = false, quiet = false, print_resolved = false;
};
/// Without `target` the verb has a positional argument of its own.
void add_pipeline_options(CLI::App& app, PipelineOptions& options, bool target = true);

/// A loaded pipeline; what the session needs outlives it.
struct Pipeline {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Evaluator> evaluator;
  std::unique_ptr<Graph> graph;  // until a session takes it
  OptimizeReport report;
  double load_ms = 0;

  Manifest& manifest() { return manifest_; }
  Manifest manifest_;
};
/// Reads the manifest, or the default one for a model; throws Error.
Manifest read_target(const PipelineOptions& options);
/// Plugins and rules only.
Pipeline open_pipeline(const PipelineOptions& options, Manifest manifest, bool explain = false);
/// Also the model, checked for operators nobody has, and the passes.
Pipeline load_pipeline(const PipelineOptions& options, bool explain = false);
/// For --print-resolved, which every verb with pipeline options answers before anything else.
int print_resolved_manifest(const PipelineOptions& options);
std::unique_ptr<Session> make_session(Pipeline& pipeline, bool explain = false);

/// Names come from outside: what a terminal would act on, and zeros that would end the text, as \x1b.
std::string printable(std::string_view text);
/// Findings on stderr: "tenon: warning: place: text". Notes only when verbose.
void print_findings(const std::vector<Diagnostic>& findings, bool notes);
void print_json(const Json& json);

class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// One file a verb.
void add_run(CLI::App& app, Action& action);
void add_optimize(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_rules(CLI::App& app, Action& action);
void add_plugins(CLI::App& app, Action& action);
void add_plugins_new(CLI::App& plugins, Action& action);
void add_plugins_check(CLI::App& plugins, Action& action);  // a verb of `plugins`
void add_listings(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);

}  // namespace tenon::cli
