/* tenon.files/1: files mapped by the host, with the checks that outside data needs. */
#ifndef TENON_ABI_FILES_H
#define TENON_ABI_FILES_H
#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_FILES_ID "tenon.files/1"

typedef struct tn_file tn_file; /* counted; constants made from slices keep it alive */

/* Bytes go to a temporary file beside the target, which replaces it on close. */
typedef struct tn_writer tn_writer;

/* All [any]. */
typedef struct tn_files_api {
  uint32_t size;
  uint32_t reserved;
  tn_status (*open)(tn_str path, const tn_diag* diag, tn_file** file);
  /* A file named inside `base` (external data): relative only, links resolved, never outside base's folder.
   */
  tn_status (*open_beside)(tn_str base, tn_str relative, const tn_diag* diag, tn_file** file);
  const uint8_t* (*data)(tn_file* file); /* read-only, valid until release */
  uint64_t (*size_bytes)(tn_file* file);
  tn_str (*path)(tn_file* file);
  void (*release)(tn_file* file);
  tn_status (*create)(tn_str path, const tn_diag* diag, tn_writer** writer);
  tn_status (*write)(tn_writer* writer, const void* data, uint64_t bytes);
  /* keep != 0: flush and rename into place; 0: drop it. The writer is gone afterwards. */
  tn_status (*close)(tn_writer* writer, int keep, const tn_diag* diag);
} tn_files_api;

#ifdef __cplusplus
}
#endif
#endif
