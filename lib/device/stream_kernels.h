/* The gradient kernels on a stream: those of device/sparse.h and the reduction, with counts that
 * stay on the device, so that nothing between them waits for the host.
 *
 * Reached through struct ddp_device (member `stream_kernels`). All arrays are the device's, except
 * the arrays of pointers in struct ddp_reduce, which are read during the call. Results equal those
 * of device/sparse.h and ddp_device.reduce, bit for bit; what each kernel computes is said there.
 * Lengths are below 2^31. Users: compressors and strategies on an accelerator, backends.
 * What it does not do: allocate (select and merge take scratch memory), wait. */
#ifndef DDP_DEVICE_STREAM_KERNELS_H
#define DDP_DEVICE_STREAM_KERNELS_H

#include "device/device.h"
#include "device/sparse.h"
#include "device/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An index-sorted list whose length is known when the stream gets there. */
struct ddp_stream_list {
    uint32_t *index; /* [capacity] */
    float *value;    /* [capacity] */
    uint32_t *count; /* [1] */
    size_t capacity;
};

/* As struct ddp_select; out may be shorter than n: of what is selected the first out.capacity are
 * sent, the others stay in the residual (without one they are left out). scratch [scratch_bytes]:
 * aligned to 64, contents undefined before and after. */
struct ddp_stream_select {
    const float *in;
    float *residual;
    size_t n;
    struct ddp_stream_list out;
    void *scratch;
    size_t scratch_bytes;
};

struct ddp_stream_kernels {
    void (*reduce)(struct ddp_stream *s, const struct ddp_reduce *r);
    /* Adds the overflows to *overflows; NULL: not counted. */
    void (*narrow)(struct ddp_stream *s, void *dst, const float *src, size_t n, enum ddp_dtype to,
                   float scale, float clip, uint64_t *overflows);
    void (*widen)(struct ddp_stream *s, float *dst, const void *src, size_t n, enum ddp_dtype from);
    void (*widen_add)(struct ddp_stream *s, float *dst, const void *src, size_t n,
                      enum ddp_dtype from);
    void (*narrow_residual)(struct ddp_stream *s, float *residual, const float *in,
                            const void *wire, size_t n, enum ddp_dtype type);

    /* Scratch that a selection of n needs; k 0: by threshold. */
    size_t (*select_scratch)(size_t n, size_t k);
    void (*select_threshold)(struct ddp_stream *s, const struct ddp_stream_select *x,
                             float threshold);
    /* out.capacity >= min(k, n). */
    void (*select_topk)(struct ddp_stream *s, const struct ddp_stream_select *x, size_t k);

    void (*scatter_add)(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list);
    void (*scatter)(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list);
    void (*scatter_zero)(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list);
    /* out->capacity >= the sum of both lists' capacities. scratch [merge_scratch(b->capacity)]. */
    size_t (*merge_scratch)(size_t b_capacity);
    void (*merge)(struct ddp_stream *s, const struct ddp_stream_list *out,
                  const struct ddp_stream_list *a, const struct ddp_stream_list *b, void *scratch);

    void (*sgd)(struct ddp_stream *s, float *p, float *v, const float *grad, size_t n, float lr,
                float momentum, float weight_decay);
    void (*adam)(struct ddp_stream *s, float *p, float *m, float *v, const float *grad, size_t n,
                 const struct ddp_adam *a);

    /* a[i] = a[i] * factor, rounded once. */
    void (*scale)(struct ddp_stream *s, float *a, size_t n, double factor);
    /* As widen; adds to *overflows how often src is not finite where dst was. */
    void (*widen_back)(struct ddp_stream *s, float *dst, const void *src, size_t n,
                       enum ddp_dtype from, uint64_t *overflows);
    /* *sum += *count. */
    void (*add_count)(struct ddp_stream *s, uint64_t *sum, const uint32_t *count);
};

#ifdef __cplusplus
}
#endif
#endif
