/* tenon.eval.draft/1: computing while optimising, with the run's kernels (an oracle's where there is one). */
#ifndef TENON_ABI_EVAL_H
#define TENON_ABI_EVAL_H
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_EVAL_ID "tenon.eval.draft/1"

/* Results are handed to sink (index = result number), valid during that call. */
typedef void (*tn_tensor_sink)(void* context, uint32_t index, const tn_tensor* tensor);

typedef struct tn_eval_api {
  uint32_t size;
  uint32_t reserved;
  /* Runs one node whose operands are all constants. max_bytes bounds the sum of the results (TN_ERR_LIMIT
   * before they are computed). TN_ERR_UNSUPPORTED: no kernel. [main] */
  tn_status (*node)(const tn_host* host, tn_graph* graph, tn_node node, uint64_t max_bytes,
                    tn_tensor_sink sink, void* context, const tn_diag* diag);
  /* A scratch graph for tests of rules: made empty, edited with graph-edit, run as it is, destroyed. */
  tn_graph* (*new_graph)(const tn_host* host);
  void (*delete_graph)(const tn_host* host, tn_graph* graph);
  /* Runs the main region with tensors for its inputs, in order. */
  tn_status (*run)(const tn_host* host, tn_graph* graph, const tn_tensor* inputs, uint32_t count,
                   tn_tensor_sink sink, void* context, const tn_diag* diag);
  /* Runs the main region with the kernels of the run and hands over these values of it (index = place in
   * `wanted`); one that is no tensor is left out. Nodes that no wanted value needs do not run. */
  tn_status (*values)(const tn_host* host, tn_graph* graph, const tn_tensor* inputs, uint32_t count,
                      const tn_value* wanted, uint32_t wanted_count, tn_tensor_sink sink, void* context,
                      const tn_diag* diag);
  /* How long one run of each graph takes, with the kernels of the run, on the same inputs: the least of some
   * runs in turns, as many as `budget` nanoseconds a graph hold (three at least). What is planned once is not
   * counted. Ask only where the user wants measurements; keep what follows from them by tenon.choices. [main]
   */
  tn_status (*time)(const tn_host* host, tn_graph* const* graphs, uint32_t graph_count,
                    const tn_tensor* inputs, uint32_t count, uint64_t budget, uint64_t* nanoseconds,
                    const tn_diag* diag);
} tn_eval_api;

#ifdef __cplusplus
}
#endif
#endif
