/* Between the files of the plan: plan.c expands, plan_algorithms.c names algorithms,
 * plan_compress.c is about exchanging less (declared in plan.h). Private to them. */
#ifndef DDP_BENCH_PLAN_IMPL_H
#define DDP_BENCH_PLAN_IMPL_H

#include "bench/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Are all names of --algorithm known to every method of --compress? DDP_EUSAGE. */
int ddp_plan_check_algorithms(const struct ddp_bench_options *o, struct ddp_err *err);
/* *out [methods]: the algorithms of each, "all" replaced by what it stands for; for free(). */
int ddp_plan_list_algorithms(const struct ddp_bench_options *o, struct ddp_string_list **out,
                             struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
