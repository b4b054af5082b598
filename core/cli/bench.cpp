// tenon bench: latency of the optimised model, alone or against another pipeline, measured in turns.
#include <algorithm>
#include <random>

#include "core/base/text.hpp"
#include "core/cli/common.hpp"
#include "core/cli/tensors.hpp"
#include "core/graph/graph.hpp"
#include "core/runtime/cpu_features.hpp"

namespace tenon::cli {

namespace {

struct Options {
  PipelineOptions pipeline;
  std::string inputs, outputs;
  std::vector<std::string> shapes, compare;
  double seconds = 2;
  uint64_t seed = 1;
};

struct Contestant {
  Pipeline pipeline;
  std::unique_ptr<Session> session;
  InputSet inputs;
  double load_ms = 0;
  std::vector<double> durations;
  std::vector<NamedOutput> outputs;

  void run() {
    const Stopwatch watch;
    outputs = session->run(inputs.tensors);
    durations.push_back(watch.ms());
  }
};

Contestant prepare(const Options& o, const PipelineOptions& pipeline) {
  const Stopwatch load;
  Contestant c;
  c.pipeline = load_pipeline(pipeline);
  c.session = make_session(c.pipeline);
  c.inputs = collect_inputs(o.inputs, c.pipeline.manifest(), c.pipeline.engine->registries(),
                            c.pipeline.engine->host(), c.session->inputs());
  add_random_inputs(o.shapes, o.seed, c.session->inputs(), c.inputs);
  c.session->prepare(c.inputs.tensors);
  c.load_ms = load.ms();
  return c;
}

/// Warm-up until two runs in a row are within 10 %, at least 3 and at most 20 runs.
void warm_up(Contestant& c) {
  for (int i = 0; i < 20; ++i) {
    c.run();
    const auto n = c.durations.size();
    if (i >= 2 && c.durations[n - 1] > 0.9 * c.durations[n - 2]) break;
  }
  c.durations.clear();
}

RunReport report_of(Contestant& c) {
  RunReport r;
  r.model = c.pipeline.manifest().model_path.string();
  r.optimize = &c.pipeline.report;
  r.stats = c.session->stats();
  r.latency = summarize_latency(c.durations);
  r.load_ms = c.load_ms;
  r.precision = c.pipeline.manifest().precision.mode;
  r.isa = isa_name(cpu_features());
  r.threads = c.session->thread_count();
  return r;
}

double runs_per_second(const LatencySummary& latency) {
  return latency.median_ms > 0 ? 1000.0 / latency.median_ms : 0.0;
}

Json result_json(Contestant& c) {
  const RunReport r = report_of(c);
  Json j = run_report_json(r);
  j["throughput_per_s"] = runs_per_second(r.latency);
  return j;
}

/// Median of the paired ratios and its 95 % bootstrap bounds.
void ratio_bounds(std::vector<double> ratios, double* median, double* lo, double* hi) {
  const auto middle = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
  };
  std::mt19937 random(0);
  std::uniform_int_distribution<size_t> pick(0, ratios.size() - 1);
  std::vector<double> medians, sample(ratios.size());
  for (int i = 0; i < 1000; ++i) {
    for (double& x : sample) x = ratios[pick(random)];
    medians.push_back(middle(sample));
  }
  std::sort(medians.begin(), medians.end());
  *median = middle(ratios);
  *lo = medians[25];
  *hi = medians[974];
}

int compare(const Options& o) {
  PipelineOptions first = o.pipeline, second = o.pipeline;
  first.target = o.compare[0];
  second.target = o.compare[1];
  Contestant a = prepare(o, first), b = prepare(o, second);
  warm_up(a);
  warm_up(b);
  std::vector<double> ratios;
  const Stopwatch total;
  while (total.ms() < o.seconds * 1000 || ratios.size() < 11) {
    a.run();
    b.run();
    ratios.push_back(a.durations.back() / b.durations.back());
  }
  double median = 0, lo = 0, hi = 0;
  ratio_bounds(ratios, &median, &lo, &hi);
  if (o.pipeline.json) {
    print_json({{"a", result_json(a)},
                {"b", result_json(b)},
                {"ratio", {{"median", median}, {"low", lo}, {"high", hi}, {"pairs", ratios.size()}}}});
    return 0;
  }
  const auto la = summarize_latency(a.durations), lb = summarize_latency(b.durations);
  std::printf("A %s: %.3f ms\nB %s: %.3f ms\nA/B %.3f [%.3f .. %.3f] over %zu pairs: %s\n",
              first.target.c_str(), la.median_ms, second.target.c_str(), lb.median_ms, median, lo, hi,
              ratios.size(),
              hi < 1   ? "A is faster"
              : lo > 1 ? "B is faster"
                       : "no difference shown");
  return 0;
}

int bench(const Options& o) {
  if (o.pipeline.print_resolved) return print_resolved_manifest(o.pipeline);
  if (!o.compare.empty()) return compare(o);
  Contestant c = prepare(o, o.pipeline);
  warm_up(c);
  const Stopwatch total;
  while (total.ms() < o.seconds * 1000 || c.durations.size() < 5) c.run();
  if (!o.outputs.empty())
    write_outputs(o.outputs, c.outputs, c.pipeline.engine->registries(), c.pipeline.engine->host());
  if (o.pipeline.json) {
    print_json(result_json(c));
    return 0;
  }
  const RunReport r = report_of(c);
  std::printf("%sthroughput %.1f runs/s; peak memory of the process %s\n", run_report_text(r).c_str(),
              runs_per_second(r.latency), format_bytes(peak_rss_bytes()).c_str());
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  auto* verb = app.add_subcommand("bench", "measure latency, throughput, memory and load time");
  add_pipeline_options(*verb, o->pipeline);
  verb->get_option("target")->required(false);
  verb->add_option("--inputs", o->inputs, "input tensors as for run; random ones otherwise")
      ->type_name("FILE|DIR");
  verb->add_option("--outputs", o->outputs, "write the results of the timed runs")->type_name("FILE|DIR/");
  verb->add_option("--shape", o->shapes, "shape of a random input, as in x:1,3,224,224")
      ->allow_extra_args(false);
  verb->add_option("--seconds", o->seconds, "measure this long (at least 5 runs)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--seed", o->seed, "of random inputs");
  verb->add_option("--compare", o->compare,
                   "two manifests or models, run in turns; prints the ratio with its bounds")
      ->expected(2)
      ->type_name("A B");
  verb->callback([o, &action] {
    if (o->compare.empty() && o->pipeline.target.empty()) throw CLI::RequiredError("target");
    action = [o] { return bench(*o); };
  });
}

}  // namespace tenon::cli
