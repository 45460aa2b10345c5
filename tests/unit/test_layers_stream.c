/* The layers that run on streams (what device cuda is made of: unfolded products, the kernels of
 * nn_element.h, and convolutions of a library), on streams of the processor, against the layers of
 * the processor. */
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

enum { BATCH = 70, STEPS = 20 };

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

/* A library of convolutions: loops from the definition, and a count of what is not given back. */
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

/* Calls visit for each product of a weight and a pixel: y[at_y] with x[at_x] and w[at_w]. */
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
    DDP_LAYERS_STREAM_FUNCTIONS,
};
static const struct ddp_layers by_library = {
    .device = "cpu",
    .library = no_library,
    .open = library_open,
    .close = ddp_layers_stream_close,
    DDP_LAYERS_STREAM_FUNCTIONS,
};

/* A model with its parameters and gradients. */
struct net {
    const struct ddp_model_class *cls;
    struct ddp_model *m;
    float *params, *grads;
    struct ddp_stream *stream;
};

static struct net make_net(const char *name, const struct ddp_layers *layers)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct net n = {.cls = ddp_model_find(name)};
    const struct ddp_device *cpu = ddp_device_cpu(ddp_cpu_best_simd());
    n.params = calloc(n.cls->parameter_count, sizeof *n.params);
    n.grads = calloc(n.cls->parameter_count, sizeof *n.grads);
    ddp_model_init_params(n.cls, DDP_INIT_HE, 7, n.params);
    assert_int_equal(cpu->streams->create(&n.stream, &err), 0);
    const struct ddp_model_place place = {.device = cpu, .stream = n.stream, .layers = layers};
    if (n.cls->create(n.cls, layers ? &place : NULL, BATCH, n.params, n.grads, &n.m, &err) != 0)
        fail_msg("%s", err.text);
    return n;
}

static void free_net(struct net *n)
{
    n->cls->destroy(n->m);
    ddp_device_cpu(ddp_cpu_best_simd())->streams->destroy(n->stream);
    free(n->params);
    free(n->grads);
}

/* ||a - b|| / ||b|| */
static double distance(const float *a, const float *b, size_t n)
{
    double off = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        off += (a[i] - b[i]) * (double)(a[i] - b[i]);
        all += b[i] * (double)b[i];
    }
    return sqrt(off / (all > 0 ? all : 1));
}

static void compare_gradients(const struct net *a, const struct net *b, double most)
{
    for (int p = 0; p < a->cls->param_count; p++) {
        const struct ddp_param *param = &a->cls->params[p];
        double off = distance(a->grads + param->offset, b->grads + param->offset, param->count);
        /* A bias before a normalisation has a gradient of rounding errors alone. */
        double norm = 0;
        for (size_t i = 0; i < param->count; i++)
            norm = fmax(norm, fabs((double)b->grads[param->offset + i]));
        if (norm > 1e-5 && off > most)
            fail_msg("%s %s: gradients are %g apart", a->cls->name, param->name, off);
    }
}

/* Batches of all sizes, an empty one and full ones, then training: gradients, losses, hits and
 * evaluations agree. */
static void check_net(const char *name, const struct ddp_layers *layers, int most, int steps)
{
    struct net a = make_net(name, layers), b = make_net(name, NULL);
    const size_t pixels = (size_t)(a.cls->channels * a.cls->height * a.cls->width);
    float *x = malloc(BATCH * pixels * sizeof *x);
    uint8_t labels[BATCH];
    struct ddp_rng rng;
    double loss_a, loss_b;
    int hits_a, hits_b;
    ddp_rng_init(&rng, 5, 0);
    const int sizes[] = {most, 1, 0, most / 2};
    for (int s = 0; s < (int)DDP_COUNT_OF(sizes) + steps; s++) {
        const int n = s < (int)DDP_COUNT_OF(sizes) ? sizes[s] : most;
        for (size_t i = 0; i < (size_t)n * pixels; i++)
            x[i] = (float)ddp_rng_double(&rng);
        for (int i = 0; i < n; i++)
            labels[i] = (uint8_t)(ddp_rng_double(&rng) * a.cls->classes);
        const float scale = n > 0 ? 1.0f / (float)n : 1.0f;
        memset(a.grads, 0x55, a.cls->parameter_count * sizeof *a.grads);
        a.cls->step(a.m, x, labels, n, scale, &loss_a, &hits_a, NULL, NULL);
        b.cls->step(b.m, x, labels, n, scale, &loss_b, &hits_b, NULL, NULL);
        assert_true(fabs(loss_a - loss_b) <= 2e-4 * fabs(loss_b));
        assert_true(abs(hits_a - hits_b) <= 1);
        /* Rounding grows with the steps between. */
        compare_gradients(&a, &b, s < (int)DDP_COUNT_OF(sizes) ? 2e-3 : 0.1);
        a.cls->evaluate(a.m, x, labels, n, &loss_a, &hits_a);
        b.cls->evaluate(b.m, x, labels, n, &loss_b, &hits_b);
        assert_true(fabs(loss_a - loss_b) <= 1e-3 * fabs(loss_b));
        for (size_t i = 0; s >= (int)DDP_COUNT_OF(sizes) && i < a.cls->parameter_count; i++) {
            a.params[i] -= 0.01f * a.grads[i];
            b.params[i] -= 0.01f * b.grads[i];
        }
    }
    assert_true(distance(a.params, b.params, a.cls->parameter_count) < 1e-4);
    assert_true(distance(a.cls->state(a.m), b.cls->state(b.m), a.cls->state_count) < 1e-4);
    free(x);
    free_net(&a);
    free_net(&b);
}

/* By the hundred images in one piece, and in pieces of three. */
static void nets_unfolded(void **state)
{
    struct ddp_layers pieces = unfolded;
    pieces.chunk_floats = 3 * 500 * 64; /* singa-cnn's second convolution */
    check_net("singa-cnn", &unfolded, BATCH, STEPS);
    check_net("singa-cnn", &pieces, 10, 2);
    check_net("lenet", &unfolded, 32, STEPS);
    check_net("resnet9", &unfolded, 16, 5);
    check_net("resnet9", &pieces, 16, 1);
    check_net("nnabla-tiny", &unfolded, 32, STEPS);
}

static void nets_by_library(void **state)
{
    check_net("singa-cnn", &by_library, 4, 1);
    check_net("lenet", &by_library, 8, 3);
    check_net("resnet9", &by_library, 3, 1);
    check_net("nnabla-tiny", &by_library, 16, 5);
}

/* A sum's parts: more terms than one block takes, and none. */
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
