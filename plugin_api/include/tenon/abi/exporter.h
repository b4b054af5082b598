/* tenon.exporters.draft/1: writers of graphs. */
#ifndef TENON_ABI_EXPORTER_H
#define TENON_ABI_EXPORTER_H
#include "files.h"
#include "graph.h"
#include "pass.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_EXPORTERS_ID "tenon.exporters.draft/1"

typedef struct tn_exporter_record {
  uint32_t size;
  uint32_t option_count;
  tn_str id; /* "onnx" */
  tn_str summary;
  const tn_str* suffixes; /* ".onnx" */
  uint32_t suffix_count;
  uint32_t reserved;
  const tn_option_def* options; /* "opset": 0 = the lowest that holds the operators */
  /* Writes through files.h (temporary file, then rename). `options` as in tn_pass_ctx. [main] */
  tn_status (*write)(void* instance, const tn_host* host, tn_graph* graph, tn_str path,
                     const tn_attr* options, uint32_t option_count, const tn_diag* diag);
} tn_exporter_record;

typedef struct tn_exporter_list {
  uint32_t size;
  uint32_t count;
  const tn_exporter_record* const* exporters;
} tn_exporter_list;

#ifdef __cplusplus
}
#endif
#endif
