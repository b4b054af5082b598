/* tenon.choices.draft/1: what was decided by measuring, kept in a file of the user's, so that a run which is
 * given that file decides the same and measures nothing. Without one the static cost decides. */
#ifndef TENON_ABI_CHOICES_H
#define TENON_ABI_CHOICES_H
#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_CHOICES_ID "tenon.choices.draft/1"

typedef enum tn_choice_origin {
  TN_CHOICE_NONE = 0,    /* nothing is known */
  TN_CHOICE_FOREIGN = 1, /* measured on another machine, or with other settings */
  TN_CHOICE_OWN = 2,     /* measured here, in an earlier run */
  TN_CHOICE_THIS_RUN = 3
} tn_choice_origin;

typedef struct tn_choices_api {
  uint32_t size;
  uint32_t reserved;
  /* 1 when the user asks that what is not known be measured; else nothing may be timed. [main] */
  int (*may_measure)(const tn_host* host);
  /* What was chosen for this question; *chosen and *note stay valid until the next call. [main] */
  tn_choice_origin (*find)(const tn_host* host, tn_str question, tn_str* chosen, tn_str* note);
  /* Remembers it, in place of what was known; `note`: the figures, for readers. [main] */
  tn_status (*keep)(const tn_host* host, tn_str question, tn_str chosen, tn_str note);
} tn_choices_api;

#ifdef __cplusplus
}
#endif
#endif
