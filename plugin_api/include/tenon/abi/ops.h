/* tenon.ops/1: operator definitions a plugin provides.
 *
 * One definition an operator, at its newest version (ai.onnx: opset 28). Older versions of a node are brought
 * up by `upgrade` before anything else looks at them. Everything but the tables' first fields may be NULL. */
#ifndef TENON_ABI_OPS_H
#define TENON_ABI_OPS_H
#include "graph.h"
#include "graph_edit.h"
#include "symbols.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_OPS_ID "tenon.ops/1"

enum {                        /* tn_op_def.flags */
       TN_OP_COMMUTATIVE = 1, /* of its first two inputs */
       TN_OP_ASSOCIATIVE = 2,
       TN_OP_ELEMENTWISE = 4, /* each result element depends on the elements at its (broadcast) place only */
       TN_OP_NONDETERMINISTIC = 8, /* random: never folded, merged or hoisted */
       TN_OP_SIDE_EFFECT = 16,     /* never removed */
       TN_OP_SHAPE_ONLY = 32,      /* reads its first input's shape, not its bytes (Shape, Size) */
       TN_OP_VIEW = 64,            /* result 0 has the bytes of input 0, other dims (Reshape, Identity) */
       TN_OP_CONTROL_FLOW = 128,   /* owns regions that it runs */
       TN_OP_REDUCTION = 256,      /* little arithmetic an element, along axes: sums, Softmax, norms */
       TN_OP_MOVES = 512           /* result elements are elements of inputs; nothing is computed */
};
enum { TN_PARAM_OPTIONAL = 1, TN_PARAM_VARIADIC = 2, TN_PARAM_HETEROGENEOUS = 4 };

typedef struct tn_param_def {
  tn_str name;
  tn_str type;    /* a type variable ("T") or one concrete type ("int64") */
  uint32_t flags; /* TN_PARAM_* */
  uint32_t reserved;
} tn_param_def;

/* The element types a type variable may take; inputs with one variable have one type. */
typedef struct tn_type_var {
  tn_str name;
  const tn_dtype* dtypes; /* NULL: any */
  uint32_t dtype_count;
  uint32_t kinds; /* bits 1 << tn_type_kind; 0: tensor only */
} tn_type_var;

typedef struct tn_attr_def {
  tn_str name;
  uint32_t kind;     /* tn_attr_kind */
  uint32_t required; /* 1: no default, must be there */
  uint32_t has_default;
  uint32_t count; /* of ints/floats/strings in the default */
  int64_t default_int;
  double default_float;
  tn_str default_string;
  const int64_t* default_ints;
} tn_attr_def;

typedef struct tn_infer tn_infer; /* one inference of one node; owned by the host, valid during the call */
struct tn_op_def;

/* What inference can see and say. The same function serves symbolic inference of a graph and concrete
 * inference of a plan: it sees only this. [main] */
typedef struct tn_infer_api {
  uint32_t size;
  uint32_t reserved;
  const tn_node_info* (*node)(tn_infer* infer); /* attributes, operand and result counts, regions */
  tn_graph* (*graph)(tn_infer* infer);          /* for symbols; do not read types through it */
  /* NULL when operand i is omitted; kind TN_KIND_NONE when nothing is known. Valid during the call. */
  const tn_type* (*input_type)(tn_infer* infer, uint32_t i);
  /* Known contents of an integer or bool operand as dims (row-major); 1 when known. At most 4096 elements. */
  int (*input_elements)(tn_infer* infer, uint32_t i, const tn_dim** elements, uint32_t* count);
  /* Bytes of an operand that is a constant, or was computed already; 1 when there. */
  int (*input_data)(tn_infer* infer, uint32_t i, tn_tensor* out);
  tn_status (*set_output)(tn_infer* infer, uint32_t i, const tn_type* type);
  tn_status (*set_output_elements)(tn_infer* infer, uint32_t i, const tn_dim* elements, uint32_t count);
  /* A dimension known only when the node has run. Stable for the node, result and axis. */
  tn_dim (*data_dependent)(tn_infer* infer, uint32_t output, uint32_t axis, int64_t lo, int64_t hi);
  /* Infers region number r of the node with these types of its inputs; *outputs valid until the next call. */
  tn_status (*infer_region)(tn_infer* infer, uint32_t r, const tn_type* inputs, uint32_t input_count,
                            const tn_type** outputs, uint32_t* output_count);
  /* Elements known of output i of region r after infer_region; 1 when known. */
  int (*region_elements)(tn_infer* infer, uint32_t r, uint32_t i, const tn_dim** elements, uint32_t* count);
  /* The node is wrong: what was found and expected. The function then returns TN_ERR_INVALID. */
  void (*fail)(tn_infer* infer, tn_str text);
  const tn_symbols_api* symbols;
  const tn_graph_api* graph_api;
} tn_infer_api;

typedef struct tn_op_def {
  uint32_t size;
  int32_t since_version; /* version of the definition given here; first version in which the op exists is
                            `first_version` */
  int32_t first_version;
  uint32_t flags;
  tn_str domain; /* "" is ai.onnx */
  tn_str name;
  tn_str doc;
  const tn_param_def* inputs;
  const tn_param_def* outputs;
  const tn_type_var* type_vars;
  const tn_attr_def* attrs;
  uint32_t input_count, output_count, type_var_count, attr_count;
  uint32_t min_inputs, min_outputs;
  const tn_str* aliases; /* lower-case names that rule files may use: "conv2d" */
  uint32_t alias_count;
  uint32_t reserved;
  /* Types, shapes and known elements of the results. Returns TN_OK, or TN_ERR_INVALID after `fail`. Types of
   * inputs were checked against the definition before. */
  tn_status (*infer)(void* instance, const tn_infer_api* api, tn_infer* infer);
  /* Rewrites a node of an older version (node.op_version) within the open edit, so that it, or what replaces
   * it, has since_version. TN_ERR_UNSUPPORTED when that version's meaning cannot be said today. */
  tn_status (*upgrade)(void* instance, const tn_graph_api* graph_api, const tn_edit_api* edit_api,
                       tn_graph* graph, tn_edit* edit, tn_node node, const tn_diag* diag);
  /* Puts before `node`, in its region, simpler nodes that compute the same and replaces the uses of its
   * results; the caller erases the node. TN_DECLINED when this node has no decomposition. */
  tn_status (*decompose)(void* instance, const tn_graph_api* graph_api, const tn_edit_api* edit_api,
                         tn_graph* graph, tn_edit* edit, tn_node node, const tn_diag* diag);
} tn_op_def;

typedef struct tn_op_list {
  uint32_t size;
  uint32_t count;
  const tn_op_def* const* ops;
} tn_op_list;

/* tenon.registry/1: the host's view of all operators loaded, for passes, rule engines and exporters.
 * [any] */
#define TN_REGISTRY_ID "tenon.registry/1"
typedef struct tn_registry_api {
  uint32_t size;
  uint32_t reserved;
  const tn_op_def* (*find)(const tn_host* host, tn_sym op); /* NULL: no definition */
  /* Resolves "Conv", "tenon::SDPA", "tenon.SDPA" or an alias; an unqualified name searches all domains.
   * 0 found, else the number of matches (0 matches: TN_ERR_NOT_FOUND, several: TN_ERR_INVALID). */
  tn_status (*resolve)(const tn_host* host, tn_str name, tn_sym* op);
  uint32_t (*count)(const tn_host* host);
  const tn_op_def* (*at)(const tn_host* host, uint32_t i);
  /* 1 when a kernel for this operator exists on any device of the run (dtypes are not looked at). */
  int (*has_kernel)(const tn_host* host, tn_sym op);
  /* The canonical version of a domain's operator set (28 for ai.onnx); 0: unknown domain. */
  int32_t (*domain_version)(const tn_host* host, tn_str domain);
} tn_registry_api;

#ifdef __cplusplus
}
#endif
#endif
