/* tenon.rules/1: fusion rules as data, in files that a plugin carries. */
#ifndef TENON_ABI_RULES_H
#define TENON_ABI_RULES_H
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_rule_source {
  tn_str path;      /* for messages; "plugin com.acme: acme.json" when carried by a plugin */
  tn_str text;      /* JSON */
  uint32_t builtin; /* 1: default priority 9000 instead of 7000 */
  uint32_t reserved;
} tn_rule_source;

#define TN_RULES_ID "tenon.rules/1"
typedef struct tn_rule_list {
  uint32_t size;
  uint32_t count;
  const tn_rule_source* sources;
} tn_rule_list;

#ifdef __cplusplus
}
#endif
#endif
