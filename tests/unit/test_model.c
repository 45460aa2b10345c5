/* Models: layout, initial weights, and what the step promises apart from its numbers: the order of
 * gradients, any batch size, the same bits at every repetition and SIMD level, and the state of
 * batch normalisation. test_model_grad, test_net_grad and test_reference test the numbers. */
#include <stdarg.h>
#include <setjmp.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cpuinfo.h"
#include "base/rng.h"
#include "model/blas.h"
#include "model/model.h"
#include "model/nn_kernels.h"

#define BATCH 19 /* a prime that is not a multiple of any chunk */

struct fixture {
    const struct ddp_model_class *cls;
    float *params, *grads, *x;
    uint8_t labels[BATCH];
};

static void fixture_init(struct fixture *f, const struct ddp_model_class *cls)
{
    struct ddp_rng rng;
    size_t n = cls->parameter_count, pixels = (size_t)(cls->channels * cls->height * cls->width);
    f->cls = cls;
    f->params = malloc(sizeof(float) * n);
    f->grads = malloc(sizeof(float) * n);
    f->x = malloc(sizeof(float) * BATCH * pixels);
    ddp_model_init_params(f->cls, DDP_INIT_HE, 1, f->params);
    ddp_rng_init(&rng, 3, 0);
    for (size_t i = 0; i < BATCH * pixels; i++)
        f->x[i] = (float)ddp_rng_double(&rng);
    for (int i = 0; i < BATCH; i++)
        f->labels[i] = (uint8_t)ddp_rng_below(&rng, (uint64_t)cls->classes);
}

static void fixture_release(struct fixture *f)
{
    free(f->params);
    free(f->grads);
    free(f->x);
}

static void layouts_have_no_gaps(void **state)
{
    for (int i = 0; ddp_models()[i]; i++) {
        const struct ddp_model_class *cls = ddp_models()[i];
        size_t at = 0;
        for (int p = 0; p < cls->param_count; p++) {
            assert_int_equal(cls->params[p].offset, at);
            at += cls->params[p].count;
        }
        assert_int_equal(at, cls->parameter_count);
        assert_true(cls->scratch_bytes(cls, 3) > 0);
        assert_true((cls->defaults.batch == 0) != (cls->defaults.global_batch == 0));
        assert_true(cls->defaults.lr > 0);
    }
    assert_null(ddp_model_find("no-such-model"));
}

static void sizes_are_the_published_ones(void **state)
{
    assert_int_equal(ddp_model_find("singa-cnn")->parameter_count, 431080);
    assert_int_equal(ddp_model_find("lenet")->parameter_count, 60170);
    assert_int_equal(ddp_model_find("resnet9")->parameter_count, 431946);
    assert_int_equal(ddp_model_find("nnabla-tiny")->parameter_count, 2060);
    const struct ddp_model_class *cls = ddp_model_find("singa-cnn");
    assert_true(fabs(cls->flops_per_image(cls) - 13.2e6) < 0.1e6);
    /* The affine layer needs three products of its weights, the first convolution two. */
    cls = ddp_model_find("nnabla-tiny");
    assert_true(cls->flops_per_image(cls) == 2.0 * (2 * 9 * 1024 + 3 * 2048));
}

static void first_weights_follow_the_rule(void **state)
{
    for (int m = 0; ddp_models()[m]; m++) {
        struct fixture f;
        fixture_init(&f, ddp_models()[m]);
        for (int init = DDP_INIT_HE; init <= DDP_INIT_GLOROT; init++) {
            ddp_model_init_params(f.cls, (enum ddp_init)init, 42, f.params);
            for (int p = 0; p < f.cls->param_count; p++) {
                const struct ddp_param *t = &f.cls->params[p];
                double fan = init == DDP_INIT_HE ? t->fan_in : t->fan_in + t->fan_out;
                double bound = t->fan_in ? sqrt(6.0 / fan) : 0.0, sum2 = 0.0;
                for (size_t i = 0; i < t->count; i++) {
                    double w = (double)f.params[t->offset + i];
                    assert_true(t->fan_in ? fabs(w) <= bound : w == (double)t->fill);
                    sum2 += w * w;
                }
                /* Variance of a uniform distribution: bound^2 / 3. */
                if (t->count > 100 && t->fan_in)
                    assert_true(fabs(sum2 / (double)t->count - bound * bound / 3) <=
                                0.1 * bound * bound);
            }
        }
        ddp_model_init_params(f.cls, DDP_INIT_GLOROT, 43, f.grads);
        assert_memory_not_equal(f.params, f.grads, 4000);
        fixture_release(&f);
    }
}

static void note_ready(void *arg, int param)
{
    int *order = arg;
    order[++order[0]] = param;
}

static void gradients_come_last_layer_first(void **state)
{
    for (int i = 0; ddp_models()[i]; i++) {
        struct fixture f;
        struct ddp_model *m;
        struct ddp_err err = DDP_ERR_INIT;
        int order[64] = {0}, correct;
        double loss;
        fixture_init(&f, ddp_models()[i]);
        assert_int_equal(f.cls->create(f.cls, NULL, BATCH, f.params, f.grads, &m, &err), 0);
        f.cls->step(m, f.x, f.labels, BATCH, 1.0f, &loss, &correct, note_ready, order);
        assert_int_equal(order[0], f.cls->param_count);
        for (int p = 0; p < f.cls->param_count; p++)
            assert_int_equal(order[p + 1], f.cls->param_count - 1 - p);
        /* Without images the loss is 0, the gradients are written, and the state is unchanged. */
        size_t bytes = f.cls->state_count * sizeof(float);
        float *remembered = malloc(bytes + 1);
        memcpy(remembered, f.cls->state(m), bytes);
        f.cls->step(m, f.x, f.labels, 0, 1.0f, &loss, &correct, NULL, NULL);
        assert_true(loss == 0.0 && correct == 0);
        for (size_t p = 0; p < f.cls->parameter_count; p++)
            assert_true(f.grads[p] == 0.0f);
        assert_int_equal(memcmp(remembered, f.cls->state(m), bytes), 0);
        free(remembered);
        f.cls->destroy(m);
        f.cls->destroy(NULL);
        fixture_release(&f);
    }
}

/* The results of one SIMD level. */
struct outcome {
    double loss, eval_loss;
    float *grads, *state;
};

static void run_level(struct fixture *f, int level, struct outcome *out)
{
    struct ddp_model *m;
    struct ddp_err err = DDP_ERR_INIT;
    int correct, eval_correct;
    size_t bytes = f->cls->parameter_count * sizeof(float);
    setenv("DDPBENCH_SIMD", ddp_simd_name((enum ddp_simd)level), 1);
    assert_int_equal(f->cls->create(f->cls, NULL, BATCH + level, f->params, f->grads, &m, &err), 0);
    unsetenv("DDPBENCH_SIMD");
    f->cls->step(m, f->x, f->labels, 7, 1.0f, &out->loss, &correct, NULL, NULL);
    f->cls->step(m, f->x, f->labels, BATCH, 0.1f, &out->loss, &correct, NULL, NULL);
    f->cls->evaluate(m, f->x, f->labels, BATCH, &out->eval_loss, &eval_correct);
    if (f->cls->state_count == 0)
        assert_true(out->loss == out->eval_loss && correct == eval_correct);
    out->grads = malloc(bytes);
    out->state = malloc(f->cls->state_count * sizeof(float) + 1);
    memcpy(out->grads, f->grads, bytes);
    memcpy(out->state, f->cls->state(m), f->cls->state_count * sizeof(float));
    f->cls->destroy(m);
}

/* A gradient depends only on images and parameters. It does not depend on the batch that the model
 * was created for, on earlier calls or on the SIMD level. */
static void same_bits_everywhere(void **state)
{
    for (int i = 0; ddp_models()[i]; i++) {
        struct fixture f;
        struct outcome first;
        fixture_init(&f, ddp_models()[i]);
        run_level(&f, 0, &first);
        for (int level = 1; level <= (int)ddp_cpu_best_simd(); level++) {
            struct outcome other;
            run_level(&f, level, &other);
            assert_true(first.loss == other.loss && first.eval_loss == other.eval_loss);
            assert_memory_equal(first.grads, other.grads, f.cls->parameter_count * sizeof(float));
            if (f.cls->state_count > 0)
                assert_memory_equal(first.state, other.state, f.cls->state_count * sizeof(float));
            free(other.grads), free(other.state);
        }
        free(first.grads), free(first.state);
        fixture_release(&f);
    }
}

/* Evaluation uses the state and not the batch, so an image has the same loss alone. After many
 * steps on one batch the state is that of the batch, and both losses agree. */
static void evaluation_uses_what_is_remembered(void **state)
{
    struct fixture f;
    struct ddp_model *m;
    struct ddp_err err = DDP_ERR_INIT;
    double loss, eval_loss, sum = 0.0, one;
    int correct;
    fixture_init(&f, ddp_model_find("resnet9"));
    size_t pixels = (size_t)(f.cls->channels * f.cls->height * f.cls->width);
    assert_int_equal(f.cls->create(f.cls, NULL, BATCH, f.params, f.grads, &m, &err), 0);
    assert_true(f.cls->state(m)[0] == 0.0f && f.cls->state(m)[16] == 1.0f);
    f.cls->step(m, f.x, f.labels, BATCH, 1.0f, &loss, &correct, NULL, NULL);
    f.cls->evaluate(m, f.x, f.labels, BATCH, &eval_loss, &correct);
    assert_true(fabs(loss - eval_loss) > 0.01 * loss);
    for (int s = 0; s < 150; s++)
        f.cls->step(m, f.x, f.labels, BATCH, 1.0f, &loss, &correct, NULL, NULL);
    f.cls->evaluate(m, f.x, f.labels, BATCH, &eval_loss, &correct);
    assert_true(fabs(loss - eval_loss) < 1e-4 * loss);
    for (int i = 0; i < BATCH; i++) {
        f.cls->evaluate(m, f.x + (size_t)i * pixels, f.labels + i, 1, &one, &correct);
        sum += one;
    }
    assert_true(fabs(sum - eval_loss) < 1e-5 * eval_loss);
    f.cls->destroy(m);
    fixture_release(&f);
}

static int load_blas(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    return ddp_blas_load(NULL, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_have_no_gaps),
        cmocka_unit_test(sizes_are_the_published_ones),
        cmocka_unit_test(first_weights_follow_the_rule),
        cmocka_unit_test(gradients_come_last_layer_first),
        cmocka_unit_test(same_bits_everywhere),
        cmocka_unit_test(evaluation_uses_what_is_remembered),
    };
    return cmocka_run_group_tests(tests, load_blas, NULL);
}
