/* Models: layout, first weights, and what the step promises beyond its numbers (those are
 * test_model_grad's): order of gradients, any batch size, same bits again and at every SIMD level.
 */
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

#define BATCH 19 /* crosses chunks, divides by nothing */

struct fixture {
    const struct ddp_model_class *cls;
    float *params, *grads, *x;
    uint8_t labels[BATCH];
};

static void fixture_init(struct fixture *f)
{
    struct ddp_rng rng;
    f->cls = ddp_model_find("singa-cnn");
    size_t n = f->cls->parameter_count;
    f->params = malloc(sizeof(float) * n);
    f->grads = malloc(sizeof(float) * n);
    f->x = malloc(sizeof(float) * BATCH * 784);
    ddp_model_init_params(f->cls, DDP_INIT_HE, 1, f->params);
    ddp_rng_init(&rng, 3, 0);
    for (int i = 0; i < BATCH * 784; i++)
        f->x[i] = (float)ddp_rng_double(&rng);
    for (int i = 0; i < BATCH; i++)
        f->labels[i] = (uint8_t)ddp_rng_below(&rng, 10);
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
    }
    assert_int_equal(ddp_model_find("singa-cnn")->parameter_count, 431080);
    assert_true(fabs(ddp_model_find("singa-cnn")->flops_per_image - 13.2e6) < 0.1e6);
    assert_null(ddp_model_find("no-such-model"));
}

static void first_weights_follow_the_rule(void **state)
{
    struct fixture f;
    fixture_init(&f);
    for (int init = DDP_INIT_HE; init <= DDP_INIT_GLOROT; init++) {
        ddp_model_init_params(f.cls, (enum ddp_init)init, 42, f.params);
        for (int p = 0; p < f.cls->param_count; p++) {
            const struct ddp_param *t = &f.cls->params[p];
            double fan = init == DDP_INIT_HE ? t->fan_in : t->fan_in + t->fan_out;
            double bound = t->fan_in ? sqrt(6.0 / fan) : 0.0, sum2 = 0.0;
            for (size_t i = 0; i < t->count; i++) {
                assert_true(fabs((double)f.params[t->offset + i]) <= bound);
                sum2 += (double)f.params[t->offset + i] * (double)f.params[t->offset + i];
            }
            /* Variance of a uniform distribution: bound^2 / 3. */
            assert_true(fabs(sum2 / (double)t->count - bound * bound / 3) <= 0.1 * bound * bound);
        }
    }
    ddp_model_init_params(f.cls, DDP_INIT_GLOROT, 43, f.grads);
    assert_memory_not_equal(f.params, f.grads, 4000);
    fixture_release(&f);
}

static void note_ready(void *arg, int param)
{
    int *order = arg;
    order[++order[0]] = param;
}

static void gradients_come_last_layer_first(void **state)
{
    struct fixture f;
    struct ddp_model *m;
    struct ddp_err err = DDP_ERR_INIT;
    int order[32] = {0}, correct;
    double loss;
    fixture_init(&f);
    assert_int_equal(f.cls->create(BATCH, f.params, f.grads, &m, &err), 0);
    f.cls->step(m, f.x, f.labels, BATCH, 1.0f, &loss, &correct, note_ready, order);
    assert_int_equal(order[0], f.cls->param_count);
    for (int i = 0; i < f.cls->param_count; i++)
        assert_int_equal(order[i + 1], f.cls->param_count - 1 - i);
    /* No images: no loss, and gradients are written all the same. */
    f.cls->step(m, f.x, f.labels, 0, 1.0f, &loss, &correct, NULL, NULL);
    assert_true(loss == 0.0 && correct == 0);
    for (size_t i = 0; i < f.cls->parameter_count; i++)
        assert_true(f.grads[i] == 0.0f);
    f.cls->destroy(m);
    f.cls->destroy(NULL);
    fixture_release(&f);
}

/* Of what does a gradient depend? On images and parameters; not on the batch that the model was
 * made for, on what ran before, or on the SIMD level. */
static void same_bits_everywhere(void **state)
{
    struct fixture f;
    struct ddp_err err = DDP_ERR_INIT;
    fixture_init(&f);
    size_t bytes = sizeof(float) * f.cls->parameter_count;
    float *first = malloc(bytes);
    double first_loss = 0.0;
    for (int level = (int)ddp_cpu_best_simd(); level >= 0; level--) {
        struct ddp_model *m;
        double loss, eval_loss;
        int correct, eval_correct;
        setenv("DDPBENCH_SIMD", ddp_simd_name((enum ddp_simd)level), 1);
        assert_int_equal(f.cls->create(BATCH + level, f.params, f.grads, &m, &err), 0);
        unsetenv("DDPBENCH_SIMD");
        f.cls->step(m, f.x, f.labels, 7, 1.0f, &loss, &correct, NULL, NULL);
        f.cls->step(m, f.x, f.labels, BATCH, 0.1f, &loss, &correct, NULL, NULL);
        f.cls->evaluate(m, f.x, f.labels, BATCH, &eval_loss, &eval_correct);
        assert_true(loss == eval_loss && correct == eval_correct);
        if (level == (int)ddp_cpu_best_simd()) {
            memcpy(first, f.grads, bytes);
            first_loss = loss;
        }
        assert_memory_equal(first, f.grads, bytes);
        assert_true(loss == first_loss);
        f.cls->destroy(m);
    }
    free(first);
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
        cmocka_unit_test(first_weights_follow_the_rule),
        cmocka_unit_test(gradients_come_last_layer_first),
        cmocka_unit_test(same_bits_everywhere),
    };
    return cmocka_run_group_tests(tests, load_blas, NULL);
}
