/* The layers' kernels on a stream: the functions of nn_element.h applied to all elements.
 *
 * Each device has one table. nn_stream_cpu.c runs kernels immediately, for tests and as the
 * reference. kernels_nn.cu runs the kernels on a GPU. The two tables give the same bits, except
 * where a kernel uses exp or log. The order in which the terms of a sum are added depends only on
 * their number. The terms are split into ddp_nn_splits(count) parts. Each part forms DDP_NN_THREADS
 * partial sums of terms at a fixed stride. The partial sums are added pairwise, upper half to lower
 * half. Finally the parts are added in order. The kernels do not allocate or wait. They do not
 * multiply matrices, because layers_stream.h calls a library for products. */
#ifndef DDP_MODEL_NN_STREAM_H
#define DDP_MODEL_NN_STREAM_H

#include "device/stream.h"
#include "model/nn_element.h"

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
/* A sum gets one part per DDP_NN_SPLIT_TERMS terms, but at most DDP_NN_SPLITS_MAX parts. With
 * smaller parts, launching blocks would take longer than the sum. */
#define DDP_NN_SPLIT_TERMS 8192

DDP_BOTH uint32_t ddp_nn_splits(uint32_t count)
{
    const uint32_t splits = (count + DDP_NN_SPLIT_TERMS - 1) / DDP_NN_SPLIT_TERMS;
    return splits < 1 ? 1 : splits > DDP_NN_SPLITS_MAX ? DDP_NN_SPLITS_MAX : splits;
}

/* The kernels do not use *args after the call. parts [rows * ddp_nn_splits(count)]. */
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
    /* *loss = sum of the array `each` [n], added like one part of a sum (see above). *correct = sum
     * of the array `hit` [n]. */
    void (*tally)(struct ddp_stream *s, uint32_t n, const double *each, const int *hit,
                  double *loss, int *correct);
};

extern const struct ddp_nn_stream ddp_nn_stream_cpu;

#ifdef __cplusplus
}
#endif
#endif
