// Models: read, optimised, written, explained.
#include <chrono>

#include "core/assembly/assembly.hpp"
#include "core/base/text.hpp"
#include "core/graph/graph.hpp"
#include "core/report/explain_text.hpp"
#include "core/report/summary.hpp"
#include "lib/internal.hpp"

namespace tenon::lib {

ModelState::~ModelState() = default;

namespace {

std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string explained(const ModelState& model, const std::string& rule, const std::string& node, bool json) {
  if (!rule.empty()) {
    const std::vector<std::string> names = explained_names(model.report);
    if (std::find(names.begin(), names.end(), rule) == names.end())
      throw Error(exit_bad_input, "rule '" + rule + "'",
                  "no rule or pass of this name looked at the model" + did_you_mean(rule, names));
  }
  std::string text;
  if (json) {
    for (const ExplainEntry& entry : model.report.records) {
      if ((rule.empty() || entry.who == rule) && (node.empty() || concerns_node(entry, node)))
        text += dumped(explain_record_json(entry), -1) + "\n";
    }
    return text;
  }
  const Engine& engine = *model.host->engine;
  if (!rule.empty()) text += explain_rule_text(model.report, engine, rule);
  if (!node.empty()) text += explain_node_text(model.report, node);
  if (rule.empty() && node.empty()) {
    for (const std::string& name : explained_names(model.report))
      text += explain_rule_text(model.report, engine, name);
  }
  return text;
}

}  // namespace
}  // namespace tenon::lib

using namespace tenon;
using namespace tenon::lib;

tenon_status tenon_model_load(tenon_host* host, const char* path, tenon_model** model, tenon_error** error) {
  return guarded(error, [&] {
    require(host, "host");
    require(model, "model");
    *model = nullptr;
    const auto begin = std::chrono::steady_clock::now();
    auto state = std::make_shared<ModelState>();
    state->host = host->state;
    Engine& engine = *host->state->engine;
    if (path == nullptr && engine.manifest().model_path.empty())
      throw Error(exit_bad_input, engine.manifest().path,
                  "no model: name its file in \"model\", or in this call");
    state->graph = path == nullptr ? engine.load_model() : engine.load_model(std::filesystem::absolute(path));
    state->path = path == nullptr ? engine.manifest().model_path.string() : path;
    engine.require_supported(*state->graph);
    state->report.nodes_before = state->report.nodes_after = state->graph->live_node_count();
    state->load_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    host->state->tell();
    *model = new tenon_model{std::move(state)};
  });
}

tenon_status tenon_model_optimize(tenon_model* model, tenon_error** error) {
  return guarded(error, [&] {
    require(model, "model");
    ModelState& state = *model->state;
    if (state.optimized) return;
    state.report = {};
    state.host->engine->optimize(*state.graph, state.report);
    state.optimized = true;
    state.host->tell();
  });
}

tenon_status tenon_model_save(tenon_model* model, const char* path, tenon_error** error) {
  return guarded(error, [&] {
    require(model, "model");
    require(path, "path");
    ModelState& state = *model->state;
    // An exporter changes what its format cannot say.
    const std::unique_ptr<Graph> copy = state.graph->clone();
    save_graph(*state.host->engine, *copy, path, Json::object(), state.host->engine->diagnostics());
    state.host->tell();
  });
}

tenon_status tenon_model_summary(const tenon_model* model, tenon_format format, char** text,
                                 tenon_error** error) {
  return guarded(error, [&] {
    require(model, "model");
    require(text, "text");
    const OptimizeReport& report = model->state->report;
    *text = as_text(format == TENON_JSON ? dumped(optimize_report_json(report), 2)
                                         : optimize_report_text(report));
  });
}

tenon_status tenon_model_explain(const tenon_model* model, const char* rule, const char* node,
                                 tenon_format format, char** text, tenon_error** error) {
  return guarded(error, [&] {
    require(model, "model");
    require(text, "text");
    if (!model->state->host->explain)
      throw Misuse{"nothing was recorded; open the host with TENON_KEEP_EXPLANATIONS"};
    *text = as_text(explained(*model->state, rule == nullptr ? "" : rule, node == nullptr ? "" : node,
                              format == TENON_JSON));
  });
}

void tenon_model_close(tenon_model* model) { delete model; }
