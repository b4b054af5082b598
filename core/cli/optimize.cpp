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
  Json given = Json::object();
  if (o.opset) given["opset"] = o.opset;
  if (o.external) given["external"] = true;
  Diagnostics findings;
  save_graph(*p.engine, *p.graph, o.output, given, findings);
  if (!o.pipeline.quiet) print_findings(findings.all(), false);
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
  } else if (!o.output.empty()) {
    write_graph(p, o);
  }
  if (o.pipeline.json) {
    Json j = optimize_report_json(p.report);
    j["load_ms"] = p.load_ms;
    if (profile) j["profile"] = profile_json(*profile);
    if (p.report.edit_limit_reached) j["edits_by"] = p.report.edit_authors;
    print_json(j);
    return 0;
  }
  if (o.pipeline.quiet || o.output.empty()) return 0;
  std::printf("%s", optimize_report_text(p.report).c_str());
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
