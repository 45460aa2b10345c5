/* For tests of deaths and signals: shared memory in which ranks and test see the same values. */
#ifndef DDP_TESTS_LAUNCH_BOARD_H
#define DDP_TESTS_LAUNCH_BOARD_H

#include <stdio.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "comm_ranks.h"

/* The values that ranks and test share. */
struct board {
    _Atomic(int64_t) died_at, seen_at;
    _Atomic(int) pid[8];
    _Atomic(int) ready, news, flag;
    char line[8][256];
    int victim, step, signal;
};

static inline struct board *new_board(void)
{
    struct board *b =
        mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(b != MAP_FAILED);
    return b;
}

static inline void keep_news(void *arg, const char *line)
{
    struct board *b = arg;
    int n = b->news++;
    if (n < 8)
        snprintf(b->line[n], sizeof b->line[n], "%s", line);
}

static inline int launch(int ranks, struct ranks_job job, struct ddp_launch_outcome *outcome,
                         struct ddp_err *err, int64_t *took_ns)
{
    int64_t start = ddp_now_ns();
    *err = DDP_ERR_INIT;
    int rc = ranks_run(ranks, DDP_LAUNCH_PROCESSES, job, outcome, err);
    *took_ns = ddp_now_ns() - start;
    return rc;
}

#endif
