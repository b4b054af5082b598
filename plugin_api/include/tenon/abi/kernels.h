/* tenon.kernels.draft/1: kernels as declarative records.
 *
 * A record says by data which nodes it takes, so that the host can choose, and explain why not. `match` says
 * what data cannot. For a node with known shapes `plan` returns a function and its state; the plan holds both
 * and many threads run it at once, so state is read-only while running. */
#ifndef TENON_ABI_KERNELS_H
#define TENON_ABI_KERNELS_H
#include "device.h"
#include "graph.h"
#include "run.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_KERNELS_ID "tenon.kernels.draft/1"

enum { /* CPU features, bits of uint64_t */
       TN_CPU_SSE42 = 1 << 0,
       TN_CPU_AVX2 = 1 << 1,
       TN_CPU_FMA = 1 << 2,
       TN_CPU_F16C = 1 << 3,
       TN_CPU_AVX512 = 1 << 4, /* F BW CD DQ VL */
       TN_CPU_AVX512_VNNI = 1 << 5,
       TN_CPU_AVX512_BF16 = 1 << 6,
       TN_CPU_AVX512_FP16 = 1 << 7,
       TN_CPU_AMX_INT8 = 1 << 8,
       TN_CPU_AMX_BF16 = 1 << 9,
       TN_CPU_AVX_VNNI = 1 << 10,
       TN_CPU_NEON = 1 << 16,
       TN_CPU_SVE = 1 << 17
};
enum {                              /* tn_kernel_record.flags */
       TN_KERNEL_DETERMINISTIC = 1, /* same bits for same inputs, whatever the number of workers */
       TN_KERNEL_DYNAMIC_OUTPUT =
           2, /* allocates its results through tn_run (run.h); works without known result shapes */
       TN_KERNEL_DYNAMIC_INPUT = 4, /* plan works when input shapes are not known; it reads them in the run */
       TN_KERNEL_CONTROL_FLOW = 8,  /* runs regions through tn_run */
       TN_KERNEL_REFERENCE = 16     /* an oracle: preferred for folding and verification */
};
enum {
  TN_OPERAND_CONSTANT = 1,
  TN_OPERAND_ABSENT = 2 /* must be omitted */,
  TN_OPERAND_SCALAR = 4 /* one element */
};

/* What one operand may be. Rules beyond the array's end: the last one, when the operator is variadic there.
 */
typedef struct tn_operand_rule {
  const tn_dtype* dtypes; /* NULL: any */
  uint32_t dtype_count;
  uint32_t flags;             /* TN_OPERAND_* required */
  int32_t min_rank, max_rank; /* max -1: no bound */
  uint32_t same_dtype_as;     /* 1 + operand number whose dtype it must share; 0: free */
  uint32_t kinds;             /* bits 1 << tn_type_kind; 0: tensor */
} tn_operand_rule;

typedef enum tn_alias_kind {
  TN_ALIAS_IN_PLACE = 1,
  /* may write over the input if it dies here */ TN_ALIAS_VIEW = 2 /* same bytes: no run step needed */
} tn_alias_kind;
typedef struct tn_alias {
  uint32_t output, input;
  uint32_t kind; /* tn_alias_kind; IN_PLACE needs equal bytes of both, which the host checks */
  uint32_t reserved;
} tn_alias;

typedef struct tn_operand {
  tn_type type;     /* dims are numbers, or < 0 where not known yet (dynamic records only) */
  const void* data; /* bytes when constant or already computed; NULL otherwise */
  uint32_t present;
  uint32_t constant; /* data stays as long as the plan */
} tn_operand;

typedef struct tn_plan_ctx tn_plan_ctx;

/* All a kernel may see while matching and planning. Valid during the call. [main] */
typedef struct tn_plan_view {
  uint32_t size;
  uint32_t input_count, output_count;
  uint32_t thread_count;    /* workers that will run the tiles */
  const tn_node_info* node; /* attributes; types come from the operands below */
  const tn_operand* inputs;
  const tn_operand* outputs;
  uint64_t cpu_features; /* after TENON_MAX_ISA */
  tn_str precision_mode; /* strict, exact, faithful, bf16, fp16, fast */
  tn_str device;
  const tn_graph_api* graph_api; /* symbol texts */
  tn_plan_ctx* context;
  /* A packed form of constant input i, made once and shared by all plans, shapes and sessions that ask for
   * the same constant and layout key. fill writes `bytes` bytes at dst (64-byte aligned, zeroed before). The
   * result lives as long as the plan. TN_ERR_INVALID when input i is no constant. */
  tn_status (*packed)(tn_plan_ctx* context, uint32_t input, tn_str layout_key, uint64_t bytes,
                      tn_status (*fill)(void* fill_context, const tn_tensor* source, void* dst),
                      void* fill_context, const void** blob);
  /* Runs f(c, i, worker) for i in [0, n) on the host's pool; planning only (packing of weights). */
  void (*parallel)(tn_plan_ctx* context, uint32_t n, void (*f)(void* c, uint32_t i, uint32_t worker),
                   void* c);
  /* Names of the node's regions ("then_branch"), in the order of node->regions and of run_region's numbers.
   */
  const tn_str* region_names;
  /* What the node belongs to: with graph_api, for kernels that read the body a fused node keeps. Types there
   * may still have symbols where the operands above have numbers. */
  tn_graph* graph;
  /* The open device that the node is planned for, which outlives the plan; NULL on the host, and while a
   * kernel is matched for a device that is not open yet. */
  tn_device* device_handle;
} tn_plan_view;

typedef struct tn_planned {
  uint32_t size;
  uint32_t tiles; /* fn is called once for each tile in [0, tiles), in any order, on any worker */
  tn_kernel_fn fn;
  void* state; /* handed to fn in args; freed with free_state when the plan dies */
  void (*free_state)(void* state);
  uint64_t workspace_bytes; /* for each worker that runs tiles of this node; 64-byte aligned */
  /* Of kernels for a device of a plugin (device.h), instead of fn and tiles. */
  tn_enqueue_fn enqueue;
} tn_planned;

typedef struct tn_kernel_record {
  uint32_t size;
  uint32_t flags;
  tn_str id;                        /* "tenon.reference.conv/1" */
  tn_str op;                        /* "Conv", "tenon::SDPA" */
  int32_t min_version, max_version; /* 0: any; of the node's op_version */
  tn_str device;                    /* "cpu", or the kind of a device (device.h) */
  uint64_t cpu_features;            /* all required */
  int32_t rank;                     /* decides between equal costs; higher wins */
  uint32_t input_rule_count, output_rule_count, alias_count;
  const tn_operand_rule* input_rules;
  const tn_operand_rule* output_rules;
  const tn_alias* aliases;
  /* TN_OK: takes the node. TN_DECLINED: not this one; the reason was written to why (one line). May be NULL.
   */
  tn_status (*match)(void* instance, const tn_plan_view* view, const tn_diag* why);
  /* Estimated nanoseconds on all workers; NULL: unknown, counts as 1 ns per output element times 10. */
  double (*cost)(void* instance, const tn_plan_view* view);
  tn_status (*plan)(void* instance, const tn_plan_view* view, tn_planned* out, const tn_diag* diag);
} tn_kernel_record;

typedef struct tn_kernel_list {
  uint32_t size;
  uint32_t count;
  const tn_kernel_record* const* kernels;
} tn_kernel_list;

#ifdef __cplusplus
}
#endif
#endif
