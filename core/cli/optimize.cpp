// tenon optimize: rewrites only, written by an exporter.
#include <optional>

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/cli/sample_profile.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/text_form.hpp"
#include "core/pipeline/model_loader.hpp"

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

struct Options {
  PipelineOptions pipeline;
  std::string output;
  std::string samples;
  int64_t opset = 0;
  bool external = false, fold = false;
};

void write_graph(Pipeline& p, const Options& o) {
  const fs::path path(o.output);
  const auto* exporter = p.engine->registries().exporter_for(path.string());
  if (!exporter)
    throw Error(
        exit_bad_input, path.string(),
        "no plugin writes files with this ending; .onnx is written by plugin onnx, .graph is the text form");
  Json given = Json::object();
  if (o.opset) given["opset"] = o.opset;
  if (o.external) given["external"] = true;
  PreparedPass resolved;
  Diagnostics findings;
  resolve_options(view(exporter->record->id), exporter->record->options, exporter->record->option_count,
                  given, "optimize", resolved, findings);
  findings.throw_if_errors(exit_bad_input);
  const std::string text = path.string();
  p.graph->set_edit_limit(UINT64_MAX);  // bounds rewrites, not what the format cannot say
  const tn_status s = exporter->record->write(exporter->instance, p.engine->host().abi(), p.graph.get(),
                                              to_abi(text), resolved.options.data(),
                                              static_cast<uint32_t>(resolved.options.size()), findings.abi());
  if (!o.pipeline.quiet && !findings.has_errors())
    print_findings(findings.all(), false);  // errors are thrown, and printed then
  if (s != TN_OK && !findings.has_errors())
    findings.error("", text, fmt::format("cannot be written (status {})", s));
  findings.throw_if_errors(exit_job_failed);
}

int optimize(Options o) {
  if (o.pipeline.print_resolved) return print_resolved_manifest(o.pipeline);
  std::optional<SampleProfile> profile;
  if (!o.samples.empty()) {
    profile = profile_samples(o.pipeline, o.samples);
    if (o.fold) {
      o.pipeline.change_manifest = [&profile](Manifest& m) { fold_profiled(*profile, m); };
      o.pipeline.samples = profile->tensors;
    }
    if (!o.pipeline.json && !o.pipeline.quiet)
      std::fprintf(stderr, "%s", profile_text(*profile, o.fold).c_str());
  } else if (o.fold) {
    throw Error(exit_bad_input, "--fold-profiled", "needs --samples DIR, the inputs to learn from");
  }
  Pipeline p = load_pipeline(o.pipeline);
  if (o.output.empty() && !o.pipeline.json) {
    std::printf("%s", print(*p.graph).c_str());
  } else if (has_text_form_suffix(o.output)) {
    write_file_atomically(o.output, print(*p.graph));
  } else if (!o.output.empty()) {
    write_graph(p, o);
  }
  if (o.pipeline.json) {
    Json j = {{"nodes_before", p.report.nodes_before},
              {"nodes_after", p.report.nodes_after},
              {"edits", p.report.edits},
              {"load_ms", p.load_ms}};
    j["passes"] = Json::array();
    for (const auto& pass : p.report.passes)
      j["passes"].push_back({{"id", pass.id},
                             {"ms", pass.seconds * 1e3},
                             {"nodes_before", pass.nodes_before},
                             {"nodes_after", pass.nodes_after},
                             {"edits", pass.edits},
                             {"match_ms", pass.matching.seconds * 1e3},
                             {"match_steps", pass.matching.steps}});
    j["rules"] = Json::object();
    for (const auto& [name, count] : p.report.rules)
      j["rules"][name] = {{"matched", count.matched}, {"applied", count.applied}};
    if (profile) j["profile"] = profile_json(*profile);
    j["matching"] = Json::object();
    for (const auto& [name, cost] : p.report.matching)
      j["matching"][name] = {{"ms", cost.seconds * 1e3}, {"steps", cost.steps}};
    if (p.report.edit_limit_reached) j["edits_by"] = p.report.edit_authors;
    print_json(j);
    return 0;
  }
  if (o.pipeline.quiet || o.output.empty()) return 0;
  std::printf("%s", pass_table(p.report).c_str());
  for (const auto& [name, count] : p.report.rules)
    if (count.matched)
      std::printf("  %-24s matched %llu applied %llu\n", name.c_str(),
                  static_cast<unsigned long long>(count.matched),
                  static_cast<unsigned long long>(count.applied));
  if (p.report.edit_limit_reached)
    std::printf("stopped after %llu rewrites; the last one was %s\n",
                static_cast<unsigned long long>(p.report.edits),
                p.report.edit_authors.empty() ? "none" : p.report.edit_authors.back().c_str());
  std::printf("%s: %llu nodes -> %llu, %.0f ms\n", o.output.c_str(),
              static_cast<unsigned long long>(p.report.nodes_before),
              static_cast<unsigned long long>(p.report.nodes_after), p.load_ms);
  return 0;
}

}  // namespace

void add_optimize(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  auto* verb =
      app.add_subcommand("optimize", "rewrite a model and write it, fused operators as ONNX functions");
  add_pipeline_options(*verb, o->pipeline);
  verb->add_option("-o,--output", o->output,
                   "the file to write: .onnx, or .graph for the text form; none: the text form is printed")
      ->type_name("FILE");
  verb->add_option(
          "--opset", o->opset,
          "ai.onnx version to write, 7 to 28; 0: the lowest from 13 on that holds the operators as they are")
      ->check(CLI::Range(0, 1000));
  verb->add_option("--inputs", o->pipeline.sample_inputs, "input tensors with which --verify checks rules")
      ->type_name("FILE|DIR");
  verb->add_option(
          "--samples", o->samples,
          "run these inputs (.npz files, or folders with input_0.pb ...) and report values that never change")
      ->type_name("DIR");
  verb->add_flag(
      "--fold-profiled", o->fold,
      "make such values constants, behind a check that the inputs they depend on are the samples'");
  verb->add_flag("--external", o->external, "weights in a file of their own beside the model");
  verb->callback([o, &action] { action = [o] { return optimize(*o); }; });
}

}  // namespace tenon::cli
