// Graphs drawn from nothing but the definitions of operators: nodes that inference accepts.
#pragma once
#include <memory>
#include <vector>

#include "core/check/random.hpp"
#include "core/graph/graph.hpp"
#include "core/plugin/registries.hpp"

namespace tenon::check {

// About so many nodes, of all operators that compute the same each time and own no regions; every result that
// nothing reads is an output.
std::unique_ptr<Graph> draw_graph(const Registries& registries, Random& random, uint32_t nodes);

// One node of the operator over inputs of its own; NULL when inference refused this draw. `dtypes`: of input
// 0, any when empty.
std::unique_ptr<Graph> draw_node(const Registries& registries, const tn_op_def& def, Random& random,
                                 const std::vector<tn_dtype>& dtypes);

// The same graph with only some of its values as outputs, and what they need not left out.
std::unique_ptr<Graph> cut_graph(const Graph& graph, Random& random);

// The nodes of the main region in another order that is as good.
std::unique_ptr<Graph> shuffle_nodes(const Graph& graph, const Registries& registries, Random& random);

// The element types that a definition allows its input `i`; those without plain numbers are left out.
std::vector<tn_dtype> allowed_dtypes(const tn_op_def& def, uint32_t i);

}  // namespace tenon::check
