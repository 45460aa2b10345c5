/* The CPU kernels as cases that can be run one by one: what `ddpbench kernels` measures.
 *
 * A case binds to arrays of one size, is run again and again, and says how many bytes a run must
 * move by the formulas of device/sparse.h and device.h (what the kernel has to do, not what it
 * does; the same formulas as `make bench-kernels`). User: the helper binary (cmd/kernels_main.c).
 * What it does not do: take times, print, verify results. */
#ifndef DDP_BENCH_KERNEL_CASES_H
#define DDP_BENCH_KERNEL_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "device/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lists that are scattered and merged. */
#define DDP_KERNEL_LISTS 4

/* Arrays of the cases, at most `bytes` each. Owned; released with ddp_kernel_data_destroy. */
struct ddp_kernel_data {
    const struct ddp_device *device;
    size_t bytes;
    float *normal, *heavy, *kept, *residual, *a, *b, *c; /* [bytes] */
    uint32_t *index;                                     /* [bytes] */
    void *scratch;                                       /* [2 * bytes] */
    size_t n;
    size_t kept_count;
    uint32_t hint;
    struct ddp_sparse list[DDP_KERNEL_LISTS];
};

struct ddp_kernel_case {
    const char *name; /* "topk/feedback/0.01": kernel, variant, density */
    void (*run)(const struct ddp_kernel_case *c, struct ddp_kernel_data *d);
    /* Before the first run at a size; NULL: nothing to prepare. */
    void (*begin)(const struct ddp_kernel_case *c, struct ddp_kernel_data *d);
    enum ddp_dtype dtype; /* of the array whose size is given */
    enum ddp_op op;
    enum ddp_dtype narrow; /* the 16-bit type of a conversion */
    double density;
    double bytes_each, bytes_kept;
    bool heavy;
    bool feedback;
};

/* All cases; ends with name NULL. */
const struct ddp_kernel_case *ddp_kernel_cases(void);

/* Arrays of at most `bytes` each (a multiple of 4096), filled, 10 times that in all; level: of the
 * kernels. DDP_ENOMEM. */
int ddp_kernel_data_create(uint64_t bytes, enum ddp_simd level, struct ddp_kernel_data **out,
                           struct ddp_err *err) DDP_MUST_CHECK;
void ddp_kernel_data_destroy(struct ddp_kernel_data *d);

/* Binds d to a case on arrays of `bytes` (4096 to d->bytes). */
void ddp_kernel_begin(const struct ddp_kernel_case *c, struct ddp_kernel_data *d, size_t bytes);
/* Makes the input what it was before the run; needed before each one where c->feedback. */
void ddp_kernel_restore(const struct ddp_kernel_case *c, struct ddp_kernel_data *d);
void ddp_kernel_run(const struct ddp_kernel_case *c, struct ddp_kernel_data *d);
/* Bytes that the last run had to move. */
double ddp_kernel_bytes(const struct ddp_kernel_case *c, const struct ddp_kernel_data *d);

#ifdef __cplusplus
}
#endif
#endif
