/* tenon.passes/1: rewrites of a whole graph. The host's wrapper gives every pass its switch, options,
 * time, verification after, dump, undo and bisect; a pass only rewrites. */
#ifndef TENON_ABI_PASS_H
#define TENON_ABI_PASS_H
#include "explain.h"
#include "graph.h"
#include "graph_edit.h"
#include "rules.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_PASSES_ID "tenon.passes/1"

typedef struct tn_option_def {
  tn_str name;
  uint32_t kind; /* TN_ATTR_INT (also bool as 0/1), TN_ATTR_FLOAT, TN_ATTR_STRING, TN_ATTR_STRINGS */
  uint32_t is_bool;
  int64_t default_int;
  double default_float;
  tn_str default_string;
  double min, max; /* of numbers; min > max: no bounds */
  tn_str doc;
} tn_option_def;

/* What a pass gets. Valid during run. */
typedef struct tn_pass_ctx {
  uint32_t size;
  int32_t level; /* manifest level 0..3 */
  tn_graph* graph;
  const tn_host* host;
  tn_str precision_mode;  /* strict, exact, faithful, bf16, fp16, fast */
  const tn_attr* options; /* one for each option of the record, in its order, defaults filled in */
  uint32_t option_count;
  uint32_t rules_verify; /* 0 off, 1 auto, 2 sample: repeat a rule's check at its real matches */
  const tn_explain* explain;
  const tn_rule_source* rule_sources; /* the manifest's and the plugins' rule files, in their order */
  uint32_t rule_source_count;
  uint32_t reserved;
  /* "on", "off", or none when nothing was said about this name (rule id, switch name or alias). */
  tn_str (*switch_of)(const struct tn_pass_ctx* ctx, tn_str name);
  /* One applied rewrite of rule or step `who`; `matched` counts places whose pattern was found. For the
   * summary. */
  void (*count)(const struct tn_pass_ctx* ctx, tn_str who, uint64_t matched, uint64_t applied);
  int (*cancelled)(const struct tn_pass_ctx* ctx); /* non-zero: return soon */
  /* How many places `who` was tried at. For the report. */
  void (*tried)(const struct tn_pass_ctx* ctx, tn_str who, uint64_t roots);
  /* A check found `who` wrong: it is off for the rest of the run. The pass returns soon; the host undoes what
   * it did and runs it again. */
  void (*switch_off)(const struct tn_pass_ctx* ctx, tn_str who, tn_str why);
  /* What the user gave for the main region's inputs, in their order; dtype TN_DTYPE_NONE: not given. */
  const tn_tensor* samples;
  uint64_t sample_count;
  /* What looking for the places of rule or step `who` took, found or not: nanoseconds of CPU, and steps of
   * its own counting, the same on every machine. Adds to what was said before. For the report. */
  void (*spent)(const struct tn_pass_ctx* ctx, tn_str who, uint64_t nanoseconds, uint64_t steps);
} tn_pass_ctx;

enum { TN_PASS_ANALYSIS = 1 /* never edits */, TN_PASS_IDEMPOTENT = 2 };

typedef struct tn_pass_record {
  uint32_t size;
  uint32_t flags;
  tn_str id;      /* "fold" */
  tn_str summary; /* one line */
  tn_str doc;     /* what must have run before, what it leaves behind */
  int32_t level;  /* the lowest level at which the default pipeline has it */
  uint32_t option_count;
  const tn_option_def* options;
  const tn_str* after; /* passes that come earlier when both are named */
  const tn_str* before;
  const tn_str* aliases; /* other names for switches: CANN's, ONNX Runtime's, the articles' */
  uint32_t after_count, before_count, alias_count;
  uint32_t reserved;
  /* TN_OK also when nothing changed. A failure restores the graph to its state before the pass. [main] */
  tn_status (*run)(void* instance, const tn_pass_ctx* ctx, const tn_diag* diag);
} tn_pass_record;

typedef struct tn_pass_list {
  uint32_t size;
  uint32_t count;
  const tn_pass_record* const* passes;
} tn_pass_list;

#ifdef __cplusplus
}
#endif
#endif
