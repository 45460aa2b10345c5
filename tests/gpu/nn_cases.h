/* Cases that compare the layers' kernels on a stream with the processor's, with arrays as in real
 * nets, bit for bit except for exp and log. Include gpu_lab.h first. */
#ifndef DDP_TEST_NN_CASES_H
#define DDP_TEST_NN_CASES_H

#include "gpu/gpu_lab.h"
#include "model/nn_stream.h"

/* An array under test and the same on the processor. */
struct nn_array {
    int at;
    void *mine;
    size_t bytes;
};

static inline struct nn_array nn_floats(struct lab_case *c, size_t n, uint64_t seed)
{
    struct ddp_rng rng;
    struct nn_array a = {0, ddp_calloc(n, sizeof(float)), n * sizeof(float)};
    ddp_rng_init(&rng, seed, 1);
    for (size_t i = 0; i < n; i++)
        ((float *)a.mine)[i] = (float)(2.0 * ddp_rng_double(&rng) - 1.0);
    a.at = lab_put(c, a.mine, a.bytes, 0);
    return a;
}

static inline struct nn_array nn_bytes(struct lab_case *c, size_t n, unsigned below, uint64_t seed)
{
    struct ddp_rng rng;
    struct nn_array a = {0, ddp_calloc(n, 1), n};
    ddp_rng_init(&rng, seed, 2);
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)a.mine)[i] = (uint8_t)(ddp_rng_double(&rng) * below);
    a.at = lab_put(c, a.mine, a.bytes, 0);
    return a;
}

static inline void nn_same(struct lab_case *c, const char *what, const struct nn_array *a)
{
    lab_same(what, "layers", lab_get(c, a->at), a->mine, a->bytes, 1);
    free(a->mine);
}

/* Runs a kernel on both devices. Its arguments contain T(array) for its arrays. */
#define NN_BOTH(c, k, call, type, ...)                                                             \
    do {                                                                                           \
        {                                                                                          \
            struct ddp_stream *const on = (c)->lab->stream;                                        \
            const bool there = true;                                                               \
            const struct ddp_nn_stream *const table = (k);                                         \
            const struct type args = {__VA_ARGS__};                                                \
            call;                                                                                  \
        }                                                                                          \
        {                                                                                          \
            struct ddp_stream *const on = NULL;                                                    \
            const bool there = false;                                                              \
            const struct ddp_nn_stream *const table = &ddp_nn_stream_cpu;                          \
            const struct type args = {__VA_ARGS__};                                                \
            call;                                                                                  \
        }                                                                                          \
    } while (0)
#define T(c, a) (there ? lab_there(c, (a).at) : (a).mine)

/* Convolution with stride and padding, unfolded and folded. */
static inline void nn_case_conv(const struct lab *lab, const struct ddp_nn_stream *k)
{
    struct lab_case c = {.lab = lab};
    const int n = 3, oh = 5, ow = 4;
    const struct ddp_conv_shape s = {2, 9, 7, 4, 3, 2, 1};
    const size_t cols = 2 * 9 * 3 * 20, pixels = 3 * 2 * 63;
    const struct ddp_view view = {63, 126};
    struct nn_array x = nn_floats(&c, pixels, 1), col = nn_floats(&c, cols, 2);
    struct nn_array dx = nn_floats(&c, pixels, 3), dcol = nn_floats(&c, cols, 4);
    NN_BOTH(&c, k, table->unfold(on, (uint32_t)cols, &args), ddp_nn_unfold, s, n, oh, ow,
            (const float *)T(&c, x), view, (float *)T(&c, col));
    NN_BOTH(&c, k, table->fold(on, (uint32_t)pixels, &args), ddp_nn_fold, s, n, oh, ow,
            (const float *)T(&c, dcol), (float *)T(&c, dx), view);
    nn_same(&c, "unfold", &col);
    nn_same(&c, "fold", &dx);
    free(x.mine);
    free(dcol.mine);
    lab_end(&c);
}

/* Pooling forward and backward, and the gradient of its bias. y is stored by channel, out by image.
 */
static inline void nn_case_pool(const struct lab *lab, const struct ddp_nn_stream *k)
{
    struct lab_case c = {.lab = lab};
    enum { N = 70, C = 5, H = 24, W = 24, EACH = H * W, OUT = EACH / 4 }; /* sums in two parts */
    const struct ddp_view yv = {(size_t)N * EACH, EACH}, outv = {OUT, (size_t)C * OUT};
    struct nn_array y = nn_floats(&c, (size_t)N * C * EACH, 1), bias = nn_floats(&c, C, 2);
    struct nn_array out = nn_floats(&c, (size_t)N * C * OUT, 3),
                    dy = nn_floats(&c, (size_t)N * C * EACH, 4);
    struct nn_array which = nn_bytes(&c, (size_t)N * C * OUT, 5, 5), db = nn_floats(&c, C, 6);
    struct nn_array parts = nn_floats(&c, (size_t)C * DDP_NN_SPLITS_MAX * 2, 7);
    NN_BOTH(&c, k, table->pool(on, (uint32_t)N * C * OUT, &args), ddp_nn_pool, N, H, W,
            (const float *)T(&c, y), (const float *)T(&c, bias), yv, outv, (float *)T(&c, out),
            (uint8_t *)T(&c, which));
    NN_BOTH(&c, k, table->unpool(on, (uint32_t)N * C * OUT, &args), ddp_nn_unpool, N, H, W,
            (const float *)T(&c, out), (const uint8_t *)T(&c, which), outv, yv, (float *)T(&c, dy));
    NN_BOTH(&c, k,
            table->pool_sum(on, C, (uint32_t)N * OUT, &args, (struct ddp_nn_pair *)T(&c, parts)),
            ddp_nn_pool_sum, OUT, outv, (const float *)T(&c, out), (const uint8_t *)T(&c, which),
            (float *)T(&c, db));
    nn_same(&c, "pool", &out);
    nn_same(&c, "pool's places", &which);
    nn_same(&c, "unpool", &dy);
    nn_same(&c, "pool_sum", &db);
    free(y.mine);
    free(bias.mine);
    free(parts.mine);
    lab_end(&c);
}

/* Batch normalisation forward, with running statistics, and backward; with ReLU. */
static inline void nn_case_norm(const struct lab *lab, const struct ddp_nn_stream *k)
{
    struct lab_case c = {.lab = lab};
    enum { N = 9, C = 7, PLANE = 33, COUNT = N * PLANE, ALL = COUNT * C };
    const struct ddp_view v = {PLANE, (size_t)PLANE * C};
    struct nn_array x = nn_floats(&c, ALL, 1), y = nn_floats(&c, ALL, 2),
                    dy = nn_floats(&c, ALL, 3);
    struct nn_array dx = nn_floats(&c, ALL, 4), saved = nn_floats(&c, 5 * C, 5);
    struct nn_array running = nn_bytes(&c, 2 * C * 4, 60, 6), weight = nn_floats(&c, 4 * C, 7);
    struct nn_array parts = nn_floats(&c, (size_t)C * DDP_NN_SPLITS_MAX * 2, 8);
#define PARTS  ((struct ddp_nn_pair *)T(&c, parts))
#define SAVED  ((float *)T(&c, saved))
#define WEIGHT ((float *)T(&c, weight))
    NN_BOTH(&c, k, table->mean(on, C, COUNT, &args, PARTS), ddp_nn_mean, PLANE, v,
            (const float *)T(&c, x), SAVED);
    NN_BOTH(&c, k, table->variance(on, C, COUNT, &args, PARTS), ddp_nn_variance, PLANE, C, v,
            (const float *)T(&c, x), SAVED, WEIGHT, (float *)T(&c, running), SAVED + C,
            SAVED + 2 * C);
    NN_BOTH(&c, k, table->normalize(on, ALL, &args), ddp_nn_normalize, C, PLANE,
            (const float *)T(&c, x), SAVED, SAVED + 2 * C, WEIGHT, 1, (float *)T(&c, y));
    NN_BOTH(&c, k, table->norm_sum(on, C, COUNT, &args, PARTS), ddp_nn_norm_sum, PLANE, v,
            (const float *)T(&c, x), (const float *)T(&c, y), (const float *)T(&c, dy), SAVED,
            SAVED + C, WEIGHT + C, WEIGHT + 2 * C, SAVED + 3 * C, SAVED + 4 * C);
    NN_BOTH(&c, k, table->norm_backward(on, ALL, &args), ddp_nn_norm_backward, C, PLANE,
            (const float *)T(&c, x), (const float *)T(&c, y), (const float *)T(&c, dy), SAVED,
            SAVED + 2 * C, SAVED + 3 * C, SAVED + 4 * C, (float *)T(&c, dx));
    NN_BOTH(&c, k, table->norm_scale(on, C, &args), ddp_nn_norm_scale, WEIGHT,
            (const float *)T(&c, running) + C, WEIGHT + 3 * C);
#undef PARTS
#undef SAVED
#undef WEIGHT
    nn_same(&c, "normalize", &y);
    nn_same(&c, "norm_backward", &dx);
    nn_same(&c, "running statistics", &running);
    nn_same(&c, "what is saved", &saved);
    nn_same(&c, "gradients of a normalisation", &weight);
    free(x.mine);
    free(dy.mine);
    free(parts.mine);
    lab_end(&c);
}

/* Bias, ReLU, copies, sums of columns and of channels, batches, and losses. */
static inline void nn_case_rest(const struct lab *lab, const struct ddp_nn_stream *k)
{
    struct lab_case c = {.lab = lab};
    enum { ROWS = 37, COLS = 10, ALL = ROWS * COLS };
    const struct ddp_view channel = {ROWS * 2, 2};
    struct nn_array y = nn_floats(&c, ALL, 1), d = nn_floats(&c, ALL, 2),
                    b = nn_floats(&c, COLS, 3);
    struct nn_array sums = nn_floats(&c, 2 * COLS, 4), parts = nn_floats(&c, 64 * 2 * COLS, 5);
    struct nn_array pixels = nn_bytes(&c, 50 * COLS, 256, 6), labels = nn_bytes(&c, 50, COLS, 7);
    struct nn_array order = nn_bytes(&c, ROWS * 4, 1, 8), x = nn_floats(&c, ALL, 9);
    struct nn_array label = nn_bytes(&c, ROWS, 1, 10), moved = nn_floats(&c, ALL, 11);
    struct nn_array each = nn_bytes(&c, ROWS * 8, 1, 12), hit = nn_bytes(&c, ROWS * 4, 1, 13);
    struct nn_array result = nn_bytes(&c, 16, 1, 14), grad = nn_floats(&c, ALL, 15);
    for (uint32_t i = 0; i < ROWS; i++)
        ((uint32_t *)order.mine)[i] = (i * 7) % 50;
    lab->ops->copy(lab->stream, lab_there(&c, order.at), order.mine, order.bytes);
    NN_BOTH(&c, k, table->bias(on, ALL, &args), ddp_nn_bias, COLS, 1, (const float *)T(&c, b),
            (float *)T(&c, y));
    NN_BOTH(&c, k, table->relu_backward(on, ALL, &args), ddp_nn_relu_backward,
            (const float *)T(&c, y), (float *)T(&c, d));
    NN_BOTH(&c, k, table->add(on, ALL, &args), ddp_nn_add, (const float *)T(&c, y),
            (float *)T(&c, d));
    NN_BOTH(&c, k, table->move(on, ALL, &args), ddp_nn_move, 37, 2, (const float *)T(&c, y),
            (const float *)T(&c, b), channel, ((struct ddp_view){2, 10}), (float *)T(&c, moved));
    NN_BOTH(&c, k, table->column_sum(on, COLS, ROWS, &args, (struct ddp_nn_pair *)T(&c, parts)),
            ddp_nn_column_sum, COLS, (const float *)T(&c, d), (float *)T(&c, sums));
    NN_BOTH(&c, k, table->channel_sum(on, 5, ROWS * 2, &args, (struct ddp_nn_pair *)T(&c, parts)),
            ddp_nn_channel_sum, 2, channel, (const float *)T(&c, d), (float *)T(&c, sums) + COLS);
    NN_BOTH(&c, k, table->gather(on, ALL - 5 * COLS, &args), ddp_nn_gather,
            (const uint8_t *)T(&c, pixels), (const uint8_t *)T(&c, labels),
            (const uint32_t *)T(&c, order), 5, COLS, (float *)T(&c, x), (uint8_t *)T(&c, label));
    NN_BOTH(&c, k, table->loss(on, ROWS, &args), ddp_nn_loss, COLS, (const float *)T(&c, y),
            (const uint8_t *)T(&c, label), 0.25f, (double *)T(&c, each), (int *)T(&c, hit),
            (float *)T(&c, grad));
    {
        double *r = (double *)result.mine;
        k->tally(lab->stream, ROWS, (const double *)lab_there(&c, each.at),
                 (const int *)lab_there(&c, hit.at), (double *)lab_there(&c, result.at),
                 (int *)lab_there(&c, result.at) + 2);
        ddp_nn_stream_cpu.tally(NULL, ROWS, (const double *)each.mine, (const int *)hit.mine, r,
                                (int *)result.mine + 2);
        const double *got = (const double *)lab_get(&c, result.at);
        assert_true(fabs(got[0] - r[0]) <= 1e-12 * r[0] && r[0] > 0);
        assert_int_equal(((const int *)got)[2], ((int *)result.mine)[2]);
    }
    const float *there = (const float *)lab_get(&c, grad.at), *here = (const float *)grad.mine;
    for (int i = 0; i < ALL; i++)
        assert_true(fabs((double)there[i] - here[i]) <= 1e-7);
    nn_same(&c, "bias", &y);
    nn_same(&c, "relu_backward and add", &d);
    nn_same(&c, "move", &moved);
    nn_same(&c, "sums", &sums);
    nn_same(&c, "gather", &x);
    nn_same(&c, "gather's labels", &label);
    nn_same(&c, "hits", &hit);
    const struct nn_array rest[] = {b, parts, pixels, labels, order, each, result, grad};
    for (size_t i = 0; i < DDP_COUNT_OF(rest); i++)
        free(rest[i].mine);
    lab_end(&c);
}

static inline void nn_cases(const struct lab *lab, const struct ddp_nn_stream *k)
{
    nn_case_conv(lab, k);
    nn_case_pool(lab, k);
    nn_case_norm(lab, k);
    nn_case_rest(lab, k);
}

#endif
