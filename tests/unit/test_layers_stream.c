/* Compares the layers that run on streams with the CPU's layers. The stream layers are the basis of
 * device cuda: unfolded products, the kernels of nn_element.h, and convolutions of a library. Here
 * they run on CPU streams. */
#include <stdarg.h>
#include <setjmp.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/blas.h"
#include "model/layers_stream.h"
#include "model/model.h"

#include "net_pairs.h"

enum { BATCH = 64, STEPS = 20 };

static void gemm(struct ddp_layers_context *c, const struct ddp_gemm *g)
{
    ddp_sgemm(g->ta, g->tb, g->m, g->n, g->k, 1.0f, g->a, g->lda, g->b, g->ldb,
              g->add ? 1.0f : 0.0f, g->c, g->ldc);
}

static int unfolded_open(const struct ddp_layers_setup *setup, struct ddp_layers_context **out,
                         struct ddp_err *err)
{
    DDP_TRY(ddp_layers_stream_open(setup, &ddp_nn_stream_cpu, out, err));
    (*out)->gemm = gemm;
    return 0;
}

static const char *no_library(void)
{
    return "";
}

/* A convolution library for the test: loops from the definition, and a count of plans not freed. */
struct ddp_conv_plan {
    struct ddp_conv_shape s;
};
static int plans;

static int naive_plan(struct ddp_layers_context *c, const struct ddp_conv_shape *shape,
                      struct ddp_conv_plan **out, struct ddp_err *err)
{
    *out = calloc(1, sizeof **out);
    (*out)->s = *shape;
    plans++;
    return 0;
}

static void naive_free(struct ddp_conv_plan *plan)
{
    free(plan);
    plans--;
}

/* Executes DO for each product of a weight w[at_w] and a pixel x[at_x] that belongs to the output
 * y[at_y]. */
#define EACH_PRODUCT(s, n, at_y, at_x, at_w, DO)                                                   \
    for (int i_ = 0; i_ < (n); i_++)                                                               \
        for (int oc = 0; oc < (s)->out_c; oc++)                                                    \
            for (int r = 0; r < ddp_conv_out_h(s); r++)                                            \
                for (int col = 0; col < ddp_conv_out_w(s); col++)                                  \
                    for (int tap = 0; tap < (s)->in_c * (s)->k * (s)->k; tap++) {                  \
                        int ic = tap / ((s)->k * (s)->k), in = tap % ((s)->k * (s)->k);            \
                        int row = r * (s)->stride + in / (s)->k - (s)->pad;                        \
                        int across = col * (s)->stride + in % (s)->k - (s)->pad;                   \
                        if (row < 0 || across < 0 || row >= (s)->in_h || across >= (s)->in_w)      \
                            continue;                                                              \
                        int at_y =                                                                 \
                            ((i_ * (s)->out_c + oc) * ddp_conv_out_h(s) + r) * ddp_conv_out_w(s) + \
                            col;                                                                   \
                        int at_x = ((i_ * (s)->in_c + ic) * (s)->in_h + row) * (s)->in_w + across; \
                        int at_w = oc * (s)->in_c * (s)->k * (s)->k + tap;                         \
                        DO;                                                                        \
                    }

static void naive_forward(struct ddp_layers_context *c, struct ddp_conv_plan *plan, int n,
                          const float *x, const float *w, float *y)
{
    const struct ddp_conv_shape *s = &plan->s;
    memset(y, 0, sizeof *y * (size_t)(n * s->out_c * ddp_conv_out_h(s) * ddp_conv_out_w(s)));
    EACH_PRODUCT(s, n, at_y, at_x, at_w, y[at_y] += x[at_x] * w[at_w])
}

static void naive_weights(struct ddp_layers_context *c, struct ddp_conv_plan *plan, int n,
                          const float *x, const float *dy, float *dw)
{
    const struct ddp_conv_shape *s = &plan->s;
    memset(dw, 0, sizeof *dw * (size_t)(s->out_c * s->in_c * s->k * s->k));
    EACH_PRODUCT(s, n, at_y, at_x, at_w, dw[at_w] += x[at_x] * dy[at_y])
}

static void naive_data(struct ddp_layers_context *c, struct ddp_conv_plan *plan, int n,
                       const float *w, const float *dy, float *dx)
{
    const struct ddp_conv_shape *s = &plan->s;
    memset(dx, 0, sizeof *dx * (size_t)(n * s->in_c * s->in_h * s->in_w));
    EACH_PRODUCT(s, n, at_y, at_x, at_w, dx[at_x] += dy[at_y] * w[at_w])
}

static void naive_close(struct ddp_layers_context *c)
{
    assert_int_equal(plans, 0);
}

static const struct ddp_conv_library naive = {
    .plan = naive_plan,
    .free_plan = naive_free,
    .forward = naive_forward,
    .backward_weights = naive_weights,
    .backward_data = naive_data,
    .close = naive_close,
};

static int library_open(const struct ddp_layers_setup *setup, struct ddp_layers_context **out,
                        struct ddp_err *err)
{
    DDP_TRY(unfolded_open(setup, out, err));
    (*out)->conv = &naive;
    return 0;
}

static const struct ddp_layers unfolded = {
    .device = "cpu",
    .library = no_library,
    .open = unfolded_open,
    .close = ddp_layers_stream_close,
    .ops = &ddp_layers_stream_ops,
};
static const struct ddp_layers by_library = {
    .device = "cpu",
    .library = no_library,
    .open = library_open,
    .close = ddp_layers_stream_close,
    .ops = &ddp_layers_stream_ops,
};

static void check(const char *name, const struct ddp_layers *layers, int most, int steps)
{
    const struct ddp_model_target place = {.device = ddp_device_cpu(ddp_cpu_best_simd()),
                                           .layers = layers};
    check_net(name, &place, most, steps);
}

/* The whole batch in one chunk, and in chunks of three images. */
static void nets_unfolded(void **state)
{
    struct ddp_layer_ops small_chunks = ddp_layers_stream_ops;
    struct ddp_layers pieces = unfolded;
    pieces.ops = &small_chunks;
    small_chunks.chunk_floats = 3 * 500 * 64; /* three images of singa-cnn's second convolution */
    check("singa-cnn", &unfolded, BATCH, STEPS);
    check("singa-cnn", &pieces, 10, 2);
    check("lenet", &unfolded, 32, STEPS);
    check("resnet9", &unfolded, 16, 5);
    check("resnet9", &pieces, 16, 1);
    check("nnabla-tiny", &unfolded, 32, STEPS);
}

static void nets_by_library(void **state)
{
    check("singa-cnn", &by_library, 4, 1);
    check("lenet", &by_library, 8, 3);
    check("resnet9", &by_library, 3, 1);
    check("nnabla-tiny", &by_library, 16, 5);
}

/* Sums with more terms than one block takes, and without terms. */
static void sums_in_parts(void **state)
{
    enum { COLS = 3, ROWS = 3 * DDP_NN_SPLIT_TERMS + 17 };
    float *a = malloc(sizeof *a * COLS * ROWS), sums[COLS];
    const struct ddp_nn_column_sum sum = {COLS, a, sums};
    double want[COLS] = {0};
    for (int i = 0; i < COLS * ROWS; i++) {
        a[i] = (float)((i * 7919) % 1000) / 1000.0f;
        want[i % COLS] += a[i];
    }
    assert_int_equal(ddp_nn_splits(ROWS), 4);
    assert_int_equal(ddp_nn_splits(0), 1);
    assert_int_equal(ddp_nn_splits(UINT32_MAX / 2), DDP_NN_SPLITS_MAX);
    ddp_nn_stream_cpu.column_sum(NULL, COLS, ROWS, &sum, NULL);
    for (int c = 0; c < COLS; c++)
        assert_true(fabs(sums[c] - want[c]) <= 1e-5 * want[c]);
    ddp_nn_stream_cpu.column_sum(NULL, COLS, 0, &sum, NULL);
    for (int c = 0; c < COLS; c++)
        assert_true(sums[c] == 0.0f);
    free(a);
}

static void tables_are_whole(void **state)
{
    assert_non_null(ddp_layers_find("cpu"));
    assert_non_null(ddp_layers_find("cuda"));
    assert_null(ddp_layers_find("abacus"));
    for (const struct ddp_layers *const *l = ddp_layers_all(); *l; l++)
        assert_non_null((*l)->library());
}

static int load_blas(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    return ddp_blas_load(NULL, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_whole),
        cmocka_unit_test(sums_in_parts),
        cmocka_unit_test(nets_unfolded),
        cmocka_unit_test(nets_by_library),
    };
    return cmocka_run_group_tests(tests, load_blas, NULL);
}
