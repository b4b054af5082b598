#include "runner.hpp"

#include "compare.hpp"
#include "core/base/text.hpp"
#include "core/runtime/tensor_files.hpp"
#include "tests/support/whole_program.hpp"

namespace tenon::conformance {

struct Runner::State {
  explicit State(const Mode& mode) : program(mode.manifest, /*verify=*/true) {}

  std::string compare(const Session& session, const std::filesystem::path& data_set,
                      const Tolerance& tolerance, bool shape_only);
  std::string run(const Case& one, bool shape_only);

  test::WholeProgram program;
};

std::string Runner::State::compare(const Session& session, const std::filesystem::path& data_set,
                                   const Tolerance& tolerance, bool shape_only) {
  InputSet inputs;
  read_inputs(data_set, program.engine.registries(), program.engine.host(), session.inputs(), inputs);
  const std::vector<NamedOutput> outputs = session.run(inputs.tensors);

  // The expected outputs are read as if they were inputs of the outputs' types.
  std::vector<InputInfo> wanted;
  for (const OutputInfo& output : session.outputs())
    wanted.push_back({output.name, output.kind, output.dtype, output.dims, output.rank_known, false});
  std::string found;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::filesystem::path file = data_set / ("output_" + std::to_string(i) + ".pb");
    InputSet expected;
    read_input(outputs[i].name, file, program.engine.registries(), program.engine.host(), wanted, expected);
    const std::string text =
        difference(*outputs[i].value.get(), *expected.values[0].get(), tolerance, shape_only);
    if (!text.empty()) found += (found.empty() ? "" : "; ") + ("output " + outputs[i].name + ": " + text);
  }
  return found;
}

std::string Runner::State::run(const Case& one, bool shape_only) {
  const std::unique_ptr<Session> session = program.session(one.folder / "model.onnx");
  const auto sets = data_sets(one);
  if (sets.empty()) return "has no test_data_set_0";
  for (const std::filesystem::path& data_set : sets) {
    const std::string found = compare(*session, data_set, one.tolerance, shape_only);
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
