// A pattern as a graph: what a verify case says, and what it leaves open, is built with random contents.
#pragma once
#include "prove/choices.hpp"
#include "prove/prove.hpp"
#include "tenon/sdk/edit.hpp"

namespace tenon::rules {

/// How the operands of one node stand: of a commutative operator, or the leaves of a tree.
struct Order {
  std::vector<uint32_t> places;  // new position -> operand; empty: as the pattern has them
  bool leans_right = false;      // trees: a op (b op c), not (a op b) op c
};

struct CaseSetup {
  const Variant* variant = nullptr;
  const Json* base = nullptr;     // the case; NULL: everything is open
  const Json* overlay = nullptr;  // of must_not_fire: what it changes; NULL: nothing
  std::vector<size_t> op_choice;  // per node of the variant: which of its operators
  std::vector<Order> orders;      // per node of the variant; may be shorter
  tn_dtype dtype = TN_FLOAT32;
  Choices* choices = nullptr;  // decides what the case leaves open; NULL: what is usual

  // One thing done otherwise than the case says.
  struct Change {
    enum Kind : uint8_t { None, Attribute, Shape, Number, Absent, Axes, Count } kind = None;
    uint32_t index = 0;  // Attribute: node of the variant; the others: value of the rule
    std::shared_ptr<OwnedAttribute> attribute;
    std::vector<int64_t> dims;  // Shape, Axes
    double number = 0;  // Number: times this, and where that changes nothing, plus this; Count: so many
    std::string text;   // "sm.axis = 1"
  } change;
};

/// A graph of the host, with contents for its inputs.
class CaseGraph {
 public:
  CaseGraph(const TestServices& services, const OpCatalog& ops) : services_(services), ops_(ops) {}
  ~CaseGraph();
  CaseGraph(const CaseGraph&) = delete;
  CaseGraph& operator=(const CaseGraph&) = delete;
  /// Empty when built, else why not.
  std::string build(CaseSetup& setup, Random& random);
  tn_graph* raw() const { return graph_; }
  const std::vector<sdk::OwnedTensor>& inputs() const { return inputs_; }
  /// Shapes as built, by value of the rule; of values from outside that are no scalars.
  const std::vector<std::pair<uint32_t, std::vector<int64_t>>>& shapes() const { return shapes_; }
  /// The type with the fewest digits among what comes from outside.
  tn_dtype narrowest() const { return narrowest_; }

 private:
  const Json* find(const std::string& key) const;
  const Json* given(uint32_t value) const;
  static bool is_each(const Json& j);
  size_t list_length(uint32_t value);
  bool listed(const char* key, const std::string& name) const;
  bool constant(uint32_t value) const;
  static const Json* elements_of(const Json& j, tn_dtype* dtype = nullptr);
  const ValueWish* wish(uint32_t value) const;
  std::string shape_of(uint32_t value, std::vector<int64_t>* dims);
  std::string wish_shape(uint32_t value, std::vector<int64_t>* dims) const;
  void learn_symbols();
  /// The shape of `partner` (another operand of the node that reads it) stands in where the case gives none.
  std::string outer(sdk::Transaction& tx, uint32_t value, const VariantNode& node, size_t slot,
                    tn_value partner, Random& random, tn_value* out);
  bool usual_shape(uint32_t value, tn_value partner, std::vector<int64_t>* dims);
  bool chosen_shape(uint32_t value, tn_value partner, std::vector<int64_t>* dims);
  bool unify(const ValueWish& wish, const std::vector<int64_t>& dims);
  tn_dtype type_of(uint32_t value, const VariantNode& node, size_t slot) const;
  sdk::OwnedTensor contents(uint32_t value, tn_dtype dtype, const std::vector<int64_t>& dims, Random& random);
  sdk::OwnedTensor integers(const std::string& parameter, tn_value partner, bool is_constant,
                            std::vector<int64_t> dims, tn_dtype dtype);
  double number_of(uint32_t value);
  bool scalar_constant(uint32_t value) const;
  std::vector<int64_t> dims_of(tn_value value) const;
  std::string parameter(const VariantNode& n, size_t slot) const;
  std::string operands(sdk::Transaction& tx, size_t n, Random& random, std::vector<tn_value>* in);
  std::string operand(sdk::Transaction& tx, size_t n, size_t slot, Random& random, std::vector<tn_value>* in);
  std::string further_operands(sdk::Transaction& tx, size_t n, Random& random, std::vector<tn_value>* in);
  void reorder(sdk::Transaction& tx, size_t n, std::vector<tn_value>* in);
  bool commutes(size_t n) const;
  std::string attributes(size_t n, const std::vector<tn_value>& in, std::vector<OwnedAttribute>* out);
  std::string make_node(size_t n, Random& random);
  std::string make_outputs();
  tn_value literal(sdk::Transaction& tx, size_t n, const Slot& slot);
  const std::vector<int64_t>& axes(tn_value partner, bool* given);

  TestServices services_;
  const OpCatalog& ops_;
  CaseSetup* setup_ = nullptr;
  const Rule* rule_ = nullptr;
  tn_graph* graph_ = nullptr;
  std::vector<tn_value> values_;
  std::vector<int64_t> symbols_;
  std::vector<sdk::OwnedTensor> inputs_;
  std::vector<uint32_t> split_done_;
  std::vector<std::pair<uint32_t, std::vector<int64_t>>> shapes_;
  std::vector<int64_t> axes_;
  bool axes_chosen_ = false;
  tn_dtype narrowest_ = TN_FLOAT32;
  size_t element_ = 0;          // of a list: which of its operands is being made
  tn_value same_as_ = TN_NONE;  // whose shape the next value from outside has
};

}  // namespace tenon::rules
