// An operator's definition put to work: nodes replaced by what they are made of.
#pragma once
#include <tenon/abi/decompose.h>

#include "core/graph/graph.hpp"
#include "core/graph/op_registry.hpp"

namespace tenon {

// Puts simpler nodes that compute the same in the node's place, as its operator's definition says.
// TN_DECLINED: it says nothing for this node.
tn_status decompose(const OpRegistry& ops, Graph& graph, tn_edit* edit, tn_node node, const tn_diag* diag);

}  // namespace tenon
