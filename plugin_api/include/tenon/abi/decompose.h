/* tenon.decompose.draft/1: what an operator's definition makes of a node, for those who must do without the
 * operator (exporters, partitioners). */
#ifndef TENON_ABI_DECOMPOSE_H
#define TENON_ABI_DECOMPOSE_H
#include "graph_edit.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_DECOMPOSE_ID "tenon.decompose.draft/1"

typedef struct tn_decompose_api {
  uint32_t size;
  uint32_t reserved;
  /* Within the open edit: simpler nodes that compute the same take the place of `node`, which is erased.
   * TN_DECLINED: its operator has no decomposition, or none for this node; nothing has changed. [main] */
  tn_status (*decompose)(const tn_host* host, tn_graph* graph, tn_edit* edit, tn_node node,
                         const tn_diag* diag);
} tn_decompose_api;

#ifdef __cplusplus
}
#endif
#endif
