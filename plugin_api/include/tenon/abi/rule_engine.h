/* tenon.rule-engine.draft/1: what stands behind `tenon rules`. */
#ifndef TENON_ABI_RULE_ENGINE_H
#define TENON_ABI_RULE_ENGINE_H
#include "graph.h"
#include "rules.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_RULE_ENGINE_ID "tenon.rule-engine.draft/1"
typedef struct tn_rule_info {
  uint32_t size;
  int32_t priority;
  tn_str name, doc, path, stage, switch_name, precision;
  const tn_str* aliases;
  uint32_t alias_count;
  int32_t level;
  uint32_t line; /* of the rule in its file */
  uint32_t enabled;
  uint32_t builtin;
  uint32_t proved_by_cases; /* 1: the rule has verify cases of its own */
} tn_rule_info;

/* A rule file that the engine wrote. */
typedef struct tn_rule_draft {
  uint32_t size;
  uint32_t nodes;       /* of the pattern */
  tn_str name;          /* of the rule */
  tn_str text;          /* the file */
  tn_str summary;       /* "Mul, Sigmoid, Mul" */
  uint64_t occurrences; /* in the model, none overlapping another */
  uint64_t bytes_saved; /* of inner values no longer written and read, over all occurrences */
  const tn_node* roots; /* the node that each occurrence ends with */
  uint32_t root_count;
  uint32_t reserved;
} tn_rule_draft;
typedef struct tn_learn_options {
  uint32_t size;
  uint32_t max_rules;       /* 0: 10 */
  uint32_t max_nodes;       /* of one rule; 0: 12 */
  uint32_t min_occurrences; /* 0: 2 */
} tn_learn_options;
typedef struct tn_rule_engine_api {
  uint32_t size;
  uint32_t reserved;
  /* Parses and checks; all findings go to diag with file:line:col. TN_OK when no error was found. sink gets
   * each good rule. */
  tn_status (*check)(void* instance, const tn_rule_source* sources, uint32_t count, int strict,
                     void (*sink)(void* context, const tn_rule_info* info), void* context,
                     const tn_diag* diag);
  /* Proves the rules numerically on graphs made from their own patterns; report gets one line of text a case.
   */
  tn_status (*test)(void* instance, const tn_rule_source* sources, uint32_t count, tn_str only_rule,
                    uint64_t seed,
                    void (*report)(void* context, tn_str rule, tn_str case_name, int passed, tn_str text),
                    void* context, const tn_diag* diag);
  /* Proposes rules for what a graph repeats: connected, memory-bound, read by nobody outside. The one that
   * saves most comes first. [main] */
  tn_status (*learn)(void* instance, tn_graph* graph, const tn_learn_options* options,
                     void (*sink)(void* context, const tn_rule_draft* draft), void* context,
                     const tn_diag* diag);
  /* Writes a rule whose pattern is these nodes of one region. [main] */
  tn_status (*from_nodes)(void* instance, tn_graph* graph, const tn_node* nodes, uint32_t count, tn_str name,
                          void (*sink)(void* context, const tn_rule_draft* draft), void* context,
                          const tn_diag* diag);
} tn_rule_engine_api;

#ifdef __cplusplus
}
#endif
#endif
