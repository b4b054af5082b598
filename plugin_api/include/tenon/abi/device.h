/* tenon.device.draft/1: devices with memory and streams of their own.
 *
 * The host processor is the device "cpu", always there and not described here: its memory is what pointers
 * point to, its kernels are called and are done when they return. Every other device is a plugin's:
 *
 *  - Memory. A buffer is {space, handle, offset}. Space 0 is the host's memory, where the handle is an
 * address; the host numbers the spaces of the devices it opens. A handle means something to its device alone
 * and need not be a pointer. The host allocates one arena for each run in flight and places all intermediates
 * in it; constants that a device reads are uploaded once.
 *  - Streams. What is enqueued on one stream happens in that order; two streams are ordered by events only.
 *    Functions marked [enqueue] return before the work is done and are called by one thread at a time for one
 *    stream, for several streams at once. The host asks for one compute stream a run in flight, and for one
 *    copy stream where the device flags that it has such.
 *  - Events. `record` marks the place in a stream, `wait` holds another stream of the same device until that
 *    place was passed, `synchronize` holds the calling thread. Recording again moves the event.
 *  - Faults. Functions return TN_OK or a status. Afterwards the host asks `explain` for the text, lets every
 *    stream of the run finish, and destroys the streams, events and arena of that run. TN_DEVICE_LOST from
 *    any function: the run fails, and the next one opens the device anew. A stream whose work failed skips
 *    what follows, and every later `synchronize` and `finish` on it returns the failure.
 *
 * A kernel of a device names the device's kind in its record, and its `plan` sets tn_planned.enqueue.
 * Operands are dense tensors as on the host; runs of such kernels read no shapes and allocate nothing. */
#ifndef TENON_ABI_DEVICE_H
#define TENON_ABI_DEVICE_H
#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_DEVICE_ID "tenon.device.draft/1"

enum { TN_DEVICE_LOST = 100 }; /* a tn_status: the device is gone until it is opened again */
enum { TN_SPACE_HOST = 0 };
enum {                            /* tn_device_properties.flags */
       TN_DEVICE_COPY_STREAM = 1, /* copies on a stream of their own overlap with kernels */
       TN_DEVICE_PEER_COPY = 2,   /* `copy` reads the spaces of other open devices of this record */
       TN_DEVICE_HOST_VISIBLE = 4 /* `map` gives host addresses of its memory: what the host reads there
                                     needs no copy, only an event */
};
enum { TN_STREAM_COMPUTE = 0, TN_STREAM_COPY = 1 };

/* All three belong to the plugin; the host only hands them back. */
typedef struct tn_device tn_device; /* one open device */
typedef struct tn_stream tn_stream;
typedef struct tn_event tn_event;

typedef struct tn_device_buffer {
  uint64_t handle; /* what `allocate` gave; in space 0 an address */
  uint64_t offset; /* bytes from there, a multiple of the device's alignment */
  uint32_t space;
  uint32_t present; /* 0: the operand is omitted */
} tn_device_buffer;

/* What a kernel enqueues with. Valid during the call. 64 bytes. */
typedef struct tn_device_args {
  const void* state; /* tn_planned.state */
  const tn_device_buffer* inputs;
  const tn_device_buffer* outputs;
  tn_stream* stream;
  tn_device_buffer
      workspace; /* tn_planned.workspace_bytes in the device's space; free from kernel to kernel */
  uint32_t input_count, output_count;
} tn_device_args;

/* TN_OK: the work is enqueued. [enqueue] */
typedef int (*tn_enqueue_fn)(const tn_device_args* args);

/* The time of one transfer, for placement: latency_ns + bytes / bytes_per_ns. */
typedef struct tn_link {
  double latency_ns;
  double bytes_per_ns; /* gigabytes a second; 0: infinite */
} tn_link;

typedef struct tn_device_properties {
  uint32_t size;
  uint32_t flags;
  tn_str description;    /* "PoCL, 16 cores"; valid until close */
  uint64_t memory_bytes; /* that a plan may use; 0: not known */
  uint64_t alignment;    /* of offsets; a power of two, at least 1 */
  tn_link upload, download, peer;
} tn_device_properties;

typedef struct tn_device_record {
  uint32_t size;
  uint32_t reserved;
  tn_str kind; /* "opencl": what kernel records and manifests name; one of several is "opencl:1" */
  tn_str summary;
  /* How many there are on this machine; 0 is no fault. [main] */
  uint32_t (*count)(void* instance);
  /* Opens number `ordinal`, counted from 0, whose memory the host calls `space`. Several sessions may open
   * one device at once; each gets a tn_device of its own. [any] */
  tn_status (*open)(void* instance, uint32_t ordinal, uint32_t space, const tn_diag* diag,
                    tn_device** device);
  void (*close)(tn_device* device); /* nothing of it is in use any more. [any] */
  tn_status (*properties)(tn_device* device, tn_device_properties* out); /* `out->size` is set. [any] */

  /* Memory, aligned as the device needs it, not initialised. TN_ERR_MEMORY when there is not so much. [any]
   */
  tn_status (*allocate)(tn_device* device, uint64_t bytes, uint64_t* handle);
  void (*release)(tn_device* device, uint64_t handle); /* nothing enqueued uses it any more. [any] */
  void* (*map)(tn_device* device, uint64_t handle);    /* TN_DEVICE_HOST_VISIBLE only. [any] */

  tn_status (*create_stream)(tn_device* device, uint32_t use, tn_stream** stream); /* TN_STREAM_*. [any] */
  void (*destroy_stream)(tn_device* device, tn_stream* stream);   /* it has finished. [any] */
  tn_status (*create_event)(tn_device* device, tn_event** event); /* [any] */
  void (*destroy_event)(tn_device* device, tn_event* event);      /* [any] */

  /* Host memory stays as it is until the stream has passed the copy. [enqueue] */
  tn_status (*upload)(tn_stream* stream, const tn_device_buffer* to, const void* from, uint64_t bytes);
  tn_status (*download)(tn_stream* stream, void* to, const tn_device_buffer* from, uint64_t bytes);
  /* Within the device's space, or with TN_DEVICE_PEER_COPY from another one's; then `from`'s stream was
   * waited for. [enqueue] */
  tn_status (*copy)(tn_stream* stream, const tn_device_buffer* to, const tn_device_buffer* from,
                    uint64_t bytes);
  tn_status (*record)(tn_stream* stream, tn_event* event); /* [enqueue] */
  tn_status (*wait)(tn_stream* stream, tn_event* event);   /* one that was recorded before. [enqueue] */
  tn_status (*synchronize)(tn_event* event);               /* blocks until it was passed. [any] */
  tn_status (*finish)(tn_stream* stream); /* blocks until all that was enqueued is done. [any] */
  /* What the last failure on this device was: one report. [any] */
  void (*explain)(tn_device* device, const tn_diag* diag);
} tn_device_record;

typedef struct tn_device_list {
  uint32_t size;
  uint32_t count;
  const tn_device_record* const* devices;
} tn_device_list;

#ifdef __cplusplus
}
#endif
#endif
