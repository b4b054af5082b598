/* tenon.tensor-files.draft/1: readers and writers of tensors on disk (.npy, .npz, ONNX .pb). */
#ifndef TENON_ABI_TENSOR_FILE_H
#define TENON_ABI_TENSOR_FILE_H
#include "files.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_TENSOR_FILES_ID "tenon.tensor-files.draft/1"

/* A sequence NAME is several items with index 0, 1, ...; a plain tensor has index -1; an empty sequence or
 * optional is one item with index -2 and no tensor. An optional's content is given as it would be alone. */
typedef struct tn_named_tensor {
  tn_str name; /* empty when the file does not name it */
  int64_t index;
  tn_tensor tensor; /* valid during the call */
  uint32_t kind;    /* tn_type_kind of the whole value; TN_KIND_NONE when the reader cannot tell */
  uint32_t reserved;
} tn_named_tensor;

typedef struct tn_tensor_file_record {
  uint32_t size;
  uint32_t reserved;
  tn_str id; /* "npz" */
  tn_str summary;
  const tn_str* suffixes; /* ".npz"; the longest match decides */
  uint32_t suffix_count;
  uint32_t holds_many; /* 0: one tensor a file */
  /* Gives every tensor to sink, in the file's order; a status from sink stops reading. Sizes are checked
   * before anything is allocated. expected_dtype: what the caller will use it as, TN_DTYPE_NONE when unknown;
   * formats without a name for a type (bfloat16 in .npy) read raw bytes as it when the width fits. [any] */
  tn_status (*read)(void* instance, const tn_host* host, tn_str path,
                    tn_dtype (*expected_dtype)(void* context, tn_str name, uint32_t position),
                    tn_status (*sink)(void* context, const tn_named_tensor* tensor), void* context,
                    const tn_diag* diag);
  tn_status (*write)(void* instance, const tn_host* host, tn_str path, const tn_named_tensor* tensors,
                     uint32_t count, const tn_diag* diag);
} tn_tensor_file_record;

typedef struct tn_tensor_file_list {
  uint32_t size;
  uint32_t count;
  const tn_tensor_file_record* const* formats;
} tn_tensor_file_list;

#ifdef __cplusplus
}
#endif
#endif
