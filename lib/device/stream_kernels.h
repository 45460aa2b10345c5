/* Kernels that run on a stream: most kernels of device/sparse.h, the reduction, and a few kernels
 * that the sync strategies and the verification need. The lengths of lists stay on the device, so
 * that the host need not wait between two kernels.
 *
 * Callers reach the kernels through struct ddp_device (member `stream_kernels`). All arrays are
 * device memory, except the arrays of pointers in struct ddp_reduce, which are read during the
 * call. The results have the same bits as those of device/sparse.h and ddp_device.reduce. Arrays
 * have fewer than 2^31 elements, except those of write_expected and count_wrong. The functions do
 * not wait and do not allocate. The caller passes scratch memory to the selections and to merge. */
#ifndef DDP_DEVICE_STREAM_KERNELS_H
#define DDP_DEVICE_STREAM_KERNELS_H

#include "device/device.h"
#include "device/sparse.h"
#include "device/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An index-sorted list. The length of the list is in device memory. It is known only when the
 * stream has computed it. */
struct ddp_stream_list {
    uint32_t *index; /* [capacity] */
    float *value;    /* [capacity] */
    uint32_t *count; /* [1] */
    size_t capacity;
};

struct ddp_expected; /* device/input_ops.h */

/* Number of different values of a digit that count_digits counts. */
#define DDP_DIGITS 16

/* The arguments of a selection, as in struct ddp_select, except that out.capacity may be less than
 * the number of selected entries. Then the first out.capacity of them are stored in `out`. The
 * other selected entries stay in the residual, or are lost if there is no residual. */
struct ddp_stream_select {
    const float *in;
    float *residual;
    size_t n;
    struct ddp_stream_list out;
    /* [scratch_bytes], aligned to 64; contents undefined before and after the call. */
    void *scratch;
    size_t scratch_bytes;
};

struct ddp_stream_kernels {
    void (*reduce)(struct ddp_stream *s, const struct ddp_reduce *r);
    /* Adds the number of overflows to *overflows unless overflows is NULL. */
    void (*narrow)(struct ddp_stream *s, void *dst, const float *src, size_t n, enum ddp_dtype to,
                   float scale, float clip, uint64_t *overflows);
    void (*widen)(struct ddp_stream *s, float *dst, const void *src, size_t n, enum ddp_dtype from);
    void (*widen_add)(struct ddp_stream *s, float *dst, const void *src, size_t n,
                      enum ddp_dtype from);
    void (*narrow_residual)(struct ddp_stream *s, float *residual, const float *in,
                            const void *wire, size_t n, enum ddp_dtype type);

    /* Returns the bytes of scratch memory that a selection from n elements needs. k is 0 for a
     * selection by threshold. */
    size_t (*select_scratch)(size_t n, size_t k);
    void (*select_threshold)(struct ddp_stream *s, const struct ddp_stream_select *x,
                             float threshold);
    /* x->out.capacity must be at least min(k, n). */
    void (*select_topk)(struct ddp_stream *s, const struct ddp_stream_select *x, size_t k);

    void (*scatter_add)(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list);
    void (*scatter)(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list);
    void (*scatter_zero)(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list);
    /* out->capacity must be at least the sum of the capacities of a and b. scratch has
     * merge_scratch(b->capacity) bytes. */
    size_t (*merge_scratch)(size_t b_capacity);
    void (*merge)(struct ddp_stream *s, const struct ddp_stream_list *out,
                  const struct ddp_stream_list *a, const struct ddp_stream_list *b, void *scratch);

    void (*sgd)(struct ddp_stream *s, float *p, float *v, const float *grad, size_t n, float lr,
                float momentum, float weight_decay);
    void (*adam)(struct ddp_stream *s, float *p, float *m, float *v, const float *grad, size_t n,
                 const struct ddp_adam *a);

    /* a[i] = (float) (a[i] * factor). The product is computed in double. */
    void (*scale)(struct ddp_stream *s, float *a, size_t n, double factor);
    /* Like widen, but also counts overflows. Adds to *overflows the number of elements whose src is
     * not finite, although their dst is finite on entry. */
    void (*widen_back)(struct ddp_stream *s, float *dst, const void *src, size_t n,
                       enum ddp_dtype from, uint64_t *overflows);
    /* *sum += *count. */
    void (*add_count)(struct ddp_stream *s, uint64_t *sum, const uint32_t *count);

    /* Sets before[i] to the number of entries of the list whose index is below bound[i]. The arrays
     * bound [bounds] and before [bounds] may also be memory of host_alloc. */
    void (*split)(struct ddp_stream *s, const struct ddp_stream_list *list, const uint32_t *bound,
                  size_t bounds, uint32_t *before);
    /* Adds 1 to count[d] for each value that is not 0 and whose magnitude m (device/sparse.h)
     * satisfies m >> shift >> 4 == prefix. The digit d is the lowest 4 bits of m >> shift. shift is
     * at most 28. */
    void (*count_digits)(struct ddp_stream *s, const float *value, size_t n, uint32_t prefix,
                         int shift, uint32_t count[DDP_DIGITS]);

    /* Writes elements [first, first + count) of the array that *e describes to dst [count]. */
    void (*write_expected)(struct ddp_stream *s, void *dst, const struct ddp_expected *e,
                           size_t first, size_t count);
    /* Adds to *wrong the number of elements of data [count] that differ from elements [first, first
     * + count) of the array that *e describes. */
    void (*count_wrong)(struct ddp_stream *s, const void *data, const struct ddp_expected *e,
                        size_t first, size_t count, uint64_t *wrong);
};

#ifdef __cplusplus
}
#endif
#endif
