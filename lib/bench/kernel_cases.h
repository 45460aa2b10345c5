/* The CPU kernels as separate cases, which `ddpbench kernels` measures.
 *
 * A case is bound to arrays of one size and run again and again. It tells how many bytes a run must
 * move, by the formulas of device/sparse.h and device.h: the bytes that the kernel has to move, not
 * those it does move. `make bench-kernels` uses the same formulas. The helper binary
 * (cmd/kernels_main.c) takes the times and prints them. Results are not verified here. */
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

/* Number of lists that are scattered and merged. */
#define DDP_KERNEL_LISTS 4

/* Arrays of the cases, at most `bytes` each. Owned; released with ddp_kernel_data_destroy. */
struct ddp_kernel_data {
    const struct ddp_device *device;
    size_t bytes;
    float *normal, *heavy, *kept, *residual, *a, *b, *c; /* [bytes] */
    uint32_t *index;                                     /* [bytes] */
    void *scratch;                                       /* [2 * bytes] */
    /* The following belong to the case and size that was begun last. */
    size_t n;                                 /* elements */
    size_t kept_count;                        /* entries of the last selection */
    uint32_t hint;                            /* hint or threshold of a selection */
    struct ddp_sparse list[DDP_KERNEL_LISTS]; /* views into b and index */
};

struct ddp_kernel_case {
    const char *name; /* "topk/feedback/0.01": kernel, variant, density */
    void (*run)(const struct ddp_kernel_case *c, struct ddp_kernel_data *d);
    /* Optional: called before the first run at a size. */
    void (*begin)(const struct ddp_kernel_case *c, struct ddp_kernel_data *d);
    enum ddp_dtype dtype; /* type of the array whose size is given */
    enum ddp_op op;
    enum ddp_dtype narrow; /* the 16-bit type of a conversion */
    double density;
    /* Bytes that a run must move for each element, and for each selected entry. */
    double bytes_each, bytes_kept;
    bool heavy;    /* heavy-tailed input */
    bool feedback; /* uses the residual, which ddp_kernel_restore puts back */
};

/* Returns all cases; the name after the last is NULL. */
const struct ddp_kernel_case *ddp_kernel_cases(void);

/* Allocates and fills the arrays, of at most `bytes` each (a multiple of 4096) and 10 times that in
 * all. level: SIMD level of the kernels. Returns DDP_ENOMEM. */
int ddp_kernel_data_create(uint64_t bytes, enum ddp_simd level, struct ddp_kernel_data **out,
                           struct ddp_err *err) DDP_MUST_CHECK;
void ddp_kernel_data_destroy(struct ddp_kernel_data *d);

/* Binds d to a case with arrays of `bytes` (4096 to d->bytes). */
void ddp_kernel_begin(const struct ddp_kernel_case *c, struct ddp_kernel_data *d, size_t bytes);
/* Restores the input as it was before the run. Cases with c->feedback need this before each run. */
void ddp_kernel_restore(const struct ddp_kernel_case *c, struct ddp_kernel_data *d);
void ddp_kernel_run(const struct ddp_kernel_case *c, struct ddp_kernel_data *d);
/* Returns the bytes that the last run had to move. */
double ddp_kernel_bytes(const struct ddp_kernel_case *c, const struct ddp_kernel_data *d);

#ifdef __cplusplus
}
#endif
#endif
