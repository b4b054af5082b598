// tenon check: every operator that nothing here can run, at once.
#include "core/base/text.hpp"
#include "core/cli/common.hpp"
#include "core/graph/graph.hpp"

namespace tenon::cli {

namespace {

int check(const PipelineOptions& o) {
  if (o.print_resolved) return print_resolved_manifest(o);
  Pipeline p = open_pipeline(o, read_target(o));
  p.graph = p.engine->load_model();
  const auto missing = p.engine->unsupported_operators(*p.graph);
  if (o.json) {
    Json j = {{"nodes", p.graph->live_node_count()}, {"unsupported", Json::array()}};
    for (const auto& u : missing)
      j["unsupported"].push_back({{"op", u.op},
                                  {"count", u.count},
                                  {"nodes", u.nodes},
                                  {"nearest", u.nearest},
                                  {"provided_by", u.provided_by},
                                  {"defined", u.defined}});
    print_json(j);
  } else {
    print_findings(p.engine->diagnostics().all(), false);
    for (const auto& u : missing) std::printf("%s\n", to_string(u).c_str());
    if (missing.empty())
      std::printf("%s: all %u nodes can run\n", p.manifest().model_path.string().c_str(),
                  p.graph->live_node_count());
  }
  return missing.empty() ? 0 : exit_job_failed;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto o = std::make_shared<PipelineOptions>();
  auto* verb = app.add_subcommand("check", "list the operators of a model that nothing loaded can run");
  add_pipeline_options(*verb, *o);
  verb->callback([o, &action] { action = [o] { return check(*o); }; });
}

}  // namespace tenon::cli
