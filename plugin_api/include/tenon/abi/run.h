/* What a kernel gets while running. The hot path: no host call, allocation or lock unless a record is flagged
 * dynamic_output or control_flow, which may use tn_run_api. */
#ifndef TENON_ABI_RUN_H
#define TENON_ABI_RUN_H
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_run tn_run; /* one node in one run */
typedef struct tn_any tn_any; /* a counted value: tensor, sequence, optional; owned by the host */
struct tn_run_api;

/* 64 bytes. Pointers are resolved when a run's frame is made; results and workspace never overlap inputs,
 * except where the record's aliases allow it. Absent operands are NULL. */
typedef struct tn_kernel_args {
  const void* state;
  void* const* inputs;
  void* const* outputs;
  void* workspace; /* of worker 0; worker w has workspace + w * workspace_stride */
  uint64_t workspace_stride;
  tn_run* run;
  const struct tn_run_api* api; /* non-NULL for records flagged dynamic or control flow */
  uint32_t input_count;
  uint32_t output_count;
} tn_kernel_args;

/* 0: done. Else the run fails; say why with api->fail before, where there is one. [worker] */
typedef int (*tn_kernel_fn)(const tn_kernel_args* args, uint32_t tile, uint32_t worker);

/* Handles passed in are borrowed, handles returned are owned by the caller (release them), unless said
 * otherwise. [worker] */
typedef struct tn_run_api {
  uint32_t size;
  uint32_t reserved;
  void (*fail)(tn_run* run, tn_str text);
  /* TN_ERR_NOT_FOUND when operand i is omitted or an empty optional. */
  tn_status (*input_tensor)(tn_run* run, uint32_t i, tn_tensor* out);
  /* Memory for result i; checked against the host's limits before it is touched. */
  tn_status (*output_tensor)(tn_run* run, uint32_t i, tn_dtype dtype, int32_t rank, const int64_t* dims,
                             void** data);
  tn_any* (*input)(tn_run* run, uint32_t i); /* NULL when omitted; borrowed, valid during the call */
  tn_status (*set_output)(tn_run* run, uint32_t i, tn_any* any); /* shares it */
  /* A node's region r with values for its inputs; fills outputs with owned handles. The plan of the region is
   * made per shapes and kept. */
  tn_status (*run_region)(tn_run* run, uint32_t r, tn_any* const* inputs, uint32_t input_count,
                          tn_any** outputs, uint32_t output_count);

  tn_status (*new_tensor)(tn_run* run, tn_dtype dtype, int32_t rank, const int64_t* dims, tn_any** any,
                          void** data);
  tn_status (*new_sequence)(tn_run* run, tn_any* const* items, uint32_t count, tn_dtype dtype,
                            tn_any** any);                            /* shares the items */
  tn_status (*new_optional)(tn_run* run, tn_any* item, tn_any** any); /* item NULL: empty */
  tn_status (*tensor)(tn_any* any, tn_tensor* out);                   /* TN_ERR_INVALID when it is none */
  uint32_t (*kind)(tn_any* any);                                      /* tn_type_kind */
  uint32_t (*sequence_size)(tn_any* any);
  tn_any* (*sequence_item)(tn_any* any, uint32_t i); /* borrowed; for optionals, item 0 or NULL */
  void (*retain)(tn_any* any);
  void (*release)(tn_any* any);
  /* Copies text into storage that lives as long as `owner`, a string tensor made by new_tensor or
   * output_tensor. */
  tn_str (*keep_text)(tn_run* run, tn_str text);
  uint64_t (*random_seed)(tn_run* run); /* a new one at each call */
} tn_run_api;

#ifdef __cplusplus
}
#endif
#endif
