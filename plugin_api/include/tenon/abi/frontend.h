/* tenon.frontends/1: readers of model files. A frontend builds a graph; it never decides what can run:
 * an operator it does not know is kept with its raw attributes. */
#ifndef TENON_ABI_FRONTEND_H
#define TENON_ABI_FRONTEND_H
#include "files.h"
#include "graph_edit.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_FRONTENDS_ID "tenon.frontends/1"

typedef struct tn_frontend_record {
  uint32_t size;
  uint32_t reserved;
  tn_str id; /* "onnx" */
  tn_str summary;
  const tn_str* suffixes; /* ".onnx" */
  uint32_t suffix_count;
  uint32_t reserved2;
  /* 0..100: how sure this file is ours, from its name and its first bytes (at most 4096). [any] */
  int (*probe)(void* instance, tn_str path, const uint8_t* bytes, uint64_t count);
  /* Fills the empty graph within `edit` (begun with TN_EDIT_BUILD; the host commits). The graph's opsets are
   * set with set_opset; nodes carry the model's op versions. [main] */
  tn_status (*load)(void* instance, const tn_host* host, tn_str path, tn_graph* graph, tn_edit* edit,
                    const tn_diag* diag);
} tn_frontend_record;

typedef struct tn_frontend_list {
  uint32_t size;
  uint32_t count;
  const tn_frontend_record* const* frontends;
} tn_frontend_list;

#ifdef __cplusplus
}
#endif
#endif
