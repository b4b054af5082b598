// tenon explain: why a rule, pass or kernel did or did not apply; who owns the memory.
#include <algorithm>

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/cli/common.hpp"
#include "core/cli/tensors.hpp"
#include "core/graph/graph.hpp"
#include "core/report/explain_node.hpp"
#include "core/report/explain_text.hpp"

namespace tenon::cli {

namespace {

struct Options {
  PipelineOptions pipeline;
  std::string rule, node, inputs, lines;
  std::vector<std::string> shapes;
  bool memory = false, time = false;
};

struct Planned {
  std::unique_ptr<Session> session;
  InputSet inputs;
};

Planned planned_session(const Options& o, Pipeline& p) {
  Planned made;
  made.session = make_session(p, true);
  made.inputs = collect_inputs(o.inputs, p.manifest(), p.engine->registries(), p.engine->host(),
                               made.session->inputs());
  add_random_inputs(o.shapes, 1, made.session->inputs(), made.inputs);
  made.session->run(made.inputs.tensors);
  return made;
}

void print_memory(const Session& session) {
  const auto stats = session.stats();
  std::printf("arena %s, lower bound (largest live sum) %s, ratio %.3f; without reuse %s; planner %s\n",
              format_bytes(stats.arena_bytes).c_str(), format_bytes(stats.live_bound_bytes).c_str(),
              stats.live_bound_bytes
                  ? static_cast<double>(stats.arena_bytes) / static_cast<double>(stats.live_bound_bytes)
                  : 1.0,
              format_bytes(stats.no_reuse_bytes).c_str(), stats.planner.c_str());
  auto buffers = session.planned_buffers();
  // The step at which most is live, and who is live then.
  uint32_t last = 0;
  for (const auto& b : buffers) last = std::max(last, b.last_step);
  std::vector<uint64_t> live(static_cast<size_t>(last) + 2, 0);
  for (const auto& b : buffers) {
    live[b.first_step] += b.bytes;
    live[b.last_step + 1] -= b.bytes;
  }
  uint64_t sum = 0, most = 0;
  uint32_t peak = 0;
  for (uint32_t i = 0; i <= last; ++i) {
    sum += live[i];
    if (sum > most) most = sum, peak = i;
  }
  std::printf("the peak is at step %u; live there:\n", peak);
  std::erase_if(buffers, [&](const PlannedBuffer& b) { return b.first_step > peak || b.last_step < peak; });
  std::sort(buffers.begin(), buffers.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  for (const auto& b : buffers)
    std::printf("  %10s  at %-12llu steps %u..%u  %s\n", format_bytes(b.bytes).c_str(),
                static_cast<unsigned long long>(b.offset), b.first_step, b.last_step, b.value.c_str());
}

int explain(const Options& o) {
  if (o.pipeline.print_resolved) return print_resolved_manifest(o.pipeline);
  Pipeline p = load_pipeline(o.pipeline, true);
  if (!o.lines.empty()) write_file_atomically(o.lines, explain_lines(p.report));
  if (o.pipeline.json) {
    for (const auto& e : p.report.records)
      if ((o.rule.empty() || e.who == o.rule) && (o.node.empty() || concerns_node(e, o.node)))
        std::printf("%s\n",
                    explain_record_json(e).dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    return 0;
  }
  if (!o.rule.empty()) {
    const auto names = explained_names(p.report);
    if (std::find(names.begin(), names.end(), o.rule) == names.end())
      throw Error(exit_bad_input, "--rule " + o.rule,
                  "no rule or pass of this name looked at the model" + did_you_mean(o.rule, names));
    std::printf("%s", explain_rule_text(p.report, *p.engine, o.rule).c_str());
    return 0;
  }
  if (!o.node.empty()) {
    const std::string rules = explain_node_text(p.report, o.node);
    const std::unique_ptr<Graph> again = o.time ? p.graph->clone() : nullptr;
    const RuntimeOptions timed = runtime_options(p.manifest(), false);
    const Planned planned = planned_session(o, p);
    std::string kernels = expansion_text(*planned.session, o.node);
    for (const PlannedNode& n : nodes_of(*planned.session, o.node)) {
      kernels += planned_text(n);
      if (o.time)
        kernels +=
            timing_text(time_kernels(*again, p.engine->registries(), timed, n, planned.inputs.tensors));
    }
    if (rules.empty() && kernels.empty()) {
      std::vector<std::string> names;
      for (const PlannedNode& n : planned.session->planned_nodes()) names.push_back(n.name);
      throw Error(exit_bad_input, "--node " + o.node,
                  "no such node in the model, and no rule looked at one" + did_you_mean(o.node, names));
    }
    if (!rules.empty()) std::printf("rules and passes that looked at it:\n%s", rules.c_str());
    if (!kernels.empty())
      std::printf("how it runs:\n%s", kernels.c_str());
    else
      std::printf("it is not in the optimised graph\n");
    return 0;
  }
  if (o.memory) {
    print_memory(*planned_session(o, p).session);
    return 0;
  }
  std::printf("%s", pass_table(p.report).c_str());
  for (const auto& name : explained_names(p.report))
    std::printf("%s", explain_rule_text(p.report, *p.engine, name).c_str());
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  auto* verb = app.add_subcommand("explain", "why a rule, pass or kernel did or did not apply");
  add_pipeline_options(*verb, o->pipeline);
  verb->add_option("--rule", o->rule, "one rule or pass");
  auto* node =
      verb->add_option("--node", o->node,
                       "one node of the model: rules that looked at it, kernels and devices it could run on");
  verb->add_flag("--time", o->time, "with --node: measure each kernel that could run it")->needs(node);
  verb->add_option("-o,--output", o->lines, "write every record here, one JSON object a line (explain.jsonl)")
      ->type_name("FILE");
  verb->add_flag("--memory", o->memory, "the arena: lower bound, plan, who owns the peak");
  verb->add_option("--inputs", o->inputs, "input tensors that give the shapes; random ones otherwise")
      ->type_name("FILE|DIR");
  verb->add_option("--shape", o->shapes, "shape of an input, as in x:1,3,224,224")->allow_extra_args(false);
  verb->callback([o, &action] {
    o->pipeline.sample_inputs = o->inputs;
    action = [o] { return explain(*o); };
  });
}

}  // namespace tenon::cli
