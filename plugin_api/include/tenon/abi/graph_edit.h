/* tenon.graph-edit/1: changing a graph, in transactions.
 *
 * begin .. commit. Within a transaction the graph is edited in place and readers see the edits; commit infers
 * types of what is new, checks arity, types, shapes, acyclicity and that outputs kept type and shape (equal
 * or more precise), and on any failure restores the graph to the last begin and reports why. One transaction
 * a graph at a time. Building a whole model is one transaction begun with TN_EDIT_BUILD. [main] throughout.
 */
#ifndef TENON_ABI_GRAPH_EDIT_H
#define TENON_ABI_GRAPH_EDIT_H
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_GRAPH_EDIT_ID "tenon.graph-edit/1"

typedef struct tn_edit tn_edit; /* an open transaction; owned by the host, gone after commit or rollback */
typedef struct tn_file tn_file; /* files.h */

enum {
  TN_EDIT_BUILD =
      1, /* a frontend fills an empty graph: nodes may be made in any order, nothing can be undone singly */
  TN_EDIT_NO_INFER = 2 /* the caller sets the types of all new values itself (an upgrade step does) */
};

typedef struct tn_node_desc {
  uint32_t size;
  tn_sym op;
  int32_t op_version; /* 0: the canonical version of the registry */
  tn_region region;   /* where it will live */
  tn_node before;     /* placed before this node in the region's order; TN_NONE: at the end */
  tn_str name;        /* made unique if taken; empty: derived from the origin */
  const tn_value* inputs;
  const tn_attr* attrs;       /* copied, with all they point to */
  const tn_str* output_names; /* NULL: derived; an empty one: derived; TN_NONE result when `{NULL,0}` and
                                 TN_EDIT_BUILD */
  const tn_node* origins;     /* nodes this one stands for: their origins are joined */
  uint32_t input_count, attr_count, output_count, origin_count;
} tn_node_desc;

typedef struct tn_edit_api {
  uint32_t size;
  uint32_t reserved;
  /* TN_ERR_LIMIT: the run's limit of applied rewrites is reached; the pass should return what it has. `who`
   * names the pass or rule in messages and in the record of changes. */
  tn_status (*begin)(tn_graph* graph, tn_str who, uint32_t flags, tn_edit** edit);
  tn_status (*commit)(tn_edit* edit, const tn_diag* diag);
  void (*rollback)(tn_edit* edit);

  tn_status (*create_node)(tn_edit* edit, const tn_node_desc* desc, tn_node* node);
  /* A region owned by `parent` under an attribute name; its inputs are added with region_input. */
  tn_status (*create_region)(tn_edit* edit, tn_node parent, tn_str name, tn_region* region);
  tn_status (*region_input)(tn_edit* edit, tn_region region, tn_str name, const tn_type* type,
                            tn_value* value);
  tn_status (*region_outputs)(tn_edit* edit, tn_region region, const tn_value* values, uint32_t count);
  /* Names of the region's outputs as the outside knows them, when they differ from the values' (after
   * replace_uses the outside name always stays). */
  tn_status (*region_output_name)(tn_edit* edit, tn_region region, uint32_t index, tn_str name);

  /* Constants. `copy`: bytes are copied. `adopt`: the host calls release(context) when done. `slice`: bytes
   * [offset, offset+tensor->bytes) of a mapped file, checked, never copied (tensor->data ignored). `uniform`:
   * all elements equal the one that tensor->data points at. Strings are always copied. */
  tn_status (*constant_copy)(tn_edit* edit, tn_str name, const tn_tensor* tensor, tn_value* value);
  tn_status (*constant_adopt)(tn_edit* edit, tn_str name, const tn_tensor* tensor, void (*release)(void*),
                              void* context, tn_value* value);
  tn_status (*constant_slice)(tn_edit* edit, tn_str name, const tn_tensor* tensor, tn_file* file,
                              uint64_t offset, tn_value* value);
  tn_status (*constant_uniform)(tn_edit* edit, tn_str name, const tn_tensor* tensor, tn_value* value);
  /* A region input that has a default (an ONNX initialiser that is also an input): never folded, the caller
   * may override. */
  tn_status (*input_default)(tn_edit* edit, tn_value region_input, tn_value constant);

  /* Every use of `from` (region outputs included) reads `to` afterwards. A region output keeps its outside
   * name. */
  tn_status (*replace_uses)(tn_edit* edit, tn_value from, tn_value to);
  tn_status (*set_input)(tn_edit* edit, tn_node node, uint32_t index,
                         tn_value value); /* index == count appends */
  tn_status (*set_attr)(tn_edit* edit, tn_node node, const tn_attr* attr);
  tn_status (*remove_attr)(tn_edit* edit, tn_node node, tn_sym name);
  tn_status (*set_version)(tn_edit* edit, tn_node node, int32_t op_version);
  /* The node's results must have no uses left, except by nodes erased in the same transaction. Regions go
   * with it. */
  tn_status (*erase)(tn_edit* edit, tn_node node);
  /* Moves all nodes of `from` into `to` before `anchor`; region inputs are replaced by `inputs`. Outputs are
   * returned by the region's output list, read before. For inlining bodies and taken branches; the owner is
   * erased after. */
  tn_status (*inline_region)(tn_edit* edit, tn_region from, const tn_value* inputs, uint32_t input_count,
                             tn_node anchor);
  tn_status (*set_type)(tn_edit* edit, tn_value value, const tn_type* type); /* narrows, never changes */
  tn_status (*set_opset)(tn_edit* edit, tn_str domain, int32_t version);     /* with TN_EDIT_BUILD */
  tn_status (*set_metadata)(tn_edit* edit, tn_str key, tn_str text);
  /* Clones `node` into `region` with `inputs`; its regions are cloned too. For bodies and inlined functions.
   */
  tn_status (*clone_node)(tn_edit* edit, tn_node node, tn_region region, tn_node before,
                          const tn_value* inputs, uint32_t input_count, tn_node* clone);
} tn_edit_api;

#ifdef __cplusplus
}
#endif
#endif
