/* Private declarations of the files of the plan. plan.c makes the points. plan_algorithms.c lists
 * algorithms. plan_compress.c handles compressed and partial exchanges; plan.h declares its
 * functions. */
#ifndef DDP_BENCH_PLAN_IMPL_H
#define DDP_BENCH_PLAN_IMPL_H

#include "bench/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks that each name of --algorithm is an algorithm of every method of --compress. Returns
 * DDP_EUSAGE. */
int ddp_plan_check_algorithms(const struct ddp_bench_options *o, struct ddp_err *err);
/* Sets *out [methods] to the algorithms of each method, with "all" expanded. Release it with
 * free(). */
int ddp_plan_list_algorithms(const struct ddp_bench_options *o, struct ddp_string_list **out,
                             struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
