/* Element types, dimensions, types of values and tensors in memory. */
#ifndef TENON_ABI_TYPES_H
#define TENON_ABI_TYPES_H
#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element type: low 16 bits DLPack's type code where it has one (ours from 1000 up), high 16 bits the width
 * in bits. */
typedef uint32_t tn_dtype;
#define TN_DTYPE(code, bits) ((tn_dtype)(code) | ((tn_dtype)(bits) << 16))
#define TN_DTYPE_NONE        0u
#define TN_INT4              TN_DTYPE(0, 4)
#define TN_INT8              TN_DTYPE(0, 8)
#define TN_INT16             TN_DTYPE(0, 16)
#define TN_INT32             TN_DTYPE(0, 32)
#define TN_INT64             TN_DTYPE(0, 64)
#define TN_INT2              TN_DTYPE(0, 2)
#define TN_UINT2             TN_DTYPE(1, 2)
#define TN_UINT4             TN_DTYPE(1, 4)
#define TN_UINT8             TN_DTYPE(1, 8)
#define TN_UINT16            TN_DTYPE(1, 16)
#define TN_UINT32            TN_DTYPE(1, 32)
#define TN_UINT64            TN_DTYPE(1, 64)
#define TN_FLOAT16           TN_DTYPE(2, 16)
#define TN_FLOAT32           TN_DTYPE(2, 32)
#define TN_FLOAT64           TN_DTYPE(2, 64)
#define TN_BFLOAT16          TN_DTYPE(4, 16)
#define TN_COMPLEX64         TN_DTYPE(5, 64)
#define TN_COMPLEX128        TN_DTYPE(5, 128)
#define TN_BOOL              TN_DTYPE(6, 8)
#define TN_FLOAT8_E4M3FN     TN_DTYPE(10, 8)
#define TN_FLOAT8_E4M3FNUZ   TN_DTYPE(11, 8)
#define TN_FLOAT8_E5M2       TN_DTYPE(12, 8)
#define TN_FLOAT8_E5M2FNUZ   TN_DTYPE(13, 8)
#define TN_FLOAT8_E8M0       TN_DTYPE(14, 8)
#define TN_FLOAT4_E2M1       TN_DTYPE(17, 4)
/* One element is a tn_str (16 bytes on 64-bit machines); the text belongs to the tensor's owner. */
#define TN_STRING            TN_DTYPE(1000, 128)
#define TN_DTYPE_CODE(dtype) ((dtype)&0xffffu)
#define TN_DTYPE_BITS(dtype) ((dtype) >> 16)
/* Elements under 8 bits are packed low bits first, without row padding. */

/* A dimension: >= 0 is the number itself; < 0 is a handle of the graph's symbol table (symbols.h). Handles
 * are canonical: equal handles are equal numbers. Two different handles may still be equal. */
typedef int64_t tn_dim;

typedef enum tn_type_kind {
  TN_KIND_NONE = 0, /* not known yet */
  TN_KIND_TENSOR = 1,
  TN_KIND_SEQUENCE = 2, /* of tensors; dtype, rank and dims describe the elements */
  TN_KIND_OPTIONAL = 3, /* of a tensor */
  TN_KIND_OPTIONAL_SEQUENCE = 4
} tn_type_kind;

/* The type of a value. `dims` is owned by whoever handed the struct out and as valid as that. */
typedef struct tn_type {
  uint32_t kind;
  tn_dtype dtype;    /* TN_DTYPE_NONE: not known */
  int32_t rank;      /* -1: not known */
  uint32_t encoding; /* 0: plain elements; else the symbol (tn_sym) of a block encoding */
  const tn_dim* dims;
} tn_type;

/* A tensor in host memory, dense row-major. `dims` are numbers. `bytes` = packed size. */
typedef struct tn_tensor {
  tn_dtype dtype;
  int32_t rank;
  const int64_t* dims;
  void* data; /* read-only unless the function says otherwise */
  uint64_t bytes;
} tn_tensor;

#ifdef __cplusplus
}
#endif
#endif
