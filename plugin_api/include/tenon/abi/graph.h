/* tenon.graph/1: reading a graph.
 *
 * Semantics. A graph is in static single assignment form. A value has one producer: a node's result, a
 * region's input, or a constant. A node applies an operator to ordered operands (TN_NONE is an omitted
 * optional one) and yields ordered results (results may be TN_NONE too: not wanted). A node may own regions
 * (bodies of If, Loop, Scan; the body of a fused node). Nodes of a region may read values of the regions
 * around it; such a capture is an ordinary use. A region's outputs are uses. Ids are 32 bits, stable, never
 * reused within a graph.
 *
 * An operator is one interned symbol: "Conv" for domain ai.onnx, "domain::Name" for any other.
 * Pointers handed out are owned by the graph and valid until its next edit, or for constants until the value
 * dies. */
#ifndef TENON_ABI_GRAPH_H
#define TENON_ABI_GRAPH_H
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_GRAPH_ID "tenon.graph/1"
#define TN_NONE     UINT32_MAX

typedef struct tn_graph tn_graph;
typedef uint32_t tn_value;
typedef uint32_t tn_node;
typedef uint32_t tn_region;
typedef uint32_t tn_sym; /* an interned string, process-wide; compare as integers */

typedef enum tn_attr_kind {
  TN_ATTR_INT = 1,
  TN_ATTR_FLOAT = 2,
  TN_ATTR_STRING = 3,
  TN_ATTR_INTS = 4,
  TN_ATTR_FLOATS = 5,
  TN_ATTR_STRINGS = 6,
  TN_ATTR_TENSOR = 7,
  TN_ATTR_TYPE = 8
} tn_attr_kind;

/* Regions are not attributes; a region carries the name it had as one. ONNX float attributes are exact in
 * double. */
typedef struct tn_attr {
  tn_sym name;
  uint32_t kind;
  uint64_t count; /* of ints, floats, strings */
  union {
    int64_t i;
    double f;
    tn_str s;
    const int64_t* ints;
    const double* floats;
    const tn_str* strings;
    const tn_tensor* tensor;
    const tn_type* type;
  } u;
} tn_attr;

typedef struct tn_node_info {
  uint32_t size;
  tn_sym op;
  int32_t op_version; /* the operator set version this node is written in; canonical after the upgrade step */
  tn_region region;   /* the region the node lives in */
  tn_str name;        /* the source's name; may be empty */
  const tn_value* inputs;
  const tn_value* outputs;
  const tn_attr* attrs; /* sorted by nothing; at most a handful */
  const tn_region* regions;
  uint32_t input_count, output_count, attr_count, region_count;
  uint32_t attr_stride;
  uint32_t alive; /* 0: the node was erased */
} tn_node_info;

typedef enum tn_value_kind {
  TN_VALUE_DEAD = 0,
  TN_VALUE_RESULT = 1,
  TN_VALUE_REGION_INPUT = 2,
  TN_VALUE_CONSTANT = 3
} tn_value_kind;

typedef struct tn_use {
  tn_node node;     /* TN_NONE: the use is output `index` of region `region` */
  uint32_t index;   /* operand number, or region output number */
  tn_region region; /* the region the user lives in */
} tn_use;

typedef struct tn_value_info {
  uint32_t size;
  uint32_t kind;
  tn_node producer; /* TN_VALUE_RESULT only */
  uint32_t index;   /* result number, or region input number */
  tn_region region; /* where it is defined; constants: the region they were made in */
  uint32_t use_count;
  tn_str name;
  tn_type type;
} tn_value_info;

typedef struct tn_region_info {
  uint32_t size;
  tn_node parent; /* TN_NONE: the main graph */
  tn_str name;    /* "then_branch", "body"; the graph's name for the main one */
  const tn_value* inputs;
  const tn_value* outputs;
  uint32_t input_count, output_count;
  uint32_t node_count;
  uint32_t reserved;
} tn_region_info;

/* All [main] for one graph; different graphs from different threads at once are fine. symbol/symbol_text are
 * [any]. */
typedef struct tn_graph_api {
  uint32_t size;
  tn_region main_region; /* the id of every graph's main region: 0 */
  tn_sym (*symbol)(tn_str text);
  tn_str (*symbol_text)(tn_sym symbol); /* valid until exit */
  /* Fill *out; TN_ERR_NOT_FOUND for an id that never was. The caller sets out->size. */
  tn_status (*node)(tn_graph* graph, tn_node node, tn_node_info* out);
  tn_status (*value)(tn_graph* graph, tn_value value, tn_value_info* out);
  tn_status (*region)(tn_graph* graph, tn_region region, tn_region_info* out);
  /* Live nodes of a region in topological order; each call may cost O(nodes) after an edit. */
  tn_status (*nodes)(tn_graph* graph, tn_region region, const tn_node** ids, uint32_t* count);
  tn_status (*users)(tn_graph* graph, tn_value value, const tn_use** uses, uint32_t* count);
  /* The bytes of a constant (a uniform one is expanded on first call); TN_ERR_NOT_FOUND when it is none. */
  tn_status (*constant)(tn_graph* graph, tn_value value, tn_tensor* out);
  /* 1 when all elements of the constant are equal bit patterns: *element points at one. Never expands. */
  int (*uniform)(tn_graph* graph, tn_value value, const void** element);
  /* Propagated contents of a small integer (or bool) tensor: `count` elements, numbers or symbols.
   * TN_ERR_NOT_FOUND: unknown. */
  tn_status (*known_elements)(tn_graph* graph, tn_value value, const tn_dim** elements, uint32_t* count);
  /* Names of the source nodes this node stands for. */
  tn_status (*origins)(tn_graph* graph, tn_node node, const tn_str** names, uint32_t* count);
  uint32_t (*node_bound)(tn_graph* graph); /* every node id is below; ids are dense enough for arrays */
  uint32_t (*value_bound)(tn_graph* graph);
  uint32_t (*region_bound)(tn_graph* graph);
  int32_t (*opset)(tn_graph* graph, tn_str domain); /* version imported by the source model; 0: none */
  /* Graph-wide key/value text (producer, metadata_props); none when absent. */
  tn_str (*metadata)(tn_graph* graph, tn_str key);
  uint64_t (*version)(tn_graph* graph); /* grows with every edit; equal versions mean nothing changed */
  /* The name of a region's output as the outside knows it; it may differ from its value's name. */
  tn_str (*output_name)(tn_graph* graph, tn_region region, uint32_t index);
  /* The constant a region input takes when the caller gives none (edit's input_default); TN_NONE: it has
   * none. */
  tn_value (*default_of)(tn_graph* graph, tn_value region_input);
} tn_graph_api;

#ifdef __cplusplus
}
#endif
#endif
