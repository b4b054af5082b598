// Level 7: what was looked at one by one, at random and in numbers. A crash leaves its input in a file.
#include <algorithm>

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/damage.hpp"
#include "core/check/draw.hpp"
#include "core/check/file_trials.hpp"
#include "core/check/kernel_look.hpp"
#include "core/check/levels.hpp"
#include "core/check/stage.hpp"
#include "core/graph/text_form.hpp"
#include "core/pipeline/pipeline.hpp"

namespace tenon::check {

namespace {

// Where a graph lies that is about to be worked on.
void keep_graph(Checker& checker, const Graph& graph) {
  const std::filesystem::path path = checker.scratch() / "graph.graph";
  write_file_atomically(path, print(graph));
  checker.reproducer(path);
}

}  // namespace

void fuzz_models(Checker& checker) {
  Engine& engine = checker.engine();
  for (const FrontendEntry& frontend : engine.registries().frontends()) {
    if (!checker.is_own(frontend.plugin)) continue;
    std::vector<SampleFile> files = samples_of(checker, frontend);
    files.push_back({"nothing" + (frontend.record->suffix_count == 0 ? std::string(".bin")
                                                                     : string(frontend.record->suffixes[0])),
                     std::string(64, '\x0a')});
    for (uint32_t i = 0; i < 400 * checker.request().effort; ++i) {
      Random random = checker.random(fmt::format("{} {}", view(frontend.record->id), i));
      const SampleFile& file = files[random.below(files.size())];
      if (checker.begin(
              fmt::format("frontend {}, file {} mangled, {}", view(frontend.record->id), file.name, i)))
        load_and_judge(checker, frontend, file.name, mangled(file.bytes, random));
    }
  }
}

void fuzz_tensor_files(Checker& checker) {
  Engine& engine = checker.engine();
  for (const TensorFileEntry& format : engine.registries().tensor_files()) {
    if (!checker.is_own(format.plugin)) continue;
    std::vector<std::string> files = tensor_file_samples(checker, format);
    if (files.empty()) files.emplace_back(64, '\x0a');
    for (uint32_t i = 0; i < 400 * checker.request().effort; ++i) {
      Random random = checker.random(fmt::format("{} {}", view(format.record->id), i));
      const std::string& bytes = random.of(files);
      if (checker.begin(fmt::format("format {}, mangled, {}", view(format.record->id), i)))
        read_and_judge(checker, format, file_name(format, "mangled"), mangled(bytes, random));
    }
  }
}

// Own passes in random numbers and order, one after another over one graph.
void fuzz_passes(Checker& checker) {
  Engine& engine = checker.engine();
  const Registries& registries = engine.registries();
  std::vector<const PassEntry*> passes;
  for (const PassEntry& pass : registries.passes())
    if (checker.is_own(pass.plugin)) passes.push_back(&pass);
  if (passes.empty()) return;
  const std::vector<CorpusGraph> corpus = load_corpus(registries, checker.request());
  for (uint32_t i = 0; i < 60 * checker.request().effort; ++i) {
    Random random = checker.random(std::to_string(i));
    std::unique_ptr<Graph> graph =
        corpus.empty() || random.chance(0.4)
            ? draw_graph(registries, random, 3 + static_cast<uint32_t>(random.below(10)))
            : cut_graph(*corpus[random.below(corpus.size())].graph, random);
    if (graph == nullptr || !checker.begin(fmt::format("graph {}", i))) continue;
    keep_graph(checker, *graph);
    const std::vector<Tensor> inputs = random_inputs(*graph, random, Fill::tame);
    const RunResult want = run_graph(*graph, registries, inputs, {});
    std::unique_ptr<Graph> rewritten = graph->clone();
    std::string done;
    bool failed = false;
    for (size_t k = 0; k < 1 + random.below(4) && !failed; ++k) {
      const PassEntry& pass = *random.of(passes);
      done += (done.empty() ? "" : ", ") + string(pass.record->id);
      PassTrial trial = run_pass(engine.host(), registries, pass, engine.rule_sources(), *rewritten);
      failed = !trial.failure.empty();
      if (failed) checker.finding(fmt::format("after {}: {}", done, trial.failure));
      rewritten = std::move(trial.graph);
    }
    if (failed || !want.error.empty()) continue;
    const RunResult got = run_graph(*rewritten, registries, inputs, {});
    std::optional<std::string> text;
    if (!got.error.empty())
      text = "it no longer runs: " + got.error;
    else
      text = difference(want.outputs, got.outputs);
    if (text && is_steady(*graph, registries, inputs, want))
      checker.finding(fmt::format("after {}: {}", done, *text));
  }
}

// Own kernels on nodes drawn anew, with all that may be odd at once.
void fuzz_kernels(Checker& checker) {
  Engine& engine = checker.engine();
  const Registries& registries = engine.registries();
  KernelDevices devices(checker);
  for (const tn_sym op : registries.kernel_ops()) {
    const OpEntry* const entry = registries.find(op);
    if (entry == nullptr) continue;
    for (const KernelEntry& kernel : registries.kernels(op)) {
      if (!checker.is_own(kernel.plugin) || (kernel.record->flags & TN_KERNEL_CONTROL_FLOW) != 0) continue;
      for (uint32_t i = 0; i < 12 * checker.request().effort; ++i) {
        Random random = checker.random(fmt::format("{} {}", view(kernel.record->id), i));
        const std::unique_ptr<Graph> drawn = draw_node(registries, *entry->def, random, {});
        if (drawn == nullptr) continue;
        NodeCase node;
        node.name = "draw " + std::to_string(i);
        node.node = drawn->nodes(Graph::main_region)[0];
        node.graph = drawn->clone();
        if (!checker.begin(fmt::format("kernel {} on {}", view(kernel.record->id), node.name))) continue;
        keep_graph(checker, *drawn);
        std::vector<Tensor> inputs =
            random_inputs(*drawn, random, random.chance(0.5) ? Fill::wild : Fill::tame);
        const std::vector<tn_value>& ids = drawn->region(Graph::main_region).inputs;
        for (const tn_value value : drawn->node(node.node).inputs()) {
          const bool constant = value != TN_NONE && drawn->is_constant(value);
          node.constant.push_back(constant);
          if (value == TN_NONE) {
            node.inputs.emplace_back();
          } else if (constant) {
            tn_tensor bytes{};
            drawn->constant(value, &bytes);
            node.inputs.push_back(std::make_shared<Tensor>(Tensor::copy_of(bytes)));
          } else {
            const auto at = static_cast<size_t>(std::find(ids.begin(), ids.end(), value) - ids.begin());
            node.inputs.push_back(std::make_shared<Tensor>(inputs[at]));
          }
        }
        KernelTrial::Setup setup;
        setup.threads = random.of({1, 2, 7});
        setup.precision = random.of({"faithful", "strict", "exact"});
        if (!devices.give(kernel, setup)) continue;
        KernelTrial trial(registries, kernel, node, setup);
        std::string said;
        if (!trial.refusal().empty() || trial.plan(said) != TN_OK || !trial.is_planned()) continue;
        RunSetup run;
        run.alignment = random.of({0, 64});
        run.tiles_backwards = random.chance(0.5);
        run.threads_at_once = random.chance(0.2) ? 2 : 1;
        for (const std::string& text : trial.run(run).damages) checker.finding(text);
      }
    }
  }
}

}  // namespace tenon::check
