/* Compares the gradients of the layers, in f32, with central finite differences of an independent
 * implementation in double: within 1e-4 of the largest gradient for every layer. Then tests the
 * whole network. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "gradient_check.h"
#include "model/blas.h"
#include "model/layers.h"
#include "model/model.h"
#include "naive_net.h"

struct conv_case {
    struct naive_conv s;
    int n;
    struct both x, w, b, weight; /* weight: the weight of each output in the loss */
};

static double conv_loss(void *arg)
{
    struct conv_case *c = arg;
    double loss = 0, *out = malloc(sizeof *out * (size_t)c->weight.n);
    naive_conv_pool(&c->s, c->n, c->x.d, c->w.d, c->b.d, out);
    for (int i = 0; i < c->weight.n; i++)
        loss += c->weight.d[i] * out[i];
    free(out);
    return loss;
}

/* Converts [n][c][hw] to [c][n][hw] (to_cnhw), or back. */
static void reorder(int n, int c, int hw, const float *from, float *to, int to_cnhw)
{
    for (int i = 0; i < n; i++)
        for (int ch = 0; ch < c; ch++) {
            size_t nchw = (size_t)(i * c + ch) * (size_t)hw;
            size_t cnhw = (size_t)(ch * n + i) * (size_t)hw;
            memcpy(to + (to_cnhw ? cnhw : nchw), from + (to_cnhw ? nchw : cnhw),
                   sizeof *to * (size_t)hw);
        }
}

/* Tests one shape, with input and output in NCHW or CNHW, in chunks that do not divide the batch.
 */
static void check_conv(struct naive_conv s, int n, int chunk, int cnhw, enum ddp_simd level)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, 11, (uint64_t)(s.in_c * 100 + s.k));
    int oh = s.in_h - s.k + 1, ow = s.in_w - s.k + 1;
    int in_hw = s.in_h * s.in_w, out_hw = oh * ow / 4, taps = s.in_c * s.k * s.k;
    struct conv_case c = {.s = s,
                          .n = n,
                          .x = random_both(&rng, n * s.in_c * in_hw, 1.0),
                          .w = random_both(&rng, s.out_c * taps, 0.3),
                          .b = random_both(&rng, s.out_c, 0.1),
                          .weight = random_both(&rng, n * s.out_c * out_hw, 1.0)};
    struct ddp_conv layer = {.shape = {s.in_c, s.in_h, s.in_w, s.out_c, s.k, 1, 0},
                             .chunk = chunk,
                             .kernels = ddp_nn_kernels(level)};
    size_t hw = (size_t)in_hw, ohw = (size_t)out_hw, batch = (size_t)n;
    struct ddp_view xv =
        cnhw ? (struct ddp_view){batch * hw, hw} : (struct ddp_view){hw, hw * (size_t)s.in_c};
    struct ddp_view ov =
        cnhw ? (struct ddp_view){batch * ohw, ohw} : (struct ddp_view){ohw, ohw * (size_t)s.out_c};
    float *x = malloc(sizeof *x * (size_t)c.x.n), *dx = malloc(sizeof *dx * (size_t)c.x.n);
    float *out = malloc(sizeof *out * (size_t)c.weight.n);
    float *dout = malloc(sizeof *dout * (size_t)c.weight.n);
    float *dw = malloc(sizeof *dw * (size_t)c.w.n), *db = malloc(sizeof *db * (size_t)c.b.n);
    float *grad = malloc(sizeof *grad * (size_t)c.x.n);
    float *scratch = malloc(sizeof *scratch * ddp_layers_cpu.ops->conv_pool_scratch(&layer, n));
    uint8_t *which = malloc((size_t)c.weight.n);
    if (cnhw) {
        reorder(n, s.in_c, in_hw, c.x.f, x, 1);
        reorder(n, s.out_c, out_hw, c.weight.f, dout, 1);
    } else {
        memcpy(x, c.x.f, sizeof *x * (size_t)c.x.n);
        memcpy(dout, c.weight.f, sizeof *dout * (size_t)c.weight.n);
    }
    ddp_layers_cpu.ops->conv_pool_forward(&layer, n, x, xv, c.w.f, c.b.f, out, ov, which, scratch);
    ddp_layers_cpu.ops->conv_pool_backward(&layer, n, x, xv, c.w.f, dout, ov, which, dw, db, dx, xv,
                                           scratch);
    double loss = 0, want = conv_loss(&c);
    for (int i = 0; i < c.weight.n; i++)
        loss += (double)out[i] * (double)dout[i];
    assert_true(fabs(loss - want) < 1e-4 * (1 + fabs(want)));
    if (cnhw)
        reorder(n, s.in_c, in_hw, dx, grad, 0);
    else
        memcpy(grad, dx, sizeof *grad * (size_t)c.x.n);
    compare("conv weights", dw, &c.w, 1, conv_loss, &c);
    compare("conv bias", db, &c.b, 1, conv_loss, &c);
    compare("conv input", grad, &c.x, 3, conv_loss, &c);
    free(x), free(dx), free(out), free(dout), free(dw), free(db), free(grad), free(scratch);
    free(which);
    release(&c.x), release(&c.w), release(&c.b), release(&c.weight);
}

static void convolution(void **state)
{
    const struct naive_conv small = {2, 8, 8, 3, 3}, wide = {1, 10, 28, 2, 5},
                            like_conv2 = {3, 12, 12, 4, 5};
    /* Rows of the backward pass: longer than the image's, and of two, seven and ten vectors. */
    const struct naive_conv narrow = {1, 6, 4, 2, 3}, two = {6, 6, 6, 2, 3},
                            seven = {20, 6, 6, 2, 5}, ten = {32, 6, 6, 2, 5};
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
        check_conv(small, 5, 2, 0, (enum ddp_simd)level);
        check_conv(wide, 2, 1, 1, (enum ddp_simd)level);
        check_conv(like_conv2, 3, 2, 1, (enum ddp_simd)level);
        check_conv(narrow, 3, 2, 0, (enum ddp_simd)level);
        check_conv(two, 2, 2, 1, (enum ddp_simd)level);
        check_conv(seven, 2, 1, 0, (enum ddp_simd)level);
        check_conv(ten, 1, 1, 1, (enum ddp_simd)level);
    }
}

enum {
    LEVELS_N = 3,
    LEVELS_WINDOWS = 16,
    LEVELS_OUT = 7,
    LEVELS_TAPS = 20 * 25,
    LEVELS_X = 20 * 144
};
struct pooled {
    float dw[LEVELS_OUT * LEVELS_TAPS], db[LEVELS_OUT], dx[LEVELS_N * LEVELS_X];
};

/* Gradients through a pool with maxima anywhere. With `cut` no window has a gradient. */
static void pooled_gradients(enum ddp_simd level, int n, int cut, struct pooled *to)
{
    const struct ddp_conv_shape s = {20, 12, 12, LEVELS_OUT, 5, 1, 0};
    const struct ddp_view xv = {144, LEVELS_X}, dv = {LEVELS_WINDOWS, LEVELS_WINDOWS * LEVELS_OUT};
    static float x[LEVELS_N * LEVELS_X], w[LEVELS_OUT * LEVELS_TAPS];
    static float dout[LEVELS_N * LEVELS_OUT * LEVELS_WINDOWS];
    uint8_t which[LEVELS_N * LEVELS_OUT * LEVELS_WINDOWS];
    float *scratch = malloc(sizeof *scratch * ddp_pool_grad_scratch(&s));
    struct ddp_rng rng;
    ddp_rng_init(&rng, 5, 0);
    assert_non_null(scratch);
    for (size_t i = 0; i < DDP_COUNT_OF(x); i++)
        x[i] = (float)ddp_rng_normal(&rng);
    for (size_t i = 0; i < DDP_COUNT_OF(w); i++)
        w[i] = (float)ddp_rng_normal(&rng);
    for (size_t i = 0; i < DDP_COUNT_OF(dout); i++) {
        dout[i] = (float)ddp_rng_normal(&rng);
        which[i] = cut ? DDP_POOL_NONE : (uint8_t)(ddp_rng_double(&rng) * (DDP_POOL_NONE + 1));
    }
    memset(to, 0x7f, sizeof *to);
    ddp_nn_kernels(level)->pool_grad(&s, n, 2, x, xv, w, dout, dv, which, to->dw, to->db, to->dx,
                                     xv, scratch);
    free(scratch);
}

static void pool_same_bits_at_each_level(void **state)
{
    static struct pooled plain, got;
    pooled_gradients(DDP_SIMD_SCALAR, LEVELS_N, 0, &plain);
    for (int level = 1; level <= (int)ddp_cpu_best_simd(); level++) {
        pooled_gradients((enum ddp_simd)level, LEVELS_N, 0, &got);
        assert_memory_equal(&got, &plain, sizeof got);
    }
}

static void pool_without_gradient(void **state)
{
    static struct pooled got;
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
        pooled_gradients((enum ddp_simd)level, LEVELS_N, 1, &got);
        for (size_t i = 0; i < sizeof got / sizeof(float); i++)
            assert_true(((const float *)&got)[i] == 0.0f);
        /* Without images the gradients of the parameters are still written. */
        pooled_gradients((enum ddp_simd)level, 0, 0, &got);
        for (size_t i = 0; i < DDP_COUNT_OF(got.dw); i++)
            assert_true(got.dw[i] == 0.0f);
        for (size_t i = 0; i < DDP_COUNT_OF(got.db); i++)
            assert_true(got.db[i] == 0.0f);
    }
}

struct linear_case {
    int n, in, out, relu;
    struct both x, w, b, weight;
};

static double linear_loss(void *arg)
{
    struct linear_case *c = arg;
    double loss = 0, *y = malloc(sizeof *y * (size_t)c->weight.n);
    naive_linear(c->n, c->in, c->out, c->relu, c->x.d, c->w.d, c->b.d, y);
    for (int i = 0; i < c->weight.n; i++)
        loss += c->weight.d[i] * y[i];
    free(y);
    return loss;
}

static void fully_connected(void **state)
{
    for (int relu = 0; relu < 2; relu++) {
        struct ddp_rng rng;
        ddp_rng_init(&rng, 12, (uint64_t)relu);
        struct linear_case c = {.n = 5, .in = 17, .out = 9, .relu = relu};
        c.x = random_both(&rng, c.n * c.in, 1.0);
        c.w = random_both(&rng, c.out * c.in, 0.3);
        c.b = random_both(&rng, c.out, 0.1);
        c.weight = random_both(&rng, c.n * c.out, 1.0);
        struct ddp_linear layer = {
            .in = c.in, .out = c.out, .relu = relu, .kernels = ddp_nn_kernels(ddp_nn_simd())};
        float y[5 * 9], dy[5 * 9], dw[17 * 9], db[9], dx[5 * 17];
        memcpy(dy, c.weight.f, sizeof dy);
        ddp_layers_cpu.ops->linear_forward(&layer, c.n, c.x.f, c.w.f, c.b.f, y);
        ddp_layers_cpu.ops->linear_backward(&layer, c.n, c.x.f, c.w.f, y, dy, dw, db, dx);
        compare("linear weights", dw, &c.w, 1, linear_loss, &c);
        compare("linear bias", db, &c.b, 1, linear_loss, &c);
        compare("linear input", dx, &c.x, 1, linear_loss, &c);
        release(&c.x), release(&c.w), release(&c.b), release(&c.weight);
    }
}

struct loss_case {
    struct both logits;
    const uint8_t *labels;
};

static double softmax_loss(void *arg)
{
    struct loss_case *c = arg;
    return 0.25 * naive_loss(4, 5, c->logits.d, c->labels);
}

static void softmax(void **state)
{
    static const uint8_t labels[] = {0, 4, 2, 2};
    struct ddp_rng rng;
    ddp_rng_init(&rng, 13, 0);
    struct loss_case c = {.logits = random_both(&rng, 20, 2.0), .labels = labels};
    float d[20];
    double loss;
    int correct;
    ddp_layers_cpu.ops->softmax_loss(NULL, 4, 5, c.logits.f, labels, 0.25f, &loss, &correct, d);
    assert_true(fabs(0.25 * loss - softmax_loss(&c)) < 1e-12);
    compare("softmax", d, &c.logits, 1, softmax_loss, &c);
    /* Logits that overflow exp() give a finite loss; among equal logits the first one counts. */
    const float far[] = {1000.0f, -1000.0f, 3.0f, 3.0f};
    const uint8_t at[] = {1, 0};
    ddp_layers_cpu.ops->softmax_loss(NULL, 2, 2, far, at, 1.0f, &loss, &correct, NULL);
    assert_true(fabs(loss - (2000.0 + log(2.0))) < 1e-9);
    assert_int_equal(correct, 1);
    release(&c.logits);
}

struct net_case {
    int n;
    struct both x, p;
    uint8_t labels[2];
};

static double net_loss(void *arg)
{
    struct net_case *c = arg;
    return naive_singa_cnn(c->n, c->x.d, c->p.d, c->labels) / c->n;
}

/* Compares some elements of each tensor's gradient, and the loss. */
static void singa_cnn(void **state)
{
    const struct ddp_model_class *cls = ddp_model_find("singa-cnn");
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_model *m;
    struct ddp_rng rng;
    struct net_case c = {.n = 2, .labels = {3, 7}};
    double loss;
    int correct;
    ddp_rng_init(&rng, 14, 0);
    c.x = random_both(&rng, c.n * 784, 0.5);
    c.p = random_both(&rng, (int)cls->parameter_count, 0.0);
    ddp_model_init_params(cls, DDP_INIT_HE, 1, c.p.f);
    for (int i = 0; i < c.p.n; i++)
        c.p.d[i] = c.p.f[i];
    float *grads = malloc(sizeof *grads * cls->parameter_count);
    assert_int_equal(cls->create(cls, NULL, c.n, c.p.f, grads, &m, &err), 0);
    cls->step(m, c.x.f, c.labels, c.n, 1.0f / (float)c.n, &loss, &correct, NULL, NULL);
    assert_true(fabs(loss / c.n - net_loss(&c)) < 1e-5 * net_loss(&c));
    for (int t = 0; t < cls->param_count; t++) {
        const struct ddp_param *p = &cls->params[t];
        struct both part = {(int)p->count, c.p.f + p->offset, c.p.d + p->offset};
        int samples = p->count > 1000 ? 12 : 8;
        compare(p->name, grads + p->offset, &part, (int)p->count / samples, net_loss, &c);
    }
    cls->destroy(m);
    free(grads);
    release(&c.x), release(&c.p);
}

static int load_blas(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    return ddp_blas_load(NULL, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolution),
        cmocka_unit_test(pool_same_bits_at_each_level),
        cmocka_unit_test(pool_without_gradient),
        cmocka_unit_test(fully_connected),
        cmocka_unit_test(softmax),
        cmocka_unit_test(singa_cnn),
    };
    return cmocka_run_group_tests(tests, load_blas, NULL);
}
