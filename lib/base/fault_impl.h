/* Declarations shared by fault.c and fault_parse.c. Private to these files. */
#ifndef DDP_BASE_FAULT_IMPL_H
#define DDP_BASE_FAULT_IMPL_H

#include "base/fault.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_FAULT_MAX        8
#define DDP_FAULT_TEXT_BYTES 64

enum ddp_fault_action {
    DDP_FAULT_KILL9,
    DDP_FAULT_SEGV,
    DDP_FAULT_STOP,
    DDP_FAULT_ABORT,
    DDP_FAULT_SLEEP,
    DDP_FAULT_FLIP,
    DDP_FAULT_ERRNO,
    DDP_FAULT_ACTION_COUNT
};

struct ddp_fault_spec {
    enum ddp_fault_at point;
    enum ddp_fault_action action;
    /* The number of the passage at which the fault hits. The first passage is 1. */
    uint64_t n;
    int value;                       /* milliseconds for sleep, an errno value for errno */
    int rank;                        /* -1: every rank */
    char text[DDP_FAULT_TEXT_BYTES]; /* the fault as the user wrote it */
};

/* Parses one fault from text[length]. */
int ddp_fault_parse(const char *text, size_t length, struct ddp_fault_spec *out,
                    struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
