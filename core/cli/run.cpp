// tenon run: the main job.
#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/cli/common.hpp"
#include "core/cli/tensors.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/text_form.hpp"
#include "core/runtime/cpu_features.hpp"

namespace tenon::cli {

namespace {

struct Options {
  PipelineOptions pipeline;
  std::string inputs, outputs;
  std::vector<std::string> shapes;
  bool random = false, passes = false;
  uint64_t seed = 1;
};

std::string shape_text(const std::vector<std::string>& dims, bool known) {
  return known ? "[" + join(dims, ",") + "]" : "[?]";
}

void require_inputs(const Session& session, const InputSet& inputs) {
  std::vector<std::string> missing;
  for (const auto& i : session.inputs())
    if (!i.optional && !inputs.has(i.name))
      missing.push_back(
          fmt::format("{}: {}{}", i.name, dtype_name(i.dtype), shape_text(i.dims, i.rank_known)));
  if (missing.empty()) return;
  throw Error(
      exit_bad_input, "inputs",
      fmt::format("no value for {}; give --inputs FILE.npz or DIR/, \"inputs\" in the manifest, or --random",
                  join(missing, ", ")));
}

/// The first numbers of each output, when they go nowhere else.
void print_outputs(const std::vector<NamedOutput>& outputs) {
  for (const auto& o : outputs) {
    if (o.value->kind != TN_KIND_TENSOR) {
      std::printf("%s: %zu values\n", o.name.c_str(), o.value->items.size());
      continue;
    }
    const tn_tensor t = o.tensor();
    std::string numbers;
    const uint64_t width = TN_DTYPE_BITS(t.dtype) / 8;
    const uint64_t n = width ? std::min<uint64_t>(t.bytes / width, 6) : 0;
    for (uint64_t i = 0; i < n; ++i) {
      std::string x = "?";
      if (t.dtype == TN_FLOAT32)
        x = fmt::format("{:.6g}", static_cast<const float*>(t.data)[i]);
      else if (t.dtype == TN_FLOAT64)
        x = fmt::format("{:.6g}", static_cast<const double*>(t.data)[i]);
      else if (t.dtype == TN_INT64)
        x = fmt::format("{}", static_cast<const int64_t*>(t.data)[i]);
      else if (t.dtype == TN_INT32)
        x = fmt::format("{}", static_cast<const int32_t*>(t.data)[i]);
      else if (t.dtype == TN_BOOL || t.dtype == TN_UINT8)
        x = fmt::format("{}", static_cast<const uint8_t*>(t.data)[i]);
      numbers += (i ? " " : "") + x;
    }
    const std::string dims = dims_text({t.dims, static_cast<size_t>(t.rank)});
    std::printf("%s: %s%s = %s%s\n", o.name.c_str(), dtype_name(t.dtype).c_str(), dims.c_str(),
                numbers.c_str(), width && t.bytes / width > n ? " ..." : "");
  }
}

int run(const Options& o) {
  const Stopwatch load;
  if (o.pipeline.print_resolved) return print_resolved_manifest(o.pipeline);
  Pipeline p = load_pipeline(o.pipeline);
  if (!o.pipeline.stop_after.empty()) {
    std::printf("%s", print(*p.graph).c_str());
    return 0;
  }
  auto session = make_session(p);
  Host& host = p.engine->host();
  const Registries& registries = p.engine->registries();
  InputSet inputs = collect_inputs(o.inputs, p.manifest(), registries, host, session->inputs());
  if (o.random) add_random_inputs(o.shapes, o.seed, session->inputs(), inputs);
  require_inputs(*session, inputs);
  const double load_ms = load.ms();

  std::vector<double> durations;
  const Stopwatch first;
  const auto outputs = session->run(inputs.tensors);
  durations.push_back(first.ms());
  // Planning for these shapes happened inside the first run; it is part of loading.
  durations[0] = std::max(0.0, durations[0] - session->stats().plan_ms);

  if (!o.outputs.empty()) {
    write_outputs(o.outputs, outputs, registries, host);
  } else if (!p.manifest().outputs_path.empty()) {
    write_outputs(p.manifest().outputs_path, outputs, registries, host);
  }
  for (const auto& [name, path] : p.manifest().outputs)
    for (const auto& output : outputs)
      if (output.name == name && o.outputs.empty()) write_output(path, output, registries, host);
  if (!o.pipeline.quiet) print_findings(session->diagnostics(), false);

  RunReport report;
  report.model = p.manifest().model_path.string();
  report.optimize = &p.report;
  report.stats = session->stats();
  report.latency = summarize_latency(durations);
  report.load_ms = load_ms;
  report.precision = p.manifest().precision.mode;
  report.isa = isa_name(cpu_features());
  report.threads = session->thread_count();
  if (o.pipeline.json) {
    print_json(run_report_json(report));
    return 0;
  }
  if (o.outputs.empty() && p.manifest().outputs_path.empty() && p.manifest().outputs.empty())
    print_outputs(outputs);
  if (o.pipeline.quiet) return 0;
  if (o.passes) std::printf("%s", pass_table(p.report).c_str());
  std::printf("%s", run_report_text(report).c_str());
  return 0;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  auto* verb = app.add_subcommand("run", "optimise a model and run it on its inputs");
  add_pipeline_options(*verb, o->pipeline);
  verb->add_option("--inputs", o->inputs,
                   "input tensors: .npz (keys are input names), .npy, .pb, or a folder with input_0.pb ...")
      ->type_name("FILE|DIR");
  verb->add_option("--outputs", o->outputs,
                   "where results go: .npz, .npy, .pb, or a folder for output_0.pb ...")
      ->type_name("FILE|DIR/");
  verb->add_flag("--random", o->random, "random values for inputs that are not given");
  verb->add_option("--seed", o->seed, "of random values");
  verb->add_option("--shape", o->shapes, "shape of a random input, as in x:1,3,224,224")
      ->allow_extra_args(false);
  verb->add_option("--stop-after", o->pipeline.stop_after,
                   "stop after this stage (load, infer, or a pass) and print the graph")
      ->type_name("STAGE");
  verb->add_flag("--passes", o->passes, "print what each pass did");
  verb->callback([o, &action] {
    o->pipeline.sample_inputs = o->inputs;
    action = [o] { return run(*o); };
  });
}

}  // namespace tenon::cli
