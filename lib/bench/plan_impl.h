/* Shared by the files of the plan, and private to them: plan.c expands, plan_algorithms.c names
 * algorithms, plan_compress.c handles compressed and partial exchanges (declared in plan.h). */
#ifndef DDP_BENCH_PLAN_IMPL_H
#define DDP_BENCH_PLAN_IMPL_H

#include "bench/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks that every method of --compress knows all names of --algorithm. Returns DDP_EUSAGE. */
int ddp_plan_check_algorithms(const struct ddp_bench_options *o, struct ddp_err *err);
/* Sets *out [methods] to the algorithms of each method, with "all" expanded. Release it with
 * free(). */
int ddp_plan_list_algorithms(const struct ddp_bench_options *o, struct ddp_string_list **out,
                             struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
