/* The cases that `ddpbench kernels` measures. Each case runs one CPU kernel.
 *
 * A case is prepared for arrays of one size and then run many times. ddp_kernel_bytes() returns the
 * bytes that a run has to move, computed from the bytes per element and per list entry of the case.
 * For scatter-add, this includes the cache lines that the entries read and write. The kernel may
 * move more. `make bench-kernels` uses the same formulas. The helper binary (cmd/kernels_main.c)
 * measures and prints the times. Results are not verified here. */
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

/* Number of lists for scatter-add. The merge uses the first two of them. */
#define DDP_KERNEL_LISTS 4

/* Arrays that the cases share. The array `scratch` has 2 * bytes bytes, and each other array has
 * `bytes` bytes. Release with ddp_kernel_data_destroy. */
struct ddp_kernel_data {
    const struct ddp_device *device;
    size_t bytes;
    float *normal, *heavy, *kept, *residual, *a, *b, *c; /* [bytes] */
    uint32_t *index;                                     /* [bytes] */
    void *scratch;                                       /* [2 * bytes] */
    /* The following members belong to the case and size of the last ddp_kernel_begin. */
    size_t n;          /* elements */
    size_t kept_count; /* list entries that the last run read or wrote */
    /* Top-k: the hint of select_topk. Threshold: the threshold, a float as its bit pattern. */
    uint32_t hint;
    struct ddp_sparse list[DDP_KERNEL_LISTS]; /* views into b and index */
};

struct ddp_kernel_case {
    const char *name; /* "topk/feedback/0.01": kernel, variant, density */
    void (*run)(const struct ddp_kernel_case *c, struct ddp_kernel_data *d);
    /* Optional: called before the first run at a size. */
    void (*begin)(const struct ddp_kernel_case *c, struct ddp_kernel_data *d);
    enum ddp_dtype dtype; /* n is the size in bytes divided by the size of this type */
    enum ddp_op op;
    enum ddp_dtype narrow;  /* the 16-bit type of a conversion */
    struct ddp_quant quant; /* the blocks of a quantisation */
    double density;
    /* Bytes that a run must move per element and per list entry. Exception: for a reduction,
     * bytes_each is the number of elements that are read or written per element of the result, and
     * ddp_kernel_bytes multiplies it by the size of an element. */
    double bytes_each, bytes_kept;
    bool heavy;    /* heavy-tailed input */
    bool feedback; /* uses the residual, which ddp_kernel_restore puts back */
};

/* Returns the array of all cases. It ends with an entry whose name is NULL. */
const struct ddp_kernel_case *ddp_kernel_cases(void);

/* Allocates and fills the arrays. bytes: size of an array, at least 4096 and a multiple of 8. All
 * arrays together take 10 * bytes. level: SIMD level of the kernels. Returns DDP_ENOMEM if there is
 * no memory. */
int ddp_kernel_data_create(uint64_t bytes, enum ddp_simd level, struct ddp_kernel_data **out,
                           struct ddp_err *err) DDP_MUST_CHECK;
void ddp_kernel_data_destroy(struct ddp_kernel_data *d);

/* Prepares d for a case with arrays of `bytes` bytes (4096 to d->bytes). */
void ddp_kernel_begin(const struct ddp_kernel_case *c, struct ddp_kernel_data *d, size_t bytes);
/* Restores the residual, which a run changes. Call it before each run of a case with c->feedback.
 * Does nothing for other cases. */
void ddp_kernel_restore(const struct ddp_kernel_case *c, struct ddp_kernel_data *d);
void ddp_kernel_run(const struct ddp_kernel_case *c, struct ddp_kernel_data *d);
/* Returns the bytes that the last run had to move. */
double ddp_kernel_bytes(const struct ddp_kernel_case *c, const struct ddp_kernel_data *d);

#ifdef __cplusplus
}
#endif
#endif
