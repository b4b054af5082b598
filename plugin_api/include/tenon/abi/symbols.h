/* tenon.symbols/1: arithmetic on dimensions that may be unknown. Expressions are kept canonical by the
 * host (sums of products in a fixed order), so equal expressions get equal handles. Handles belong to one
 * graph. */
#ifndef TENON_ABI_SYMBOLS_H
#define TENON_ABI_SYMBOLS_H
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_SYMBOLS_ID "tenon.symbols/1"
#define TN_DIM_MAX    INT64_MAX /* as a bound: no bound known */

struct tn_graph;

typedef enum tn_dim_op {
  TN_DIM_ADD,
  TN_DIM_SUB,
  TN_DIM_MUL,
  TN_DIM_FLOORDIV,
  TN_DIM_CEILDIV,
  TN_DIM_MOD,
  TN_DIM_MIN,
  TN_DIM_MAX_OF
} tn_dim_op;
typedef enum tn_truth { TN_NO = 0, TN_YES = 1, TN_UNKNOWN = 2 } tn_truth;
typedef enum tn_dim_relation { TN_DIM_EQ, TN_DIM_LT, TN_DIM_LE } tn_dim_relation;

/* All [main]. Arithmetic saturates at INT64_MAX rather than wrap; division by a value that may be 0 gives a
 * fresh symbol. Note: a handle is a tn_dim < 0, so a *negative number* cannot be a dimension; in propagated
 * values (shape arithmetic) negative numbers occur (-1 of a Reshape): those are made by `number` and are
 * handles too. */
typedef struct tn_symbols_api {
  uint32_t size;
  uint32_t reserved;
  tn_dim (*combine)(struct tn_graph* graph, tn_dim_op op, tn_dim a, tn_dim b);
  tn_dim (*number)(struct tn_graph* graph, int64_t value);
  /* 1 and *value set when the dim is one known number (negative ones too). */
  int (*as_number)(struct tn_graph* graph, tn_dim dim, int64_t* value);
  tn_dim (*named)(struct tn_graph* graph, tn_str name); /* same name, same handle; range [0, max] */
  tn_dim (*fresh)(struct tn_graph* graph, tn_str hint, int64_t lo, int64_t hi); /* a new one each time */
  void (*range)(struct tn_graph* graph, tn_dim dim, int64_t* lo, int64_t* hi);
  tn_truth (*compare)(struct tn_graph* graph, tn_dim_relation relation, tn_dim a, tn_dim b);
  /* Text such as "batch*(seq + 1)"; valid until the next call of this function on the graph. */
  tn_str (*text)(struct tn_graph* graph, tn_dim dim);
  /* The number that `dim` is where each plain symbol is what lookup says. lookup: 1 and *value set, 0: not
   * known. 1 and *value set; 0: some symbol is not known, or a division by zero. */
  int (*evaluate)(struct tn_graph* graph, tn_dim dim,
                  int (*lookup)(void* context, tn_str symbol, int64_t* value), void* context, int64_t* value);
} tn_symbols_api;

#ifdef __cplusplus
}
#endif
#endif
