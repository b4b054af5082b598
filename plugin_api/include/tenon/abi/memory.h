/* tenon.memory.draft/1: planners that place buffers in an arena. */
#ifndef TENON_ABI_MEMORY_H
#define TENON_ABI_MEMORY_H
#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_MEMORY_ID "tenon.memory.draft/1"

/* One alias class of values. Lives in steps [first, last], both included; two buffers whose intervals share a
 * step must not overlap in space. */
typedef struct tn_buffer {
  uint64_t bytes;
  uint64_t alignment; /* a power of two */
  uint32_t first_step, last_step;
} tn_buffer;

typedef struct tn_planner_record {
  uint32_t size;
  int32_t rank; /* order in which planners are tried; the smallest arena wins, ties go to the higher rank */
  tn_str id;    /* "tenon.memory.greedy-by-size/1" */
  tn_str summary;
  /* place(context, i, offset) once for every buffer. lower_bound_bytes: the largest live sum; a planner may
   * stop there. [any] */
  tn_status (*plan)(void* instance, const tn_buffer* buffers, uint32_t count, uint64_t lower_bound_bytes,
                    void (*place)(void* context, uint32_t i, uint64_t offset), void* context,
                    const tn_diag* diag);
} tn_planner_record;

typedef struct tn_planner_list {
  uint32_t size;
  uint32_t count;
  const tn_planner_record* const* planners;
} tn_planner_list;

#ifdef __cplusplus
}
#endif
#endif
