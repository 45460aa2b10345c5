/* For tests of compressed and partial points: options, and a run of the sampler over all points
 * that the options give. */
#ifndef DDP_TESTS_COMPRESSED_RUNS_H
#define DDP_TESTS_COMPRESSED_RUNS_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "comm_ranks.h"
#include "plan_runs.h"

static inline struct ddp_bench_options options_of(void)
{
    struct ddp_bench_options o = {.coll = DDP_ALLREDUCE,
                                  .placement = DDP_IN_PLACE,
                                  .memory = -1,
                                  .iters = 3,
                                  .warmup = 1,
                                  .check = DDP_CHECK_ALL,
                                  .seed = 1};
    o.sizes = (struct ddp_size_list){2, {4, 40004}};
    set_compress(&o, "fp16,fp16:0.5,bf16,topk:0.01,threshold:2,oktopk:0.02,q8:64,q4,sign,powersgd:"
                     "2,powersgd:3:2");
    return o;
}

static inline void run_ranks(int ranks, struct ranks_job job)
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ranks_run(ranks, DDP_LAUNCH_THREADS, job, &outcome, &err), 0);
    if (outcome.code != 0)
        fail_msg("%d ranks: %s\n%s", ranks, err.text, outcome.report_text);
}

#endif
