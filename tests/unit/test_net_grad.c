/* Compares the gradients of convolutions with stride and padding, of batch normalisation, and of
 * nets made of them with finite differences of naive code in double. */
#include <float.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "model/blas.h"
#include "model/layers.h"
#include "model/model.h"

#include "gradient_check.h"
#include "naive_layers.h"

struct conv_case {
    struct naive_conv2 s;
    int n;
    struct both x, w, b, weight; /* weight: the weight of each output in the loss */
};

static double weighted(const struct both *weight, const double *y)
{
    double loss = 0;
    for (int i = 0; i < weight->n; i++)
        loss += weight->d[i] * y[i];
    return loss;
}

static double conv_loss(void *arg)
{
    struct conv_case *c = arg;
    double *y = malloc(sizeof *y * (size_t)c->weight.n);
    naive_conv2(&c->s, c->n, c->x.d, c->w.d, c->b.d, y);
    double loss = weighted(&c->weight, y);
    free(y);
    return loss;
}

/* Converts [n][c][hw] to [c][n][hw]. With n and c exchanged it converts back. */
static void reorder(int n, int c, int hw, const float *from, float *to)
{
    for (int i = 0; i < n; i++)
        for (int ch = 0; ch < c; ch++)
            memcpy(to + (size_t)((ch * n + i) * hw), from + (size_t)((i * c + ch) * hw),
                   sizeof *to * (size_t)hw);
}

static void check_conv(struct naive_conv2 s, int n, int chunk, enum ddp_simd level)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, 21, (uint64_t)(s.side * 1000 + s.k * 100 + s.stride * 10 + s.pad));
    int o = naive_out_side(&s), taps = s.in_c * s.k * s.k, pixels = s.side * s.side;
    struct conv_case c = {.s = s,
                          .n = n,
                          .x = random_both(&rng, n * s.in_c * pixels, 1.0),
                          .w = random_both(&rng, s.out_c * taps, 0.3),
                          .b = random_both(&rng, s.out_c, 0.1),
                          .weight = random_both(&rng, n * s.out_c * o * o, 1.0)};
    struct ddp_conv layer = {.shape = {s.in_c, s.side, s.side, s.out_c, s.k, s.stride, s.pad},
                             .chunk = chunk,
                             .kernels = ddp_nn_kernels(level)};
    struct ddp_view xv = {(size_t)pixels, (size_t)(pixels * s.in_c)};
    float *y = malloc(sizeof *y * (size_t)c.weight.n),
          *dy = malloc(sizeof *dy * (size_t)c.weight.n);
    float *dx = malloc(sizeof *dx * (size_t)c.x.n), *dw = malloc(sizeof *dw * (size_t)c.w.n);
    float *db = malloc(sizeof *db * (size_t)c.b.n);
    float *scratch = malloc(sizeof *scratch * ddp_layers_cpu.ops->conv_scratch(&layer, n));
    assert_int_equal(ddp_conv_out_h(&layer.shape), o);
    reorder(n, s.out_c, o * o, c.weight.f, dy);
    ddp_layers_cpu.ops->conv_forward(&layer, n, c.x.f, xv, c.w.f, c.b.f, y, scratch);
    ddp_layers_cpu.ops->conv_backward(&layer, n, c.x.f, xv, c.w.f, dy, dw, db, dx, xv, scratch);
    double loss = 0, want = conv_loss(&c);
    for (int i = 0; i < c.weight.n; i++)
        loss += (double)y[i] * (double)dy[i];
    assert_true(fabs(loss - want) < 1e-4 * (1 + fabs(want)));
    compare("conv weights", dw, &c.w, 1, conv_loss, &c);
    compare("conv bias", db, &c.b, 1, conv_loss, &c);
    compare("conv input", dx, &c.x, 3, conv_loss, &c);
    free(y), free(dy), free(dx), free(dw), free(db), free(scratch);
    release(&c.x), release(&c.w), release(&c.b), release(&c.weight);
}

/* Strides that divide the image and strides that do not, padding larger than the kernel, images
 * smaller than the kernel. */
static void convolution(void **state)
{
    static const struct naive_conv2 shapes[] = {
        {3, 32, 2, 7, 4, 3}, {2, 8, 3, 3, 2, 1}, {2, 5, 3, 3, 1, 1}, {2, 1, 3, 3, 1, 1},
        {1, 7, 2, 2, 3, 0},  {1, 3, 1, 5, 1, 4}, {2, 6, 2, 1, 2, 0}, {1, 4, 2, 3, 5, 2},
    };
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++)
        for (size_t i = 0; i < DDP_COUNT_OF(shapes); i++)
            check_conv(shapes[i], shapes[i].side > 20 ? 2 : 5, 2, (enum ddp_simd)level);
}

struct norm_case {
    int n, channels, pixels, relu;
    struct both x, gamma, beta, weight; /* [n][channels][pixels] */
};

static double norm_loss(void *arg)
{
    struct norm_case *c = arg;
    double *y = malloc(sizeof *y * (size_t)c->x.n);
    naive_norm(c->n, c->channels, c->pixels, c->relu, c->x.d, c->gamma.d, c->beta.d, y);
    double loss = weighted(&c->weight, y);
    free(y);
    return loss;
}

static void check_norm(int n, int channels, int pixels, int relu, enum ddp_simd level)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, 22, (uint64_t)(n * 100 + pixels * 10 + relu));
    struct norm_case c = {n,
                          channels,
                          pixels,
                          relu,
                          .x = random_both(&rng, n * channels * pixels, 1.5),
                          .gamma = random_both(&rng, channels, 1.0),
                          .beta = random_both(&rng, channels, 0.5),
                          .weight = random_both(&rng, n * channels * pixels, 1.0)};
    struct ddp_batch_norm layer = {
        .channels = channels, .relu = relu, .kernels = ddp_nn_kernels(level)};
    size_t total = (size_t)c.x.n, count = (size_t)(n * pixels), wide = (size_t)channels;
    float *x = malloc(sizeof *x * total), *y = malloc(sizeof *y * total);
    float *dy = malloc(sizeof *dy * total), *dx = malloc(sizeof *dx * total);
    float *grad = malloc(sizeof *grad * total), *dgamma = malloc(sizeof *dgamma * wide);
    float *dbeta = malloc(sizeof *dbeta * wide), *running = malloc(sizeof *running * wide * 2);
    float *saved = malloc(sizeof *saved * wide * DDP_BATCH_NORM_SAVED);
    for (size_t i = 0; i < wide; i++) {
        running[i] = 3.0f;
        running[wide + i] = 5.0f;
    }
    reorder(n, channels, pixels, c.x.f, x);
    reorder(n, channels, pixels, c.weight.f, dy);
    ddp_layers_cpu.ops->batch_norm_forward(&layer, count, x, c.gamma.f, c.beta.f, running, saved,
                                           y);
    double mean = 0, var = 0;
    for (size_t i = 0; i < count; i++)
        mean += (double)x[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        var += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)count;
    assert_true(fabs((double)running[0] - (0.9 * 3 + 0.1 * mean)) < 1e-5);
    assert_true(fabs((double)running[wide] - (0.9 * 5 + 0.1 * var)) < 1e-5);
    ddp_layers_cpu.ops->batch_norm_backward(&layer, count, x, y, dy, saved, dgamma, dbeta, dx);
    reorder(channels, n, pixels, dx, grad);
    compare("norm gamma", dgamma, &c.gamma, 1, norm_loss, &c);
    compare("norm beta", dbeta, &c.beta, 1, norm_loss, &c);
    compare("norm input", grad, &c.x, 1, norm_loss, &c);
    /* Normalisation by the running statistics is an affine map. */
    ddp_layers_cpu.ops->batch_norm_evaluate(&layer, count, x, c.gamma.f, c.beta.f, running, saved,
                                            y);
    double want = (double)c.gamma.f[0] * ((double)x[0] - (double)running[0]) /
                      sqrt((double)running[wide] + 1e-5) +
                  (double)c.beta.f[0];
    assert_true(fabs((double)y[0] - (relu && want < 0 ? 0 : want)) < 1e-5);
    free(x), free(y), free(dy), free(dx), free(grad), free(dgamma), free(dbeta), free(running);
    free(saved);
    release(&c.x), release(&c.gamma), release(&c.beta), release(&c.weight);
}

static void normalisation(void **state)
{
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++)
        for (int relu = 0; relu < 2; relu++) {
            check_norm(6, 3, 1, relu, (enum ddp_simd)level);
            check_norm(5, 4, 9, relu, (enum ddp_simd)level);
            check_norm(3, 2, 16, relu, (enum ddp_simd)level);
        }
}

/* With one value per channel the variance is 0, and only beta has a gradient. */
static void normalisation_of_one_value(void **state)
{
    struct ddp_batch_norm layer = {.channels = 2, .kernels = ddp_nn_kernels(ddp_nn_simd())};
    const float x[] = {3.0f, -1.0f}, gamma[] = {2.0f, 2.0f}, beta[] = {0.5f, 0.25f};
    float y[2], dy[] = {1.0f, 2.0f}, dx[2], dgamma[2], dbeta[2], running[4] = {0, 0, 1, 1};
    float saved[2 * DDP_BATCH_NORM_SAVED];
    ddp_layers_cpu.ops->batch_norm_forward(&layer, 1, x, gamma, beta, running, saved, y);
    assert_true(y[0] == 0.5f && y[1] == 0.25f);
    ddp_layers_cpu.ops->batch_norm_backward(&layer, 1, x, y, dy, saved, dgamma, dbeta, dx);
    assert_true(dx[0] == 0.0f && dx[1] == 0.0f && dgamma[0] == 0.0f);
    assert_true(dbeta[0] == 1.0f && dbeta[1] == 2.0f);
}

struct net_case {
    int n;
    struct both x, p;
    const uint8_t *labels;
    double (*net)(int n, const double *x, const double *p, const uint8_t *labels);
};

static double net_loss(void *arg)
{
    struct net_case *c = arg;
    return c->net(c->n, c->x.d, c->p.d, c->labels) / c->n;
}

/* A convolution's bias before a normalisation has no effect, so its gradient is rounding error. */
static int has_no_effect(const struct ddp_model_class *cls, int tensor)
{
    return strstr(cls->params[tensor].name, ".conv.bias") != NULL;
}

/* The gradient of a bias is the sum of terms that the layer's weights have in their gradient as
 * well. If the bias has no effect, the sum is 0 up to rounding, which depends on the order in which
 * the BLAS library adds: at most 16 roundings of the largest gradient of the weights. */
static void check_rounding_error(const float *grads, const struct ddp_param *weight,
                                 const struct ddp_param *bias)
{
    double largest = 0;
    for (size_t i = 0; i < weight->count; i++)
        largest = fmax(largest, fabs((double)grads[weight->offset + i]));
    for (size_t i = 0; i < bias->count; i++)
        assert_true(fabs((double)grads[bias->offset + i]) < 16 * (double)FLT_EPSILON * largest);
}

/* Compares about nine elements of each tensor's gradient (each tap of a 3x3 kernel once), and the
 * loss. */
static void check_net(const char *name, int n,
                      double (*net)(int, const double *, const double *, const uint8_t *))
{
    static const uint8_t labels[] = {1, 0, 1, 1, 0, 1, 0, 0};
    const struct ddp_model_class *cls = ddp_model_find(name);
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_model *m;
    struct ddp_rng rng;
    struct net_case c = {.n = n, .labels = labels, .net = net};
    double loss;
    int correct;
    ddp_rng_init(&rng, 24, 0);
    c.x = random_both(&rng, n * cls->channels * cls->height * cls->width, 0.5);
    c.p = random_both(&rng, (int)cls->parameter_count, 0.1);
    for (int t = 0; t < cls->param_count; t++)
        for (size_t i = 0; i < cls->params[t].count; i++) {
            size_t at = cls->params[t].offset + i;
            double scale = cls->params[t].fan_in ? 10 * sqrt(2.0 / cls->params[t].fan_in) : 1;
            c.p.f[at] = (float)((double)c.p.f[at] * scale + (double)cls->params[t].fill);
            c.p.d[at] = (double)c.p.f[at];
        }
    float *grads = malloc(sizeof *grads * cls->parameter_count);
    assert_int_equal(cls->create(cls, NULL, n, c.p.f, grads, &m, &err), 0);
    cls->step(m, c.x.f, labels, n, 1.0f / (float)n, &loss, &correct, NULL, NULL);
    assert_true(fabs(loss / n - net_loss(&c)) < 1e-5 * net_loss(&c));
    for (int t = 0; t < cls->param_count; t++) {
        const struct ddp_param *p = &cls->params[t];
        struct both part = {(int)p->count, c.p.f + p->offset, c.p.d + p->offset};
        if (has_no_effect(cls, t))
            check_rounding_error(grads, &cls->params[t - 1], p);
        else
            compare(p->name, grads + p->offset, &part, (int)p->count / 81 * 9 + 1, net_loss, &c);
    }
    cls->destroy(m);
    free(grads);
    release(&c.x), release(&c.p);
}

static void lenet(void **state)
{
    check_net("lenet", 3, naive_lenet);
}

static void resnet9(void **state)
{
    check_net("resnet9", 4, naive_resnet9);
}

static void nnabla_tiny(void **state)
{
    check_net("nnabla-tiny", 4, naive_nnabla_tiny);
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
        cmocka_unit_test(normalisation),
        cmocka_unit_test(normalisation_of_one_value),
        cmocka_unit_test(lenet),
        cmocka_unit_test(resnet9),
        cmocka_unit_test(nnabla_tiny),
    };
    return cmocka_run_group_tests(tests, load_blas, NULL);
}
