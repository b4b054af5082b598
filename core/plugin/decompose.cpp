#include "core/plugin/decompose.hpp"

namespace tenon {

tn_status decompose(const OpRegistry& ops, Graph& graph, tn_edit* edit, tn_node node, const tn_diag* diag) {
  const OpEntry* entry = ops.find(graph.node(node).op);
  if (entry == nullptr || entry->def == nullptr || entry->def->decompose == nullptr) return TN_DECLINED;
  const tn_status status =
      entry->def->decompose(entry->instance, graph_api(), edit_api(), &graph, edit, node, diag);
  if (status == TN_ERR_UNSUPPORTED) return TN_DECLINED;
  return status == TN_OK ? edit_api()->erase(edit, node) : status;
}

}  // namespace tenon
