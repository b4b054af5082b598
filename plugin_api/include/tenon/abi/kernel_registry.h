/* Which kernels a run has, for what decides about operators before kernels are chosen. */
#ifndef TENON_ABI_KERNEL_REGISTRY_H
#define TENON_ABI_KERNEL_REGISTRY_H
#include "core.h"
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tenon.kernel-registry.draft/1: the kernels of all loaded plugins. [any] */
#define TN_KERNEL_REGISTRY_ID "tenon.kernel-registry.draft/1"
typedef struct tn_kernel_registry_api {
  uint32_t size;
  uint32_t reserved;
  /* 1 when a kernel for this operator exists on the device ("cpu"; dtypes are not looked at). */
  int (*has_kernel_on)(const tn_host* host, tn_sym op, tn_str device);
} tn_kernel_registry_api;

#ifdef __cplusplus
}
#endif
#endif
