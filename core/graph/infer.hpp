// Inference of types: checks a node against its operator's definition and asks the definition for the
// results' types, shapes and, for small integer tensors, contents.
//
// One function serves the graph's own (symbolic) types and a plan's concrete ones: all it sees of types is a
// TypeStore. Regions are inferred through the same store, their nodes one after another; recursion is as deep
// as regions nest, which the graph bounds (Graph::max_region_depth).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/op_registry.hpp"

namespace tenon {

inline constexpr uint32_t max_known_elements = 4096;

// Where inference reads and writes what is known of values.
class TypeStore {
 public:
  virtual ~TypeStore() = default;
  virtual tn_type type(
      tn_value value) = 0;  // kind TN_KIND_NONE: unknown. dims valid until that value's next set_type
  // Known contents as dims; valid until that value's next set_elements.
  virtual bool elements(tn_value value, const tn_dim** elements, uint32_t* count) = 0;
  virtual bool data(tn_value value, tn_tensor* out) = 0;  // bytes of constants and of what was computed
  virtual void set_type(tn_value value, const tn_type& type) = 0;
  virtual void set_elements(tn_value value, const tn_dim* elements, uint32_t count) = 0;
  virtual void clear_elements(tn_value value) = 0;
  virtual tn_dim data_dependent(tn_node node, uint32_t output, uint32_t axis, int64_t lo, int64_t hi) = 0;
  // Told of each node whose results were set, nested ones included.
  virtual void inferred(tn_node node) { (void)node; }
};

// Sets the types (and elements) of the node's results in the store. A result the definition says nothing
// about is TN_KIND_NONE, or a tensor of the type its type variable was bound to. TN_OK also when the operator
// has no definition, or the node is of an older version that has yet to be upgraded: the results are then
// unknown. TN_ERR_INVALID: one error was added to the diagnostics, which names the node, what was found and
// expected.
tn_status infer_node(Graph& graph, const OpRegistry& registry, tn_node node, TypeStore& store,
                     Diagnostics& diagnostics);

// Infers the whole graph into its own types: what a pipeline does once after loading and upgrading. Types
// that the model declares for inner values are hints, used where inference says nothing; a declared type of a
// graph output that differs is a warning. Every wrong node is one error. The graph keeps what could be
// inferred. Needs Graph::set_registry.
tn_status infer_graph(Graph& graph, Diagnostics& diagnostics);

// "node '/conv1/Conv' (Conv)", with the first result's name for a nameless node.
std::string node_place(const Graph& graph, tn_node node);
std::string value_place(const Graph& graph, tn_value value);  // "'x'" or "value #12"

// "float32[N,3,224,224]", "seq(float32[?])", "unknown".
std::string type_text(const Graph& graph, const tn_type& type);

// The more precise of two types that describe one value; false when they contradict. Dims of `a` win where
// both are symbols; `a` and `b` may be unknown in part. *out has dims in `dims`.
bool meet_types(Graph& graph, const tn_type& a, const tn_type& b, tn_type* out, std::vector<tn_dim>& dims);
bool types_equal(const tn_type& a, const tn_type& b);
// True when nothing that `wide` says is missing from or contradicted by `narrow`.
bool is_as_precise(Graph& graph, const tn_type& narrow, const tn_type& wide);

}  // namespace tenon
