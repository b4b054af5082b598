/* tenon.installed.draft/1: what plugins that are installed and not loaded would bring, as their sidecars say.
 * Nothing is opened. */
#ifndef TENON_ABI_INSTALLED_H
#define TENON_ABI_INSTALLED_H
#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_INSTALLED_ID "tenon.installed.draft/1"

typedef struct tn_installed_api {
  uint32_t size;
  uint32_t reserved;
  /* The short name of one that defines the operator ("com.acme::Fancy"; without a domain: in any); none when
   * there is none. Valid as long as the host. [main] */
  tn_str (*plugin_with_operator)(const tn_host* host, tn_str op);
} tn_installed_api;

#ifdef __cplusplus
}
#endif
#endif
