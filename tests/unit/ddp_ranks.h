/* For tests of libddp's API: runs a function in N ranks, as threads and as processes. Under
 * ThreadSanitizer, which checks threads only, the ranks are always threads (DDP_LAUNCH_THREADS).
 * Ranks must not use cmocka's asserts. They use CHECK, which returns an error that the parent
 * sees. */
#ifndef DDP_TESTS_DDP_RANKS_H
#define DDP_TESTS_DDP_RANKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "exchange/ddp.h"
#include "names.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return ddp_fail(err, DDP_EDATA, "%s:%d: %s", __FILE__, __LINE__, #condition);          \
    } while (0)

/* Fails unless the call returns the expected code and its message names the subjects. */
#define CHECK_FAILS(expected_code, expected_text, ...)                                             \
    do {                                                                                           \
        struct ddp_err refused_ = DDP_ERR_INIT;                                                    \
        struct ddp_err *const refused = &refused_;                                                 \
        int rc_ = (__VA_ARGS__);                                                                   \
        if (rc_ != (expected_code) || refused_.code != rc_ ||                                      \
            !text_names(refused_.text, expected_text))                                             \
            return ddp_fail(err, DDP_EDATA, "%s:%d: %s gives %d, '%.200s'", __FILE__, __LINE__,    \
                            #__VA_ARGS__, rc_, refused_.text);                                     \
    } while (0)

typedef int rank_body(struct ddp *d, void *arg, struct ddp_err *err);

#if defined(__SANITIZE_THREAD__)
#define ONLY_THREADS 1
#else
#define ONLY_THREADS 0
#endif

static const struct ddp_init_options test_options = {.timeout_s = 20, .heap_bytes = 64u << 20};

static inline void run_ranks(int ranks, rank_body *body, void *arg)
{
    for (int processes = 0; processes <= !ONLY_THREADS; processes++) {
        struct ddp_err err = DDP_ERR_INIT;
        if (ddp_run(ranks, !processes, &test_options, body, arg, &err) != 0)
            fail_msg("%d ranks as %s: %s", ranks, processes ? "processes" : "threads", err.text);
    }
}

/* Runs the body on 1 to `most` ranks. */
static inline void run_all_ranks(int most, rank_body *body, void *arg)
{
    for (int ranks = 1; ranks <= most; ranks++)
        run_ranks(ranks, body, arg);
}

#endif
