// The matched nodes of the user's graph as a graph of their own, with the model's constants, and tensors for
// what else they read.
#pragma once
#include "prove/prove.hpp"

namespace tenon::rules {

/// Numbers for the symbols of one match, the same everywhere in it. Small and without a common divisor first;
/// what shape arithmetic makes of those may be no shape, so other sets follow.
class DimNumbers {
 public:
  static constexpr size_t attempts = 4;
  explicit DimNumbers(size_t attempt) : attempt_(attempt) {}
  /// False: it depends on something without a number.
  bool evaluate(const GraphAccess& graph, tn_dim dim, int64_t* value);
  bool used() const { return !numbers_.empty(); }  // some dimension was no number

 private:
  int64_t number(const GraphAccess& graph, tn_str symbol);
  size_t attempt_;
  std::vector<std::pair<std::string, int64_t>> numbers_;
};

/// What the user gave for the inputs of the main region; empty: nothing.
struct Samples {
  const tn_tensor* tensors = nullptr;
  uint64_t count = 0;
};

class MatchCopy {
 public:
  explicit MatchCopy(const TestServices& services);
  ~MatchCopy();
  MatchCopy(const MatchCopy&) = delete;
  MatchCopy& operator=(const MatchCopy&) = delete;

  /// Empty when built, else why not.
  std::string build(const GraphAccess& graph, const Match& match, const OpCatalog& ops,
                    const Samples& samples, DimNumbers& numbers);
  /// The same once more, fed with the same tensors.
  std::string build_like(const GraphAccess& graph, const Match& match, const OpCatalog& ops,
                         const MatchCopy& other);
  /// Lets the rule at it, and no other. False: it does not fire on these nodes alone.
  bool rewrite(const Match& match, const OpCatalog& ops, const RuleSet& rules);
  tn_graph* raw() const { return graph_; }
  std::vector<tn_tensor> inputs() const;

 private:
  std::string boundary(const GraphAccess& graph, const Match& match, const Samples& samples,
                       DimNumbers* numbers, const MatchCopy* other);
  std::string fill(const GraphAccess& graph, const Match& match, const std::vector<tn_value>& fed,
                   const Samples& samples, DimNumbers& numbers, std::vector<sdk::OwnedTensor>* tensors);
  std::string nodes(const GraphAccess& graph, const Match& match, const OpCatalog& ops);
  tn_value find(tn_value real) const;

  const TestServices& services_;
  tn_graph* graph_;
  std::vector<std::pair<tn_value, tn_value>> values_;  // of the real graph, and here
  std::vector<std::shared_ptr<sdk::OwnedTensor>> fed_;
};

}  // namespace tenon::rules
