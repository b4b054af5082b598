#include "runner.hpp"

#include "compare.hpp"
#include "core/base/text.hpp"
#include "core/cli/tensors.hpp"
#include "core/graph/graph.hpp"
#include "core/pipeline/model_loader.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/runtime/eval.hpp"
#include "core/runtime/session.hpp"

namespace tenon::conformance {

namespace {

EngineOptions engine_options() {
  EngineOptions options;
  options.verify_graph = true;
  return options;
}

RuntimeOptions runtime_options(const Manifest& manifest) {
  RuntimeOptions options;
  options.threads = manifest.runtime.threads;
  options.precision_mode = manifest.precision.mode;
  return options;
}

}  // namespace

struct Runner::State {
  explicit State(const Mode& mode)
      : manifest(mode.manifest),
        engine(mode.manifest, engine_options()),
        evaluator(engine.host(), engine.registries(), runtime_options(mode.manifest)) {}

  std::unique_ptr<Graph> load(const Case& one);
  std::string compare(const Session& session, const std::filesystem::path& data_set,
                      const Tolerance& tolerance, bool shape_only);
  std::string run(const Case& one, bool shape_only);

  Manifest manifest;
  Engine engine;
  Evaluator evaluator;
};

std::unique_ptr<Graph> Runner::State::load(const Case& one) {
  manifest.model_path = one.folder / "model.onnx";
  Diagnostics findings;
  std::unique_ptr<Graph> graph = read_model(manifest, engine.registries(), engine.host(), findings);
  findings.throw_if_errors(exit_bad_input);
  upgrade_and_infer(*graph, engine.registries(), findings);
  findings.throw_if_errors(exit_bad_input);
  engine.require_supported(*graph);
  OptimizeReport report;
  engine.optimize(*graph, report);
  engine.diagnostics().clear();
  return graph;
}

std::string Runner::State::compare(const Session& session, const std::filesystem::path& data_set,
                                   const Tolerance& tolerance, bool shape_only) {
  cli::InputSet inputs;
  cli::read_inputs(data_set, engine.registries(), engine.host(), session.inputs(), inputs);
  const std::vector<NamedOutput> outputs = session.run(inputs.tensors);

  // The expected outputs are read as if they were inputs of the outputs' types.
  std::vector<InputInfo> wanted;
  for (const OutputInfo& output : session.outputs())
    wanted.push_back({output.name, output.kind, output.dtype, output.dims, output.rank_known, false});
  std::string found;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::filesystem::path file = data_set / ("output_" + std::to_string(i) + ".pb");
    cli::InputSet expected;
    cli::read_input(outputs[i].name, file, engine.registries(), engine.host(), wanted, expected);
    const std::string text =
        difference(*outputs[i].value.get(), *expected.values[0].get(), tolerance, shape_only);
    if (!text.empty()) found += (found.empty() ? "" : "; ") + ("output " + outputs[i].name + ": " + text);
  }
  return found;
}

std::string Runner::State::run(const Case& one, bool shape_only) {
  const Session session(load(one), engine.registries(), runtime_options(manifest));
  const auto sets = data_sets(one);
  if (sets.empty()) return "has no test_data_set_0";
  for (const std::filesystem::path& data_set : sets) {
    const std::string found = compare(session, data_set, one.tolerance, shape_only);
    if (!found.empty()) return sets.size() > 1 ? data_set.filename().string() + ": " + found : found;
  }
  return "";
}

Runner::Runner(const Mode& mode) : state_(std::make_unique<State>(mode)) {}
Runner::~Runner() = default;

std::string Runner::run(const Case& one, bool shape_only) {
  try {
    return state_->run(one, shape_only);
  } catch (const Error& error) {
    std::string text;
    for (const Diagnostic& finding : error.diagnostics)
      if (finding.severity == TN_SEVERITY_ERROR) text += (text.empty() ? "" : "; ") + to_string(finding);
    return text.empty() ? "refused without a reason" : text;
  } catch (const std::exception& error) {
    return std::string("an exception that is no Error: ") + error.what();
  }
}

}  // namespace tenon::conformance
