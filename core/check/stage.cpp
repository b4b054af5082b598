#include "core/check/stage.hpp"

#include <algorithm>

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/pipeline/switches.hpp"

namespace tenon::check {

namespace {

namespace fs = std::filesystem;

constexpr size_t graphs_to_exercise = 3;

void ignore_offset(void*, uint32_t, uint64_t) {}

}  // namespace

PreparedPass default_options(const tn_exporter_record& record) {
  PreparedPass prepared;
  Diagnostics ignored;
  resolve_options(view(record.id), record.options, record.option_count, Json::object(), "check", prepared,
                  ignored);
  return prepared;
}

PassTrial run_pass(Host& host, const Registries& registries, const PassEntry& pass,
                   std::span<const tn_rule_source> rules, const Graph& graph,
                   const PassTrialOptions& options) {
  PassTrial trial;
  trial.graph = graph.clone();
  trial.graph->set_registry(&registries);
  const Switches switches;
  const PassManager manager(host, registries, switches, rules);
  Diagnostics said;
  const std::vector<PreparedPass> prepared =
      manager.prepare({PassRequest{string(pass.record->id), options.options, "check"}}, false, said);
  if (said.has_errors() || prepared.empty()) {
    trial.failure = said.has_errors() ? said.first_error() : "the pass manager does not take it";
    return trial;
  }
  const std::atomic<bool> cancel{options.cancelled};
  PassOptions pass_options;
  pass_options.verify_graph = true;
  pass_options.edit_limit = options.edit_limit;
  pass_options.cancel = &cancel;
  OptimizeReport report;
  try {
    manager.run(*trial.graph, prepared, pass_options, report, said);
  } catch (const Error& error) {
    trial.failure = error.what();
  }
  if (!report.passes.empty() && report.passes.front().outcome == PassReport::Outcome::rolled_back)
    trial.failure = report.passes.front().reason;
  trial.edits = report.edits;
  return trial;
}

Stage::Stage(Checker& checker) : checker_(checker) {}

Stage::~Stage() {
  if (is_open_) checker_.plugin().close(instance_);
}

tn_host* Stage::plugin_host() {
  // The host's own struct, so that its services find the host behind it.
  if (handle_ == nullptr)
    handle_ = const_cast<tn_host*>(host_.host.make_plugin_host(string(checker_.plugin().name), "{}"));
  return handle_;
}

tn_status Stage::open() {
  const tn_status status = checker_.plugin().open(plugin_host(), said_.abi(), &instance_);
  if (status != TN_OK) return status;
  is_open_ = true;
  Diagnostics ignored;
  host_.registries.add_plugin(checker_.plugin(), instance_, ignored);
  // The others' records over the instances that the engine opened on its own host.
  for (const LoadedPlugin& other : checker_.engine().plugins().loaded())
    if (other.table != &checker_.plugin()) host_.registries.add_plugin(*other.table, other.instance, ignored);
  return TN_OK;
}

void Stage::exercise() {
  const Registries& records = checker_.records();
  const tn_host* const host = plugin_host();
  std::vector<CorpusGraph> corpus = load_corpus(host_.registries, checker_.request());
  if (corpus.size() > graphs_to_exercise) corpus.resize(graphs_to_exercise);
  for (const PassEntry& pass : records.passes()) {
    const PassEntry* const own = host_.registries.pass(view(pass.record->id));
    for (const CorpusGraph& one : corpus)
      if (own != nullptr)
        run_pass(host_.host, host_.registries, *own, checker_.engine().rule_sources(), *one.graph);
  }
  for (const FrontendEntry& frontend : records.frontends()) {
    const std::span<const tn_str> suffixes(frontend.record->suffixes, frontend.record->suffix_count);
    std::vector<SampleFile> files = sample_files(checker_, suffixes);
    if (files.size() > graphs_to_exercise) files.resize(graphs_to_exercise);
    for (const SampleFile& file : files) {
      const std::string path = (checker_.scratch() / file.name).string();
      write_file_atomically(path, file.bytes);
      frontend.record->probe(instance_, to_abi(path), reinterpret_cast<const uint8_t*>(file.bytes.data()),
                             std::min<size_t>(file.bytes.size(), 4096));
      Graph graph;
      graph.set_registry(&host_.registries);
      Transaction edit(graph, "load", TN_EDIT_BUILD);
      Diagnostics ignored;
      if (frontend.record->load(instance_, host, to_abi(path), &graph, edit.get(), ignored.abi()) == TN_OK)
        edit.commit(ignored);
    }
  }
  for (const ExporterEntry& exporter : records.exporters()) {
    const PreparedPass options = default_options(*exporter.record);
    for (const CorpusGraph& one : corpus) {
      const std::string path = (checker_.scratch() / "written.model").string();
      const std::unique_ptr<Graph> copy = one.graph->clone();
      copy->set_registry(&host_.registries);
      Diagnostics ignored;
      exporter.record->write(instance_, host, copy.get(), to_abi(path), options.options.data(),
                             static_cast<uint32_t>(options.options.size()), ignored.abi());
    }
  }
  for (const PlannerEntry& planner : records.planners()) {
    const tn_buffer buffers[] = {{256, 64, 0, 1}, {128, 64, 1, 2}, {64, 8, 2, 3}};
    Diagnostics ignored;
    planner.record->plan(instance_, buffers, 3, 384, ignore_offset, nullptr, ignored.abi());
  }
  for (const TensorFileEntry& format : records.tensor_files()) {
    Random random = checker_.random("tensor");
    Tensor tensor(TN_FLOAT32, {2, 3});
    fill(tensor, random, Fill::tame);
    const tn_named_tensor named{to_abi("x"), -1, tensor.view(), TN_KIND_TENSOR, 0};
    const std::string path = (checker_.scratch() / "tensor.bin").string();
    Diagnostics ignored;
    if (format.record->write != nullptr)
      format.record->write(instance_, host, to_abi(path), &named, 1, ignored.abi());
    if (format.record->read != nullptr)
      format.record->read(
          instance_, host, to_abi(path), [](void*, tn_str, uint32_t) { return TN_DTYPE_NONE; },
          [](void*, const tn_named_tensor*) -> tn_status { return TN_OK; }, nullptr, ignored.abi());
  }
  // Operators: inference over graphs that have them.
  for (const CorpusGraph& one : corpus) {
    const std::unique_ptr<Graph> copy = one.graph->clone();
    copy->set_registry(&host_.registries);
    Diagnostics ignored;
    infer_graph(*copy, ignored);
  }
}

std::vector<SampleFile> sample_files(Checker& checker, std::span<const tn_str> suffixes) {
  constexpr size_t most = 6, largest_bytes = 1 << 16;
  std::vector<SampleFile> files;
  const auto fits = [&](const std::string& name) {
    return std::any_of(suffixes.begin(), suffixes.end(),
                       [&](tn_str suffix) { return lower(name).ends_with(lower(view(suffix))); });
  };
  std::error_code error;
  if (!checker.request().samples.empty())
    for (const auto& entry : fs::directory_iterator(checker.request().samples, error))
      if (entry.is_regular_file() && fits(entry.path().filename().string()))
        files.push_back({entry.path().filename().string(), read_text_file(entry.path())});
  std::sort(files.begin(), files.end(),
            [](const SampleFile& a, const SampleFile& b) { return a.name < b.name; });
  Engine& engine = checker.engine();
  size_t number = 0;
  for (const tn_str suffix : suffixes) {
    const std::string name = "sample" + string(suffix);
    const ExporterEntry* const exporter = engine.registries().exporter_for(name);
    if (exporter == nullptr) continue;
    const PreparedPass options = default_options(*exporter->record);
    for (const CorpusGraph& one : load_corpus(engine.registries(), checker.request())) {
      if (files.size() >= most) break;
      const std::string path = (checker.scratch() / (std::to_string(number++) + name)).string();
      Diagnostics ignored;
      const std::unique_ptr<Graph> copy = one.graph->clone();
      if (exporter->record->write(exporter->instance, engine.host().abi(), copy.get(), to_abi(path),
                                  options.options.data(), static_cast<uint32_t>(options.options.size()),
                                  ignored.abi()) != TN_OK)
        continue;
      std::string bytes = read_text_file(path);
      if (bytes.size() <= largest_bytes)
        files.push_back({fs::path(path).filename().string(), std::move(bytes)});
    }
  }
  return files;
}

}  // namespace tenon::check
