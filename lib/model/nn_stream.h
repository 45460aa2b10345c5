/* The layers' kernels on a stream: those of nn_element.h over all their elements.
 *
 * One table a device: nn_stream_cpu.c (at once, for tests and as the reference), kernels_nn.cu.
 * Both give the same bits, but for exp and log. A sum's order is fixed by its count alone: it is
 * cut in ddp_nn_splits(count) parts, in each of which DDP_NN_THREADS partial sums of every
 * so-manieth term are added by halving; then the parts are added in order. What it does not do:
 * products (layers_stream.h), allocate, wait. */
#ifndef DDP_MODEL_NN_STREAM_H
#define DDP_MODEL_NN_STREAM_H

#include "device/stream.h"
#include "model/nn_element_sum.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_NN_MAPS(X)                                                                             \
    X(unfold)                                                                                      \
    X(fold)                                                                                        \
    X(pool)                                                                                        \
    X(unpool)                                                                                      \
    X(bias)                                                                                        \
    X(relu_backward)                                                                               \
    X(move)                                                                                        \
    X(add)                                                                                         \
    X(normalize)                                                                                   \
    X(norm_scale)                                                                                  \
    X(norm_backward)                                                                               \
    X(gather)                                                                                      \
    X(loss)
#define DDP_NN_SUMS(X)                                                                             \
    X(channel_sum)                                                                                 \
    X(pool_sum)                                                                                    \
    X(column_sum)                                                                                  \
    X(mean)                                                                                        \
    X(variance)                                                                                    \
    X(norm_sum)

#define DDP_NN_THREADS    256
#define DDP_NN_SPLITS_MAX 64
/* Terms that a part has at least: a block's launch is worth that many. */
#define DDP_NN_SPLIT_TERMS 8192

DDP_BOTH uint32_t ddp_nn_splits(uint32_t count)
{
    const uint32_t splits = (count + DDP_NN_SPLIT_TERMS - 1) / DDP_NN_SPLIT_TERMS;
    return splits < 1 ? 1 : splits > DDP_NN_SPLITS_MAX ? DDP_NN_SPLITS_MAX : splits;
}

/* args are read during the call. parts: room for rows * ddp_nn_splits(count). */
struct ddp_nn_stream {
#define DDP_NN_MAP(name)                                                                           \
    void (*name)(struct ddp_stream * s, uint32_t count, const struct ddp_nn_##name *args);
#define DDP_NN_SUM(name)                                                                           \
    void (*name)(struct ddp_stream * s, uint32_t rows, uint32_t count,                             \
                 const struct ddp_nn_##name *args, struct ddp_nn_pair *parts);
    DDP_NN_MAPS(DDP_NN_MAP)
    DDP_NN_SUMS(DDP_NN_SUM)
#undef DDP_NN_MAP
#undef DDP_NN_SUM
    /* loss[0] = sum of each[n], by DDP_NN_THREADS sums as above; correct[0] = sum of hit[n]. */
    void (*tally)(struct ddp_stream *s, uint32_t n, const double *each, const int *hit,
                  double *loss, int *correct);
};

extern const struct ddp_nn_stream ddp_nn_stream_cpu;
extern const struct ddp_nn_stream ddp_nn_stream_cuda; /* kernels_nn.cu */

#ifdef __cplusplus
}
#endif
#endif
