/* The benchmarks of the program ddpbench-kernels: every CPU kernel at every size, as cases for
 * Google Benchmark. */
#ifndef DDP_RUN_KERNEL_BENCHMARKS_H
#define DDP_RUN_KERNEL_BENCHMARKS_H

#include "base/err.h"
#include "base/opt.h"
#include "run/gbench.h"

struct ddp_kernel_benchmarks {
    struct ddp_gbench_case *cases; /* [count] */
    size_t count;
    const char *simd;               /* name of the SIMD level of the kernels */
    struct kernel_arrays *arrays;   /* belongs to the implementation */
    struct kernel_at_size *kernels; /* belongs to the implementation */
};

/* Returns DDP_EMISMATCH if `build` is neither NULL nor the commit of this program, and DDP_EUSAGE
 * if a size is not a multiple of 8 bytes. */
int ddp_kernel_benchmarks_check(const char *build, const struct ddp_size_list *sizes,
                                struct ddp_err *err) DDP_MUST_CHECK;
/* Makes the cases. Their arrays are created when the first case runs. Release *out with
 * ddp_kernel_benchmarks_release. */
int ddp_kernel_benchmarks_create(const struct ddp_size_list *sizes,
                                 struct ddp_kernel_benchmarks *out,
                                 struct ddp_err *err) DDP_MUST_CHECK;
void ddp_kernel_benchmarks_release(struct ddp_kernel_benchmarks *b);

#endif
