// A pattern as a graph: what a verify case says is built with random contents.
#pragma once
#include "prove/prove.hpp"
#include "tenon/sdk/edit.hpp"

namespace tenon::rules {

/// Deterministic on every machine, unlike the distributions of the standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  double uniform();  // [0, 1)
  /// A number of "normal(0,1)", "uniform(-1,1)" or "choice(a,b)".
  double draw(const std::string& distribution);

 private:
  uint64_t state_;
};

struct CaseSetup {
  const Variant* variant = nullptr;
  const Json* base = nullptr;     // the case
  const Json* overlay = nullptr;  // of must_not_fire: what it changes; NULL: nothing
  std::vector<size_t> op_choice;  // per node of the variant: which of its operators
  bool swap_commutative = false;
  tn_dtype dtype = TN_FLOAT32;
};

/// A graph of the host, with contents for its inputs.
class CaseGraph {
 public:
  CaseGraph(const TestServices& services, const OpCatalog& ops) : services_(services), ops_(ops) {}
  ~CaseGraph();
  CaseGraph(const CaseGraph&) = delete;
  CaseGraph& operator=(const CaseGraph&) = delete;
  /// Empty when built, else why not.
  std::string build(const CaseSetup& setup, Random& random);
  tn_graph* raw() const { return graph_; }
  const std::vector<sdk::OwnedTensor>& inputs() const { return inputs_; }

 private:
  const Json* find(const std::string& key) const;
  bool listed(const char* key, const std::string& name) const;
  bool constant(uint32_t value) const;
  static const Json* elements_of(const Json& j, tn_dtype* dtype = nullptr);
  std::string shape_of(uint32_t value, std::vector<int64_t>* dims);
  std::string wish_shape(uint32_t value, std::vector<int64_t>* dims) const;
  void learn_symbols();
  sdk::OwnedTensor contents(uint32_t value, const std::vector<int64_t>& dims, Random& random) const;
  /// The shape of `partner` (another operand of the node that reads it) stands in where the case gives none.
  std::string outer(sdk::Transaction& tx, uint32_t value, tn_value partner, Random& random, tn_value* out);
  bool shape_from_partner(uint32_t value, tn_value partner, std::vector<int64_t>* dims);
  bool scalar_constant(uint32_t value) const;
  std::string make_node(size_t n, Random& random);
  tn_value literal(sdk::Transaction& tx, size_t n, size_t at);
  bool axes_slot(const VariantNode& n, size_t slot) const;

  TestServices services_;
  const OpCatalog& ops_;
  CaseSetup setup_;
  const Rule* rule_ = nullptr;
  tn_graph* graph_ = nullptr;
  std::vector<tn_value> values_;
  std::vector<int64_t> symbols_;
  std::vector<sdk::OwnedTensor> inputs_;
  std::vector<uint32_t> split_done_;
};

}  // namespace tenon::rules
