/* tenon.explain/1: why a rule, pass or kernel did or did not act at a place. Counted in a normal run,
 * recorded in full under `tenon explain`. */
#ifndef TENON_ABI_EXPLAIN_H
#define TENON_ABI_EXPLAIN_H
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_reason {
  TN_REASON_APPLIED,
  TN_REASON_ESCAPE,
  TN_REASON_GUARD,
  TN_REASON_CONST,
  TN_REASON_DTYPE,
  TN_REASON_SHAPE,
  TN_REASON_UNKNOWN,
  TN_REASON_KERNEL,
  TN_REASON_COST,
  TN_REASON_LOST,
  TN_REASON_BUDGET,
  TN_REASON_SWITCH,
  TN_REASON_VERIFY,
  TN_REASON_ROLLBACK,
  TN_REASON_STRUCTURE,
  TN_REASON_LIMIT,
  TN_REASON_COUNT
} tn_reason;

typedef struct tn_explain_record {
  uint32_t size;
  uint32_t reason;        /* tn_reason */
  tn_str who;             /* rule or pass */
  tn_node root;           /* the node looked at; TN_NONE: none */
  tn_value value;         /* the value that decided; TN_NONE: none */
  tn_str place;           /* name of the root as the user knows it; empty: the host looks it up */
  tn_str expr;            /* the predicate: "where[0]: all(v + bn.epsilon > 0)" */
  tn_str got;             /* what was found */
  tn_str hint;            /* what would help; may be empty */
  uint32_t matched_nodes; /* of the pattern, for near misses */
  uint32_t pattern_nodes;
  tn_str variant;   /* which form of the rule was tried: "without bias, sc Div"; may be empty */
  const tn_str* by; /* names of the nodes that stood in the way: other readers, the winner of a conflict */
  uint32_t by_count;
  uint32_t node_count;
  const tn_node* nodes; /* what fitted beside the root: of the match, or of a near miss */
  uint64_t constants_added, constants_removed; /* bytes; of applied rewrites */
} tn_explain_record;

typedef struct tn_explain {
  uint32_t size;
  uint32_t detailed; /* 0: only reason, who, root are needed; spare the text */
  void* context;
  void (*record)(void* context, const tn_explain_record* record); /* copied. [main] */
} tn_explain;

#ifdef __cplusplus
}
#endif
#endif
