/* For tests of measured points: runs all points of some options on one communicator. */
#ifndef DDP_TESTS_PLAN_RUNS_H
#define DDP_TESTS_PLAN_RUNS_H

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "bench/sampler.h"

/* Sets --compress from a text such as "fp16,topk:0.01". */
static inline void set_compress(struct ddp_bench_options *o, const char *text)
{
    struct ddp_string_list list = {0};
    struct ddp_err err = DDP_ERR_INIT;
    for (size_t n; *text != '\0'; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        snprintf(list.v[list.n++], sizeof list.v[0], "%.*s", (int)n, text);
    }
    const int rc = ddp_compress_parse_list(&list, &o->compress, &err);
    assert(rc == 0);
    (void)rc;
}

/* Runs all points. each (may be NULL) is called with every point and its samples and may return
 * an error. The samples that the options request must be present. Returns a code. */
static inline int run_all(struct ddp_comm *comm, const struct ddp_bench_options *o,
                          int (*each)(const struct ddp_point *, const double *, void *,
                                      struct ddp_err *),
                          void *arg, struct ddp_err *err)
{
    struct ddp_bench_plan plan;
    struct ddp_sampler *sampler = NULL;
    if (!comm->device)
        comm->device = ddp_device_cpu(ddp_cpu_best_simd());
    DDP_TRY(ddp_plan_make(o, comm->backend->name, comm->size, -1, &plan, err));
    int rc = ddp_sampler_create(comm, o, &plan, &sampler, err);
    for (int i = 0; i < plan.count && rc == 0; i++) {
        struct ddp_point point;
        const double *samples;
        const char *why;
        if (ddp_sampler_skips(sampler, i, &why))
            continue;
        rc = ddp_sampler_point(sampler, i, &point, &samples, err);
        if (rc == 0 && each)
            rc = each(&point, samples, arg, err);
        if (rc == 0 && o->samples && (!samples || !(samples[0] > 0)))
            rc = ddp_fail(err, DDP_EDATA, "no samples");
    }
    ddp_sampler_destroy(sampler);
    ddp_plan_release(&plan);
    return rc;
}

#endif
