// Nodes for kernels: out of the corpus with the values that flow there, changed in shape and type, and drawn
// from definitions.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/check/checker.hpp"
#include "core/check/corpus.hpp"
#include "core/check/kernel_trial.hpp"

namespace tenon::check {

// A node as it was found, with a tensor for each operand.
struct NodeSource {
  std::string name;
  const Graph* graph = nullptr;
  tn_node node = TN_NONE;
  std::vector<std::shared_ptr<Tensor>> inputs;  // empty where omitted
  std::vector<bool> constant;
};

// The node alone over these operands; nothing where inference refuses them, or the node reads what lies
// around it.
std::optional<NodeCase> make_case(const NodeSource& source, const Registries& registries,
                                  const std::string& what);

class CaseLibrary {
 public:
  explicit CaseLibrary(Checker& checker);

  // At most so many, of as many types and shapes as can be, that the record takes. Owned here.
  std::vector<NodeCase*> accepted(const KernelEntry& kernel, size_t most);
  // Those of its operator, taken or not.
  std::vector<NodeCase> any(tn_sym op, const std::vector<tn_dtype>& dtypes, const std::string& stream,
                            size_t most);
  const std::vector<NodeSource>& sources(tn_sym op) { return sources_[op]; }

 private:
  void collect(const Graph& graph, const std::string& name);

  Checker& checker_;
  const Registries& registries_;
  std::set<tn_sym> wanted_;  // operators that this plugin defines or has kernels for
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::map<tn_sym, std::vector<NodeSource>> sources_;
  std::vector<std::unique_ptr<NodeCase>> kept_;
};

// The tensors of the operands that are inputs of the case's graph.
std::vector<Tensor> graph_inputs(const NodeCase& node);
// The same case with other numbers in its float inputs.
void refill(NodeCase& node, Random& random, Fill style);

}  // namespace tenon::check
