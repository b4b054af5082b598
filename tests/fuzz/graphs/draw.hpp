// Draws a random valid graph, node by node: each is committed by itself, so that inference tells the types of
// its results, which the next nodes go by, and a node that inference refuses is not there.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/check/random.hpp"
#include "core/graph/graph.hpp"
#include "core/plugin/registries.hpp"
#include "fill.hpp"

namespace tenon::fuzz {

using Dims = std::vector<int64_t>;
using Dtypes = std::vector<tn_dtype>;

// A value of the main region that nodes may read. `dims` are the sizes it has in the runs, which the drawer
// knows where they do not depend on data; in the graph they may be symbols.
struct Drawn {
  tn_value id = TN_NONE;
  uint32_t kind = TN_KIND_TENSOR;
  tn_dtype dtype = TN_DTYPE_NONE;
  bool known = false;
  Dims dims;
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t count() const;
};

struct Attribute {
  std::string_view name;
  tn_attr_kind kind = TN_ATTR_INT;
  int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<int64_t> ints;
  Attribute(std::string_view n, int64_t v) : name(n), i(v) {}
  Attribute(std::string_view n, int v) : name(n), i(v) {}
  // As a model file holds it: a float32.
  Attribute(std::string_view n, double v)
      : name(n), kind(TN_ATTR_FLOAT), f(static_cast<double>(static_cast<float>(v))) {}
  Attribute(std::string_view n, const char* v) : name(n), kind(TN_ATTR_STRING), s(v) {}
  Attribute(std::string_view n, std::vector<int64_t> v) : name(n), kind(TN_ATTR_INTS), ints(std::move(v)) {}
};
using Attributes = std::vector<Attribute>;

// What the graph of a seed is like.
struct Wishes {
  int64_t nodes = 8;
  double symbolic = 0;     // probability of a symbol for a dim of an input
  bool wild = false;       // NaN, infinities, extremes among the constants and inputs
  double constants = 0.5;  // of new operands; the others are inputs
};

class Drawer {
 public:
  Drawer(const Registries& registries, uint64_t seed);

  // Draws nodes as wished, then chooses the graph's outputs: what nothing reads, and some of what is read.
  std::unique_ptr<Graph> draw(std::map<std::string, uint64_t, std::less<>>& operators);
  const Wishes& wishes() const { return wishes_; }

  // --- for recipes
  Random random;
  Wishes wishes_;  // a recipe may look at them
  const tn_op_def* definition(std::string_view op) const;
  const tn_op_def* any_definition();  // of all that are registered, without those that are not deterministic
  static std::string symbol_of(const tn_op_def& def);
  // Of input `i` (a variadic last one goes on), without those that the fuzzer has no values for.
  Dtypes allowed(const tn_op_def& def, uint32_t i) const;
  tn_dtype pick_dtype(const Dtypes& among);  // float32 most of the time
  Dims random_dims(int64_t low_rank, int64_t high_rank);

  // An existing value with known dims, or nothing.
  template <class Test>
  std::optional<Drawn> existing(Test&& test) {
    // The newest first, so that graphs become deep; some of the time any.
    std::vector<size_t> fits;
    for (size_t i = values_.size(); i-- > 0 && fits.size() < 8;)
      if (values_[i].known && test(values_[i])) fits.push_back(i);
    if (fits.empty()) return std::nullopt;
    return values_[random.chance(0.6) ? fits[0] : random.of(fits)];
  }
  std::vector<Drawn>& values() { return values_; }
  // A value of one of these types and a rank in the range: one that is there, or a new input.
  Drawn any(const Dtypes& dtypes, int64_t low_rank = 0, int64_t high_rank = 4);
  Drawn any_float(int64_t low_rank = 0, int64_t high_rank = 4);
  // Of exactly this type and dims: one that is there, a constant or an input.
  Drawn operand(tn_dtype dtype, const Dims& dims, std::optional<Fill> style = {});
  Drawn weight(tn_dtype dtype, const Dims& dims, std::optional<Fill> style = {});  // never one that is there
  // Dims that broadcast to `dims` or, some of the time, with it.
  Dims broadcastable(const Dims& dims);
  Drawn input(tn_dtype dtype, const Dims& dims);
  Drawn constant(const Tensor& tensor);
  Drawn ints(const std::vector<int64_t>& values) { return constant(int64_tensor(values)); }
  int64_t axis(int64_t rank) { return random.between(-rank, rank - 1); }

  // Adds and commits; empty when inference refuses it. `inputs`: id TN_NONE leaves an operand out.
  std::vector<Drawn> node(std::string_view op, const std::vector<Drawn>& inputs,
                          const Attributes& attributes = {}, uint32_t outputs = 1);
  // The first result, or a Drawn without id.
  Drawn node1(std::string_view op, const std::vector<Drawn>& inputs, const Attributes& attributes = {}) {
    const auto results = node(op, inputs, attributes);
    return results.empty() ? Drawn{} : results[0];
  }

  // For nodes with regions: one transaction from open() to close().
  tn_edit* open();
  tn_node create(tn_region region, std::string_view op, const std::vector<tn_value>& inputs,
                 const Attributes& attributes = {}, uint32_t outputs = 1);
  tn_value result(tn_node node, uint32_t i = 0) const { return graph_->node(node).output(i); }
  std::vector<Drawn> close(tn_node node);
  Graph& graph() { return *graph_; }

 private:
  Drawn describe(tn_value value) const;
  void choose_outputs();

  const Registries& registries_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Transaction> edit_;
  size_t values_before_ = 0;
  std::vector<Drawn> values_;
  std::map<std::string, uint64_t, std::less<>>* operators_ = nullptr;
  uint32_t names_ = 0;
};

// The size that a symbol of a drawn graph stands for: its name ends in it.
std::optional<int64_t> symbol_size(std::string_view name);

// A way to add one or a few nodes.
struct Recipe {
  const char* name;
  int weight;
  bool (*add)(Drawer&);
};
std::span<const Recipe> elementwise_recipes();
std::span<const Recipe> shape_recipes();
std::span<const Recipe> network_recipes();
std::span<const Recipe> structure_recipes();
std::span<const Recipe> pattern_recipes();
// Any operator at all, its operands by its definition; most attempts are refused.
bool any_operator(Drawer& drawer);

}  // namespace tenon::fuzz
