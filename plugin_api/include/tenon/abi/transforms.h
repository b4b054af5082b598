/* How a rule engine finds the named constant transforms that plugins export (rules.h). */
#ifndef TENON_ABI_TRANSFORMS_H
#define TENON_ABI_TRANSFORMS_H
#include "core.h"
#include "rules.h"

#ifdef __cplusplus
extern "C" {
#endif

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
