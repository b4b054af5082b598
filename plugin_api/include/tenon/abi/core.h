/* Tenon plugin boundary: the frozen core. C11; may be used by anyone for any purpose.
 *
 * A plugin is a shared library that exports exactly one symbol, tenon_plugin_entry. Everything else is
 * reached through tables of function pointers found by string id, in both directions. Rules that hold
 * for every header of this folder:
 *
 *  - Structs that cross the boundary begin with `uint32_t size`, set by whoever fills them to sizeof of
 *    the struct as he was compiled. They only grow at the end. Test `size >= needed`, never equality;
 *    TN_HAS(table, field) does it. Small leaf structs in arrays have a `stride` beside the array instead.
 *  - Text is tn_str: not zero-terminated, UTF-8. `{NULL, 0}` is "none".
 *  - Who allocates frees. Pointers handed out say how long they are valid.
 *  - No C++ type, exception, allocator, FILE* or locale crosses.
 *  - Thread tags: [main] one thread at a time per graph or instance; [any] from any threads at once;
 *    [worker] called by the host's pool, several at once, must not block, allocate or call back unless
 *    the function's comment allows it.
 */
#ifndef TENON_ABI_CORE_H
#define TENON_ABI_CORE_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_ABI_MAJOR 1u
#define TN_ABI_MINOR 0u
/* Does the table, as its maker compiled it, reach as far as this field? */
#define TN_HAS(table, field)                                                                             \
  ((table) != NULL && (table)->size >= (size_t)((const char*)(&(table)->field) - (const char*)(table)) + \
                                           sizeof((table)->field))

typedef struct tn_str {
  const char* data;
  size_t size;
} tn_str;

/* Results of cold calls. 0 is success; everything else names the kind of the failure, the text goes to a
 * tn_diag. */
typedef int32_t tn_status;
enum {
  TN_OK = 0,
  TN_ERR_INVALID = 1,     /* the caller's argument or the outside data is wrong */
  TN_ERR_UNSUPPORTED = 2, /* well formed, but this implementation cannot do it */
  TN_ERR_NOT_FOUND = 3,   /* no such thing; often not a fault */
  TN_ERR_LIMIT = 4,       /* a size, count or budget was reached */
  TN_ERR_MEMORY = 5,      /* allocation failed */
  TN_ERR_IO = 6,          /* the operating system refused */
  TN_ERR_INTERNAL = 7,    /* a bug on the reporting side, exceptions included */
  TN_DECLINED = 8         /* not a fault: the callee looked and chose not to act; the reason was given */
};

typedef enum tn_severity {
  TN_SEVERITY_DEBUG = 0,
  TN_SEVERITY_INFO = 1,
  TN_SEVERITY_WARNING = 2,
  TN_SEVERITY_ERROR = 3,
  TN_SEVERITY_PLUGIN_MISBEHAVING = 4, /* the plugin broke a rule of the boundary */
  TN_SEVERITY_HOST_MISBEHAVING = 5
} tn_severity;

/* Where messages go. Owned by the caller, valid during the call it was handed to. [the calling thread] */
typedef struct tn_diag {
  uint32_t size;
  void* context;
  /* `code` is stable ("E201"), may be none. `where` is a place as a person would look for it: "file:3:51",
   * "node /conv1/Conv", "byte 4711". `text` says what was found, what was expected and the remedy.
   * All three are copied before the call returns. May be called several times in one cold call. */
  void (*report)(void* context, tn_severity severity, tn_str code, tn_str where, tn_str text);
} tn_diag;

/* The host as a plugin sees it. Owned by the host, valid while the plugin's instance is open. */
typedef struct tn_host {
  uint32_t size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  tn_str version; /* of the program, "1.0.0" */
  /* A service by id ("tenon.graph/1"); NULL when this host has none. Tables live as long as the host.
   * [any] */
  const void* (*get_interface)(const struct tn_host* host, const char* id);
} tn_host;

/* The plugin as the host sees it. Read-only, lives as long as the library is mapped, which is until exit. */
typedef struct tn_plugin {
  uint32_t size;
  uint32_t abi_major;        /* TN_ABI_MAJOR the plugin was compiled with */
  uint32_t min_host_minor;   /* the oldest host minor that has all the plugin needs */
  uint32_t built_host_minor; /* TN_ABI_MINOR the plugin was compiled with */
  tn_str id;                 /* "com.acme.kernels": dotted, stable, unique */
  tn_str name;               /* short name usable in manifests: "acme" */
  tn_str version;            /* "2.1.0" */
  tn_str vendor;
  tn_str license;                /* SPDX */
  tn_str summary;                /* one line */
  const char* const* interfaces; /* ids that get_interface answers, for listings */
  uint32_t interface_count;
  uint32_t reserved;
  uint64_t cpu_features; /* TN_CPU_* bits without which the library must not be opened; see kernels.h */
  /* An interface table by id, NULL for unknown ids. Pure, same answer each time. [any] */
  const void* (*get_interface)(const char* id);
  /* Makes an instance: all the state the plugin has. `host` stays valid until close. [main] */
  tn_status (*open)(const tn_host* host, const tn_diag* diag, void** instance);
  void (*close)(void* instance); /* [main] */
} tn_plugin;

/* The one exported function. Pure and callable many times; returns NULL for a host_major it cannot serve.
 * [any] */
typedef const tn_plugin* (*tenon_plugin_entry_fn)(uint32_t host_major);
#define TN_ENTRY_SYMBOL "tenon_plugin_entry"

#ifdef __cplusplus
}
#endif
#endif
