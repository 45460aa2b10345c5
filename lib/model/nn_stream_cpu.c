/* The layers' kernels on a CPU stream. Each kernel runs immediately, element by element. */
#include "model/nn_stream.h"

#define MAP(name)                                                                                  \
    static void name##_all(struct ddp_stream *s, uint32_t count, const struct ddp_nn_##name *args) \
    {                                                                                              \
        for (uint32_t i = 0; i < count; i++)                                                       \
            ddp_nn_##name##_at(args, i);                                                           \
    }
DDP_NN_MAPS(MAP)

static struct ddp_nn_pair plus(struct ddp_nn_pair x, struct ddp_nn_pair y)
{
    return (struct ddp_nn_pair){x.a + y.a, x.b + y.b};
}

static struct ddp_nn_pair halve(struct ddp_nn_pair *lane)
{
    for (int half = DDP_NN_THREADS / 2; half > 0; half /= 2)
        for (int t = 0; t < half; t++)
            lane[t] = plus(lane[t], lane[t + half]);
    return lane[0];
}

#define SUM(name)                                                                                  \
    static struct ddp_nn_pair name##_part(const struct ddp_nn_##name *args, uint32_t row,          \
                                          uint32_t count, uint32_t split, uint32_t splits)         \
    {                                                                                              \
        struct ddp_nn_pair lane[DDP_NN_THREADS] = {{0}};                                           \
        const uint32_t step = splits * DDP_NN_THREADS;                                             \
        for (uint32_t t = 0; t < DDP_NN_THREADS; t++)                                              \
            for (uint32_t j = split * DDP_NN_THREADS + t; j < count; j += step)                    \
                lane[t] = plus(lane[t], ddp_nn_##name##_term(args, row, j));                       \
        return halve(lane);                                                                        \
    }                                                                                              \
    static void name##_all(struct ddp_stream *s, uint32_t rows, uint32_t count,                    \
                           const struct ddp_nn_##name *args, struct ddp_nn_pair *parts)            \
    {                                                                                              \
        const uint32_t splits = ddp_nn_splits(count);                                              \
        for (uint32_t row = 0; row < rows; row++) {                                                \
            struct ddp_nn_pair sum = name##_part(args, row, count, 0, splits);                     \
            for (uint32_t split = 1; split < splits; split++)                                      \
                sum = plus(sum, name##_part(args, row, count, split, splits));                     \
            ddp_nn_##name##_end(args, row, count, sum);                                            \
        }                                                                                          \
    }
DDP_NN_SUMS(SUM)

static void tally(struct ddp_stream *s, uint32_t n, const double *each, const int *hit,
                  double *loss, int *correct)
{
    double lane[DDP_NN_THREADS] = {0};
    int hits = 0;
    for (uint32_t i = 0; i < n; i++) {
        lane[i % DDP_NN_THREADS] += each[i];
        hits += hit[i];
    }
    for (int half = DDP_NN_THREADS / 2; half > 0; half /= 2)
        for (int t = 0; t < half; t++)
            lane[t] += lane[t + half];
    *loss = lane[0];
    *correct = hits;
}

const struct ddp_nn_stream ddp_nn_stream_cpu = {
#define ROW(name) .name = name##_all,
    DDP_NN_MAPS(ROW) DDP_NN_SUMS(ROW)
#undef ROW
        .tally = tally,
};
