/* Compares 20 training steps of every net, with its optimizer, with an independent reference in
 * numpy and double (tests/model/reference.py), whose results are in
 * tests/model/reference_values.h. Both use the same generator, so images, labels and initial
 * parameters are the same. */
#include <stdarg.h>
#include <setjmp.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "model/blas.h"
#include "model/model.h"
#include "train/optim.h"

#include "model/reference_values.h"

/* f32 against double: rounding errors grow over 20 steps. A wrong epsilon, momentum or weight
 * decay is off by far more. */
#define LOSS_TOLERANCE  2e-4
#define MOVED_TOLERANCE 5e-3

struct lcg {
    uint64_t state;
};

static double draw(struct lcg *l)
{
    l->state = l->state * 6364136223846793005u + 1442695040888963407u;
    return (double)(l->state >> 40) / 16777216.0;
}

struct training {
    const struct ddp_model_class *cls;
    float *params, *start, *grads, *x;
    uint8_t labels[REF_BATCHES][REF_BATCH];
    size_t pixels;
    struct ddp_model *model;
    struct ddp_optim optim;
};

static void first_parameters(struct training *t, struct lcg *l)
{
    for (int i = 0; i < t->cls->param_count; i++) {
        const struct ddp_param *p = &t->cls->params[i];
        for (size_t j = 0; j < p->count; j++) {
            double u = draw(l), gamma = (double)p->fill;
            t->params[p->offset + j] = (float)(p->fan_in   ? sqrt(6.0 / p->fan_in) * (2 * u - 1)
                                               : gamma > 0 ? u + 0.5
                                                           : 0.2 * u - 0.1);
        }
    }
    memcpy(t->start, t->params, t->cls->parameter_count * sizeof(float));
}

static void training_init(struct training *t, const char *name)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct lcg l = {2024};
    const struct ddp_model_class *cls = t->cls = ddp_model_find(name);
    const struct ddp_model_defaults *d = &cls->defaults;
    t->pixels = (size_t)(cls->channels * cls->height * cls->width);
    t->params = malloc(cls->parameter_count * sizeof(float));
    t->start = malloc(cls->parameter_count * sizeof(float));
    t->grads = malloc(cls->parameter_count * sizeof(float));
    t->x = malloc(REF_BATCHES * REF_BATCH * t->pixels * sizeof(float));
    first_parameters(t, &l);
    for (int b = 0; b < REF_BATCHES; b++) {
        for (size_t i = 0; i < REF_BATCH * t->pixels; i++)
            t->x[(size_t)b * REF_BATCH * t->pixels + i] = (float)draw(&l);
        for (int i = 0; i < REF_BATCH; i++)
            t->labels[b][i] = (uint8_t)(draw(&l) * cls->classes);
    }
    assert_int_equal(cls->create(cls, NULL, REF_BATCH, t->params, t->grads, &t->model, &err), 0);
    t->optim = (struct ddp_optim){.kind = (enum ddp_optimizer)ddp_optimizer_find(d->optimizer),
                                  .lr = d->lr,
                                  .momentum = d->momentum,
                                  .weight_decay = d->weight_decay};
    assert_int_equal(ddp_optim_init(&t->optim, cls->parameter_count, &err), 0);
}

static void training_release(struct training *t)
{
    ddp_optim_release(&t->optim);
    t->cls->destroy(t->model);
    free(t->params), free(t->start), free(t->grads), free(t->x);
}

static int near(const char *what, int i, double got, double want, double tolerance)
{
    if (fabs(got - want) <= tolerance)
        return 1;
    print_error("%s %d: %.9g, reference %.9g\n", what, i, got, want);
    return 0;
}

/* Compares how far each tensor has moved and, by fixed signs, in which direction. */
static int moved_as(const struct training *t, const struct reference *want)
{
    int good = 1;
    for (int i = 0; i < t->cls->param_count; i++) {
        const struct ddp_param *p = &t->cls->params[i];
        double squares = 0, sum = 0;
        for (uint32_t j = 0; j < p->count; j++) {
            double d = (double)t->params[p->offset + j] - (double)t->start[p->offset + j];
            squares += d * d;
            sum += j * 2654435761u >> 16 & 1 ? -d : d;
        }
        double norm = want->moved[i][0];
        good &= near(p->name, 0, sqrt(squares), norm, MOVED_TOLERANCE * norm);
        good &= near(p->name, 1, sum, want->moved[i][1], MOVED_TOLERANCE * norm);
    }
    return good;
}

static void check(const char *name)
{
    struct training t;
    const struct reference *want = references;
    double loss;
    int correct, good = 1;
    while (strcmp(want->model, name) != 0)
        want++;
    training_init(&t, name);
    for (int s = 0; s < REF_STEPS; s++) {
        int b = s % REF_BATCHES;
        t.cls->step(t.model, t.x + (size_t)b * REF_BATCH * t.pixels, t.labels[b], REF_BATCH,
                    1.0f / REF_BATCH, &loss, &correct, NULL, NULL);
        ddp_optim_step(&t.optim, t.params, t.grads);
        good &= near("loss", s, loss / REF_BATCH, want->loss[s], LOSS_TOLERANCE * want->loss[s]);
    }
    t.cls->evaluate(t.model, t.x, t.labels[0], REF_BATCH, &loss, &correct);
    good &=
        near("evaluation", 0, loss / REF_BATCH, want->evaluated, LOSS_TOLERANCE * want->evaluated);
    good &= moved_as(&t, want);
    training_release(&t);
    assert_true(good);
}

static void singa_cnn_with_momentum(void **state)
{
    check("singa-cnn");
}

static void lenet_with_sgd(void **state)
{
    check("lenet");
}

static void resnet9_with_adam_and_decay(void **state)
{
    check("resnet9");
}

static void nnabla_tiny_with_adam(void **state)
{
    check("nnabla-tiny");
}

static void every_model_has_a_reference(void **state)
{
    size_t models = 0;
    while (ddp_models()[models])
        models++;
    assert_int_equal(models, DDP_COUNT_OF(references));
}

static int load_blas(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    return ddp_blas_load(NULL, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(singa_cnn_with_momentum),     cmocka_unit_test(lenet_with_sgd),
        cmocka_unit_test(resnet9_with_adam_and_decay), cmocka_unit_test(nnabla_tiny_with_adam),
        cmocka_unit_test(every_model_has_a_reference),
    };
    return cmocka_run_group_tests(tests, load_blas, NULL);
}
