// Small graphs that checks work on: those that come with the program (share/tenon/check), and the vendor's.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/base/tensor.hpp"
#include "core/check/checker.hpp"
#include "core/check/values.hpp"
#include "core/graph/graph.hpp"
#include "core/runtime/session.hpp"

namespace tenon::check {

struct CorpusGraph {
  std::string name;  // of its file
  std::unique_ptr<Graph> graph;
  bool is_sample = false;  // the vendor's
};

// Those that `registries` know every operator of. Throws Error for a sample that is no graph.
std::vector<CorpusGraph> load_corpus(const Registries& registries, const Request& request);

// Random tensors for a graph's inputs; what the graph leaves open is small. Empty when there is an input that
// is no tensor.
std::vector<Tensor> random_inputs(const Graph& graph, Random random, Fill style);

struct RunResult {
  std::vector<NamedOutput> outputs;
  std::string error;  // empty: it ran
};
struct RunWith {
  bool reference = true;
  const char* precision = "faithful";
  std::vector<std::string> deny;  // kernels, `*` allowed
};
RunResult run_graph(const Graph& graph, const Registries& registries, std::span<const Tensor> inputs,
                    const RunWith& with);

// Where two runs differ; sequences item by item.
std::optional<std::string> difference(std::span<const NamedOutput> want, std::span<const NamedOutput> got);

// What a last place more or less in the inputs changes: a graph whose results hang on that says nothing about
// who computes it.
bool is_steady(const Graph& graph, const Registries& registries, std::span<const Tensor> inputs,
               const RunResult& result);

}  // namespace tenon::check
