/* tenon.limits/1: how much memory a plugin may take for outside data. */
#ifndef TENON_ABI_LIMITS_H
#define TENON_ABI_LIMITS_H
#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_LIMITS_ID "tenon.limits/1"

typedef struct tn_limits_api {
  uint32_t size;
  uint32_t reserved;
  /* May so many bytes be allocated now, on top of what the process holds? TN_OK; else TN_ERR_LIMIT with the
   * reason: what the user allows (--memory-limit) or what the machine has is not enough. `what` names the
   * thing in that message. Ask before allocating what outside data can make large (an archive's entry, a
   * dense copy of something sparse); nothing is set aside. [any] */
  tn_status (*may_allocate)(uint64_t bytes, tn_str what, const tn_diag* diag);
} tn_limits_api;

#ifdef __cplusplus
}
#endif
#endif
