#include "core/assembly/assembly.hpp"

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/text_form.hpp"
#include "core/pipeline/model_loader.hpp"

namespace tenon {

namespace fs = std::filesystem;

RuntimeOptions runtime_options(const Manifest& m, bool explain) {
  RuntimeOptions r;
  r.threads = m.runtime.threads;
  r.precision_mode = m.precision.mode;
  r.kernels.prefer = m.kernels.prefer;
  r.kernels.pin = m.kernels.pin;
  r.kernels.deny = m.kernels.deny;
  r.devices = {m.devices.all, m.devices.use, m.devices.pin, m.devices.deny};
  r.isolate = m.runtime.isolate;
  r.explain = explain;
  return r;
}

PluginRequest plugin_request(const std::string& named, std::string where) {
  PluginRequest request;
  if (named.find('/') != std::string::npos || fs::path(named).extension() == ".so")
    request.path = fs::absolute(named);
  else
    request.name = named;
  request.where = std::move(where);
  return request;
}

RuleRequest rule_request(const std::string& file, std::string where) {
  RuleRequest request;
  request.path = fs::absolute(file);
  request.where = std::move(where);
  return request;
}

void save_graph(Engine& engine, Graph& graph, const fs::path& path, const Json& options,
                Diagnostics& findings) {
  if (has_text_form_suffix(path)) {
    write_file_atomically(path, print(graph));
    return;
  }
  const auto* exporter = engine.registries().exporter_for(path.string());
  if (!exporter)
    throw Error(
        exit_bad_input, path.string(),
        "no plugin writes files with this ending; .onnx is written by plugin onnx, .graph is the text form");
  PreparedPass resolved;
  resolve_options(view(exporter->record->id), exporter->record->options, exporter->record->option_count,
                  options, "optimize", resolved, findings);
  findings.throw_if_errors(exit_bad_input);
  const std::string text = path.string();
  graph.set_edit_limit(UINT64_MAX);  // bounds rewrites, not what the format cannot say
  const tn_status s = exporter->record->write(exporter->instance, engine.host().abi(), &graph, to_abi(text),
                                              resolved.options.data(),
                                              static_cast<uint32_t>(resolved.options.size()), findings.abi());
  if (s != TN_OK && !findings.has_errors())
    findings.error("", text, fmt::format("cannot be written (status {})", s));
  findings.throw_if_errors(exit_job_failed);
}

}  // namespace tenon
