/* libtenon: the host inside a program of one's own. C11; also C++.
 *
 *   tenon_host     plugins, rules and switches, as a manifest names them
 *   tenon_model    a model file read by a host; optimised when asked to be
 *   tenon_session  the model made ready to run
 *   tenon_result   what one run gave
 *
 * Rules that hold for every function here:
 *  - A function that can fail returns a tenon_status and takes `tenon_error** error` last. It may be NULL;
 * otherwise *error is set on failure (free it with tenon_error_free) and to NULL on success. Nothing is
 * thrown, printed or ended; what is no error goes to the log (tenon_set_log).
 *  - Structs begin with `uint32_t size`, set by the caller to sizeof of the struct as he was compiled; the
 * rest is zeroed where it is not used. They only grow at the end. An array's elements all have the size its
 * first one says.
 *  - Handles are opaque. Closing one that others came from is fine: what they need stays until they are
 * closed too. Closing NULL does nothing.
 *  - Text is zero-terminated UTF-8. Text returned as `const char*` belongs to the handle it was asked of;
 * text returned as `char*` is the caller's, to be freed with tenon_text_free.
 *  - [any] may be called from any threads at once. All others: one thread at a time per handle, the handles
 * that came from one host counting as one. A session runs in many threads at once.
 *  - After fork() a child must not use what its parent opened.
 */
#ifndef TENON_TENON_H
#define TENON_TENON_H
#include <tenon/abi/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_API_MAJOR 1u
#define TENON_API_MINOR 0u
#define TENON_API       __attribute__((visibility("default")))

TENON_API const char* tenon_version(void); /* "1.0.0" [any] */
/* major << 16 | minor of the library. A program may go on when the major is TENON_API_MAJOR and the minor at
 * least TENON_API_MINOR. [any] */
TENON_API uint32_t tenon_api_version(void);

typedef enum tenon_status {
  TENON_OK = 0,
  TENON_FAILED = 1,    /* the job could not be done: a kernel failed, a file could not be written */
  TENON_BAD_INPUT = 2, /* a manifest, model, rule, plugin, tensor or option is wrong; all findings at once */
  TENON_BAD_CALL = 3,  /* this interface was used wrongly: a NULL that may not be one, a size that is none */
  TENON_NO_MEMORY = 4
} tenon_status;

/* --- errors: everything that was found, each with its place. [any] */
typedef struct tenon_error tenon_error;
typedef struct tenon_finding {
  uint32_t size;
  uint32_t severity; /* tn_severity */
  const char* code;  /* stable, "M302"; may be empty */
  const char* where; /* "pipeline.json:3:51", "node /conv1/Conv"; may be empty */
  const char* text;  /* what was found, what was expected, the remedy */
} tenon_finding;

TENON_API tenon_status tenon_error_status(const tenon_error* error);
TENON_API const char* tenon_error_message(const tenon_error* error); /* all findings, one a line */
TENON_API size_t tenon_error_count(const tenon_error* error);
TENON_API tenon_status tenon_error_finding(const tenon_error* error, size_t index, tenon_finding* finding);
TENON_API void tenon_error_free(tenon_error* error);
TENON_API void tenon_text_free(char* text);

/* --- log: warnings and notes, of the whole process. Without a callback they go to stderr, warnings and
 * errors only; the environment's TENON_LOG (debug, info, warning, error, off) is the level until this is
 * called. The callback may be called from any thread, one call at a time; it must not throw and not call this
 * function. NULL: stderr again. [any] */
typedef void (*tenon_log_function)(void* context, tn_severity severity, const char* text);
TENON_API void tenon_set_log(tenon_log_function function, void* context, tn_severity lowest);

/* --- host */
typedef struct tenon_host tenon_host;
enum {
  /* Plugins are opened without being tried in a child process first: for programs that must not start any. A
   * plugin that crashes while it is loaded then takes the program along. */
  TENON_NO_CHILD_PROCESS = 1u << 0,
  TENON_KEEP_EXPLANATIONS =
      1u << 1, /* every decision is recorded, for tenon_model_explain; costs time and memory */
  TENON_NO_SCAN_CACHE = 1u << 2 /* what a scan found is neither looked up nor remembered on disk */
};
typedef struct tenon_host_options {
  uint32_t size;
  uint32_t flags;
  /* The manifest: a file; or text, whose relative paths start from manifest_folder (NULL: the working
   * folder); or, with neither, the default one, which `tenon default-manifest` prints. */
  const char* manifest_path;
  const char* manifest_text;
  const char* manifest_folder;
  /* "runtime.threads=2": overrides of keys, as the program's --set. */
  const char* const* set;
  size_t set_count;
  const char* const* rules; /* further rule files */
  size_t rule_count;
  const char* const*
      plugins; /* further plugins: installed names, or libraries (with a '/' or ending in .so) */
  size_t plugin_count;
  const char* const* plugin_folders; /* absolute; searched first for installed plugins */
  size_t plugin_folder_count;
  /* The folder that holds lib/tenon, libexec/tenon and share/tenon, for the whole process; NULL: $TENON_ROOT,
   * else where libtenon itself lies. */
  const char* root;
  const char* scan_helper;  /* the program that tries plugins; NULL: libexec/tenon/tenon-scan of the root */
  uint32_t scan_timeout_ms; /* 0: 10000 */
  uint32_t reserved;
} tenon_host_options;

/* `options` may be NULL: the default manifest. Plugins that are not required and cannot be had are warnings.
 */
TENON_API tenon_status tenon_host_open(const tenon_host_options* options, tenon_host** host,
                                       tenon_error** error);
TENON_API void tenon_host_close(tenon_host* host);

typedef enum tenon_format { TENON_TEXT = 0, TENON_JSON = 1 } tenon_format;
/* The plugins that were loaded, and those that were refused and why. */
TENON_API tenon_status tenon_host_plugins(const tenon_host* host, tenon_format format, char** text,
                                          tenon_error** error);

/* --- model */
typedef struct tenon_model tenon_model;
/* Reads the file (NULL: the manifest's), brings its operators to canonical versions and infers types.
 * Operators that nothing loaded can run are errors, all of them at once. */
TENON_API tenon_status tenon_model_load(tenon_host* host, const char* path, tenon_model** model,
                                        tenon_error** error);
/* Runs the manifest's pipeline, once; a second call does nothing. */
TENON_API tenon_status tenon_model_optimize(tenon_model* model, tenon_error** error);
/* Writes the model as the file's ending says (.onnx; .graph is the text form). */
TENON_API tenon_status tenon_model_save(tenon_model* model, const char* path, tenon_error** error);
/* What each pass did, and which rules were applied. */
TENON_API tenon_status tenon_model_summary(const tenon_model* model, tenon_format format, char** text,
                                           tenon_error** error);
/* Why rules, passes and the rewrites of a node did or did not happen: `rule` and `node` each name one, or are
 * NULL for all. As JSON one record a line. Needs TENON_KEEP_EXPLANATIONS. */
TENON_API tenon_status tenon_model_explain(const tenon_model* model, const char* rule, const char* node,
                                           tenon_format format, char** text, tenon_error** error);
TENON_API void tenon_model_close(tenon_model* model);

/* --- values: sequences and optionals, and tensors inside them. Counted; what a value is never changes. [any]
 */
typedef struct tenon_value tenon_value;
/* With TENON_BORROW the tensor's bytes are not copied and must stay until the value and all that hold it are
 * freed. */
enum { TENON_COPY = 0, TENON_BORROW = 1 };
TENON_API tenon_status tenon_value_tensor(const tn_tensor* tensor, uint32_t borrow, tenon_value** value,
                                          tenon_error** error);
/* `dtype` is that of the elements, needed when there are none. The items are shared. */
TENON_API tenon_status tenon_value_sequence(tenon_value* const* items, size_t count, tn_dtype dtype,
                                            tenon_value** value, tenon_error** error);
TENON_API tenon_status tenon_value_optional(tenon_value* item, tenon_value** value,
                                            tenon_error** error); /* NULL: empty */
TENON_API tn_type_kind tenon_value_kind(const tenon_value* value);
TENON_API size_t tenon_value_count(const tenon_value* value); /* of items */
/* Valid as long as `value`. NULL: no such item. */
TENON_API const tenon_value* tenon_value_item(const tenon_value* value, size_t index);
/* Fills `tensor` with what the value holds, valid as long as `value`. TENON_BAD_CALL when it is no tensor. */
TENON_API tenon_status tenon_value_get(const tenon_value* value, tn_tensor* tensor);
TENON_API void tenon_value_free(tenon_value* value);

/* --- session */
typedef struct tenon_session tenon_session;
/* The model stays as it is; several sessions may come from one. */
TENON_API tenon_status tenon_session_open(const tenon_model* model, tenon_session** session,
                                          tenon_error** error);

/* An input or output as the model declares it. Pointers are valid as long as the session. */
typedef struct tenon_port {
  uint32_t size;
  uint32_t kind; /* tn_type_kind; dtype, rank and dims of a sequence are those of its elements */
  const char* name;
  tn_dtype dtype;
  int32_t rank;                 /* -1: not known */
  const int64_t* dims;          /* -1: open */
  const char* const* dim_names; /* "3", "batch", "?" */
  uint32_t optional;            /* 1: an input with a default */
  uint32_t reserved;
} tenon_port;
TENON_API size_t tenon_session_input_count(const tenon_session* session);  /* [any] */
TENON_API size_t tenon_session_output_count(const tenon_session* session); /* [any] */
TENON_API tenon_status tenon_session_input(const tenon_session* session, size_t index,
                                           tenon_port* port); /* [any] */
TENON_API tenon_status tenon_session_output(const tenon_session* session, size_t index,
                                            tenon_port* port); /* [any] */

/* A value for an input. Its bytes are read in place and must stay until the call returns. */
typedef struct tenon_input {
  uint32_t size;
  uint32_t reserved;
  const char* name;
  tn_tensor tensor;         /* not looked at when `value` is given */
  const tenon_value* value; /* a sequence, an optional or a tensor that is a value already; else NULL */
} tenon_input;
/* The caller's memory for an output, so that the run copies nothing. `bytes` must be exactly the result's. */
typedef struct tenon_output {
  uint32_t size;
  uint32_t reserved;
  const char* name;
  void* data;
  uint64_t bytes;
} tenon_output;

typedef struct tenon_result tenon_result;
/* Runs the model. `outputs` may be empty: results then lie in memory of the library's. `result` may be NULL
 * when the outputs are all that is wanted. The first run for given shapes also plans. [any] */
TENON_API tenon_status tenon_session_run(const tenon_session* session, const tenon_input* inputs,
                                         size_t input_count, const tenon_output* outputs, size_t output_count,
                                         tenon_result** result, tenon_error** error);
/* Plans for these inputs' shapes, as far as it can without running. [any] */
TENON_API tenon_status tenon_session_prepare(const tenon_session* session, const tenon_input* inputs,
                                             size_t input_count, tenon_error** error);
/* Nodes, kernels used and why not others, memory; of the shapes run last. [any] */
TENON_API tenon_status tenon_session_summary(const tenon_session* session, tenon_format format, char** text,
                                             tenon_error** error);
TENON_API void tenon_session_close(tenon_session* session);

/* --- result: the model's outputs in its order. Valid until freed, also after the session was closed. [any]
 */
TENON_API size_t tenon_result_count(const tenon_result* result);
TENON_API const char* tenon_result_name(const tenon_result* result, size_t index); /* NULL: no such one */
/* Valid as long as the result. NULL: no such output, one that went into the caller's memory, or one that is
 * absent. */
TENON_API const tenon_value* tenon_result_value(const tenon_result* result, size_t index);
/* TENON_BAD_CALL when there is no such value or it is no tensor. */
TENON_API tenon_status tenon_result_tensor(const tenon_result* result, size_t index, tn_tensor* tensor);
TENON_API void tenon_result_free(tenon_result* result);

/* --- element types. [any] */
TENON_API size_t tenon_dtype_name(tn_dtype dtype, char* buffer, size_t bytes); /* "float32"; as snprintf */
TENON_API tn_dtype tenon_dtype_from_name(const char* name); /* TN_DTYPE_NONE: no such one */

#ifdef __cplusplus
}
#endif
#endif
