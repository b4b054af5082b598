/* Fusion rules as data: files a plugin carries, named constant transforms, and the engine behind `tenon
 * rules`. */
#ifndef TENON_ABI_RULES_H
#define TENON_ABI_RULES_H
#include "explain.h"
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_rule_source {
  tn_str path;      /* for messages; "plugin com.acme: acme.json" when carried by a plugin */
  tn_str text;      /* JSON */
  uint32_t builtin; /* 1: default priority 9000 instead of 7000 */
  uint32_t reserved;
} tn_rule_source;

/* tenon.rules.draft/1: rule files inside a plugin. */
#define TN_RULES_ID "tenon.rules.draft/1"
typedef struct tn_rule_list {
  uint32_t size;
  uint32_t count;
  const tn_rule_source* sources;
} tn_rule_list;

/* tenon.transforms.draft/1: constant transforms that rule expressions cannot say, named with a version. */
#define TN_TRANSFORMS_ID "tenon.transforms.draft/1"
typedef struct tn_transform {
  uint32_t size;
  uint32_t version;
  tn_str name;              /* "tenon.pack_qkv" */
  const tn_str* parameters; /* argument names */
  uint32_t parameter_count;
  uint32_t reserved;
  /* Gives the result to sink once; arguments in the order of `parameters`. */
  tn_status (*apply)(void* instance, const tn_tensor* arguments, uint32_t count,
                     void (*sink)(void* context, const tn_tensor* result), void* context,
                     const tn_diag* diag);
} tn_transform;
typedef struct tn_transform_list {
  uint32_t size;
  uint32_t count;
  const tn_transform* const* transforms;
} tn_transform_list;

/* tenon.rule-engine.draft/1: what stands behind `tenon rules check|test|list`. */
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
} tn_rule_info;
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
} tn_rule_engine_api;

#ifdef __cplusplus
}
#endif
#endif
