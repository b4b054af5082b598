/* tenon.plugin-options/1: the "options" object that the manifest gives to a plugin as a whole. */
#ifndef TENON_ABI_OPTIONS_H
#define TENON_ABI_OPTIONS_H
#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_PLUGIN_OPTIONS_ID "tenon.plugin-options/1"

/* The plugin checks them in open: an option it does not know, or a wrong value, is an error through diag. A
 * plugin that never asks for this interface takes no options, and the host says so when the manifest gives
 * some. */
typedef struct tn_plugin_options_api {
  uint32_t size;
  uint32_t reserved;
  /* A JSON object, "{}" when the manifest gives none; valid as long as the host. [any] */
  tn_str (*json)(const tn_host* host);
} tn_plugin_options_api;

#ifdef __cplusplus
}
#endif
#endif
