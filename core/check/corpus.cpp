#include "core/check/corpus.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/text_form.hpp"

namespace tenon::check {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> graph_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".graph") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

bool knows_all(const Graph& graph, const Registries& registries) {
  for (tn_node node = 0; node < graph.node_bound(); ++node)
    if (graph.node(node).alive && registries.find(graph.node(node).op) == nullptr) return false;
  return true;
}

// "N4" stands for 4, as the random graphs name their symbols.
std::optional<int64_t> size_of_symbol(std::string_view name) {
  int64_t size = 0;
  if (name.size() < 2 || name[0] < 'A' || name[0] > 'Z') return 3;
  for (const char c : name.substr(1)) {
    if (c < '0' || c > '9' || size > 1000) return 3;
    size = size * 10 + (c - '0');
  }
  return size;
}

}  // namespace

std::vector<CorpusGraph> load_corpus(const Registries& registries, const Request& request) {
  std::vector<CorpusGraph> corpus;
  const auto load = [&](const fs::path& folder, bool are_samples) {
    for (const fs::path& file : graph_files(folder)) {
      Diagnostics said;
      std::unique_ptr<Graph> graph = parse(read_text_file(file), &registries, said);
      const bool known = graph != nullptr && knows_all(*graph, registries);
      if (known) infer_graph(*graph, said);
      if (known && !said.has_errors()) {
        corpus.push_back({file.filename().string(), std::move(graph), are_samples});
      } else if (are_samples) {
        throw Error(exit_bad_input, file.string(),
                    graph != nullptr && !known
                        ? "has operators that nobody defines; name the plugin that does"
                        : said.first_error());
      }
    }
  };
  load(install_root() / "share" / "tenon" / "check", false);
  if (!request.samples.empty()) load(request.samples, true);
  return corpus;
}

std::vector<Tensor> random_inputs(const Graph& graph, Random random, Fill style) {
  std::vector<Tensor> tensors;
  for (const tn_value id : graph.region(Graph::main_region).inputs) {
    const tn_type& type = graph.type(id);
    if (type.kind != TN_KIND_TENSOR || type.rank < 0) return {};
    std::vector<int64_t> dims;
    for (int32_t i = 0; i < type.rank; ++i)
      dims.push_back(graph.symbols().evaluate(type.dims[i], size_of_symbol).value_or(3));
    fill(tensors.emplace_back(type.dtype, dims), random, style);
  }
  return tensors;
}

RunResult run_graph(const Graph& graph, const Registries& registries, std::span<const Tensor> inputs,
                    const RunWith& with) {
  RunResult result;
  try {
    RuntimeOptions options;
    options.threads = 1;
    options.random_seed = 1;
    options.precision_mode = with.precision;
    options.kernels.prefer_reference = with.reference;
    options.kernels.deny = with.deny;
    const Session session(graph.clone(), registries, options);
    std::vector<NamedTensor> named;
    for (size_t i = 0; i < inputs.size(); ++i)
      named.push_back({session.inputs()[i].name, inputs[i].view(), nullptr});
    result.outputs = session.run(named);
    for (NamedOutput& output : result.outputs)
      output.value = with_own_texts(output.value.get());  // which the session's constants may hold
  } catch (const Error& error) {
    result.error = error.what();
    if (result.error.empty()) result.error = "it does not run";
  }
  return result;
}

std::optional<std::string> difference(std::span<const NamedOutput> want, std::span<const NamedOutput> got) {
  if (want.size() != got.size()) return fmt::format("{} results, expected {}", got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const tn_any& a = *want[i].value.get();
    const tn_any& b = *got[i].value.get();
    const auto told = [&](const std::string& text) { return "result " + quoted(want[i].name) + ": " + text; };
    const bool same_count = a.kind == TN_KIND_TENSOR || a.items.size() == b.items.size();
    if (a.kind != b.kind || !same_count) return told("another kind, or number of items");
    if (a.kind == TN_KIND_TENSOR) {
      if (auto text = difference(a.tensor(), b.tensor())) return told(*text);
      continue;
    }
    for (size_t k = 0; k < a.items.size(); ++k) {
      if (a.items[k]->kind != TN_KIND_TENSOR || b.items[k]->kind != TN_KIND_TENSOR) continue;
      if (auto text = difference(a.items[k]->tensor(), b.items[k]->tensor()))
        return told(fmt::format("item {}: {}", k, *text));
    }
  }
  return std::nullopt;
}

bool is_steady(const Graph& graph, const Registries& registries, std::span<const Tensor> inputs,
               const RunResult& result) {
  for (int sign : {1, -1}) {
    std::vector<Tensor> moved(inputs.begin(), inputs.end());
    for (Tensor& tensor : moved) {
      if (tensor.dtype() == TN_FLOAT32)
        for (float& x : tensor.as<float>()) x *= 1 + 4e-7f * static_cast<float>(sign);
      if (tensor.dtype() == TN_FLOAT64)
        for (double& x : tensor.as<double>()) x *= 1 + 1e-15 * sign;
    }
    const RunResult again = run_graph(graph, registries, moved, {});
    if (!again.error.empty() || difference(result.outputs, again.outputs)) return false;
  }
  return true;
}

}  // namespace tenon::check
