/* Named constant transforms: those a plugin exports, and how a rule engine finds them. */
#ifndef TENON_ABI_TRANSFORMS_H
#define TENON_ABI_TRANSFORMS_H
#include "core.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tenon.transforms.draft/1: constant transforms that rule expressions cannot say, named with a version. */
#define TN_TRANSFORMS_ID "tenon.transforms.draft/1"
typedef struct tn_transform {
  uint32_t size;
  uint32_t version;
  tn_str name;              /* "tenon.pack_qkv" */
  const tn_str* parameters; /* argument names */
  uint32_t parameter_count;
  uint32_t reserved;
  /* Gives the result to sink once; arguments in the order of `parameters`. */
  tn_status (*apply)(void* instance, const tn_tensor* arguments, uint32_t count,
                     void (*sink)(void* context, const tn_tensor* result), void* context,
                     const tn_diag* diag);
} tn_transform;
typedef struct tn_transform_list {
  uint32_t size;
  uint32_t count;
  const tn_transform* const* transforms;
} tn_transform_list;

/* tenon.transform-registry.draft/1: the transforms of all loaded plugins, in the order of loading. [any] */
#define TN_TRANSFORM_REGISTRY_ID "tenon.transform-registry.draft/1"
typedef struct tn_transform_registry_api {
  uint32_t size;
  uint32_t reserved;
  uint32_t (*count)(const tn_host* host);
  /* NULL past the end. *instance is what the transform's function takes. */
  const tn_transform* (*at)(const tn_host* host, uint32_t i, void** instance);
} tn_transform_registry_api;

#ifdef __cplusplus
}
#endif
#endif
