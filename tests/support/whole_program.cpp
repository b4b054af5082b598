#include "whole_program.hpp"

#include <cstdlib>

#include "core/graph/graph.hpp"

namespace tenon::test {

namespace {

EngineOptions engine_options(bool verify) {
  EngineOptions options;
  options.verify_graph = verify;
  return options;
}

RuntimeOptions runtime_options(const Manifest& manifest) {
  RuntimeOptions options;
  options.threads = manifest.runtime.threads;
  options.precision_mode = manifest.precision.mode;
  return options;
}

}  // namespace

void use_build_tree(const std::string& build, const std::string& scratch) {
  ::setenv("TENON_CACHE_DIR", (scratch + "/cache").c_str(), 1);
  ::setenv("TENON_SCAN_TIMEOUT_MS", "120000", 0);
  set_install_root(build);
}

Manifest one_thread_manifest(std::vector<std::string> set) {
  Diagnostics findings;
  ManifestOptions options;
  options.set = std::move(set);
  options.set.push_back("runtime.threads=1");
  Manifest manifest = default_manifest(options, findings);
  findings.throw_if_errors(exit_bad_input);
  return manifest;
}

WholeProgram::WholeProgram(Manifest manifest, bool verify)
    : engine(std::move(manifest), engine_options(verify)),
      evaluator(engine.host(), engine.registries(), runtime_options(engine.manifest())) {}

std::unique_ptr<Session> WholeProgram::session(const std::filesystem::path& model) {
  engine.diagnostics().clear();
  std::unique_ptr<Graph> graph = engine.load_model(model);
  engine.require_supported(*graph);
  OptimizeReport report;
  engine.optimize(*graph, report);
  return std::make_unique<Session>(std::move(graph), engine.registries(), runtime_options(engine.manifest()));
}

}  // namespace tenon::test
