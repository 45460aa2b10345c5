/* Models in the trainer: each learns a generated set with its own settings, a global batch gives
 * the same losses at any number of ranks, and running statistics are averaged over the ranks before
 * an evaluation, weighted by images. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/mem.h"
#include "model/blas.h"
#include "train/trainer_impl.h"

#include "trainer_runs.h"

/* A generated set in the shape that a model takes. */
static struct ddp_dataset made_for(const struct ddp_model_class *cls, size_t images)
{
    struct ddp_dataset set;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ddp_dataset_request request = {.channels = cls->channels,
                                                .height = cls->height,
                                                .width = cls->width,
                                                .classes = cls->classes,
                                                .images = images,
                                                .seed = 1};
    assert_int_equal(ddp_dataset_load("synthetic", &request, &set, &err), 0);
    return set;
}

/* Sets the model's own training settings. */
static struct run run_of(const char *model, int ranks, const struct ddp_dataset *set)
{
    struct run r = defaults(ranks, 0);
    const struct ddp_model_class *cls = ddp_model_find(model);
    const struct ddp_model_defaults *d = &cls->defaults;
    r.o.model = cls;
    r.o.data = set;
    r.o.batch = d->batch;
    r.o.global_batch = d->global_batch;
    r.o.optimizer = (enum ddp_optimizer)ddp_optimizer_find(d->optimizer);
    r.o.lr = d->lr;
    r.o.momentum = d->momentum;
    r.o.weight_decay = d->weight_decay;
    r.o.init = d->init;
    r.o.check_replicas = true;
    return r;
}

static void each_learns_by_its_own_rule(void **state)
{
    static const struct {
        const char *model;
        int epochs;
        double accuracy;
    } want[] = {
        {"singa-cnn", 2, 0.9}, {"lenet", 6, 0.5}, {"resnet9", 2, 0.9}, {"nnabla-tiny", 2, 0.9}};
    for (size_t i = 0; i < DDP_COUNT_OF(want); i++) {
        static struct run r;
        struct ddp_dataset set = made_for(ddp_model_find(want[i].model), 3000);
        r = run_of(want[i].model, 2, &set);
        r.o.epochs = want[i].epochs;
        expect_success(&r);
        double reached = r.epochs[want[i].epochs - 1].eval_accuracy;
        print_message("# %s: %.3f\n", want[i].model, reached);
        assert_true(reached > want[i].accuracy);
        assert_true(r.start.synthetic);
        assert_string_equal(r.start.dataset, "synthetic");
        assert_string_equal(r.start.optimizer, r.o.model->defaults.optimizer);
        assert_int_equal(isnan(r.start.momentum), r.o.optimizer == DDP_OPTIM_ADAM);
        assert_int_equal(r.start.batch_per_rank,
                         r.o.batch ? r.o.batch : (r.o.global_batch + 1) / 2);
        ddp_dataset_release(&set);
    }
}

/* 100 images in steps of 32, over 1 and 3 ranks: 11, 11, 10 images in a step, and 2, 1, 1 in the
 * last. */
static void global_batch_is_the_same_at_any_rank_count(void **state)
{
    static struct run one, three, shards;
    struct ddp_dataset set = made_for(ddp_model_find("lenet"), 100);
    one = run_of("lenet", 1, &set);
    one.o.global_batch = 32;
    one.o.epochs = 3;
    three = one;
    three.ranks = 3;
    expect_success(&one);
    expect_success(&three);
    assert_int_equal(one.steps, 12);
    assert_int_equal(three.steps, 12);
    assert_int_equal(three.start.batch_per_rank, 11);
    for (int s = 0; s < 12; s++)
        assert_true(fabs(one.losses[s] - three.losses[s]) <= 1e-5 * one.losses[s]);
    /* Shards of 34, 33 and 33 images, 10 per step (needle's 32 / 3): all images are used, and each
     * step is weighted by its images. */
    shards = three;
    shards.steps = shards.epoch_count = 0;
    shards.o.partition.kind = DDP_PARTITION_SHARD;
    expect_success(&shards);
    assert_int_equal(shards.start.batch_per_rank, 10);
    assert_int_equal(shards.epochs[0].steps, 4);
    double hits = shards.epochs[0].train_accuracy * 100;
    assert_true(fabs(hits - round(hits)) < 1e-6);
    three.o.global_batch = 2;
    three.o.partition.kind = DDP_PARTITION_SHARD;
    run_it(&three);
    assert_int_equal(three.code, DDP_EUSAGE);
    assert_non_null(strstr(three.err.text, "too small"));
    ddp_dataset_release(&set);
}

static void gather(const struct ddp_model_class *cls, struct ddp_model *model,
                   const struct ddp_images *set, const uint32_t *index, size_t first, size_t n,
                   float *x, uint8_t *labels)
{
    cls->gather(model, set->pixels, set->labels, ddp_trainer_pixels(set), index, first, (int)n, x,
                labels);
}

/* Computes the loss that the trainer should find at a learning rate of 0: each rank's running
 * statistics after its images of an epoch, their weighted mean if `averaged`, then the loss over
 * all evaluation images, each rank evaluating its part. */
static double expected_loss(const struct run *r, bool averaged)
{
    const struct ddp_model_class *cls = r->o.model;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_partition_plan plan = {.kind = r->o.partition.kind,
                                      .images = r->o.data->train.count,
                                      .ranks = r->ranks,
                                      .batch = r->o.batch,
                                      .seed = r->o.seed};
    size_t pixels = (size_t)(cls->channels * cls->height * cls->width), count, first, n, global;
    float *params = malloc(cls->parameter_count * sizeof *params);
    float *grads = malloc(cls->parameter_count * sizeof *grads);
    float *x = malloc(64 * pixels * sizeof *x);
    double *mean = calloc(cls->state_count, sizeof *mean), loss = 0.0, sum;
    uint8_t *labels = malloc(64);
    uint32_t *order = malloc(plan.images * sizeof *order);
    struct ddp_model *models[8]; /* one per rank, each for 64 images */
    int correct;
    ddp_model_init_params(cls, r->o.init, r->o.seed, params);
    for (int rank = 0; rank < r->ranks; rank++) {
        size_t seen = 0;
        assert_int_equal(cls->create(cls, NULL, 64, params, grads, &models[rank], &err), 0);
        ddp_partition_order(&plan, 1, rank, order, &count);
        for (int64_t s = 0; s < ddp_partition_steps(&plan); s++) {
            ddp_partition_slice(&plan, s, rank, &first, &n, &global);
            gather(cls, models[rank], &r->o.data->train, order, first, n, x, labels);
            cls->step(models[rank], x, labels, (int)n, 1.0f, &sum, &correct, NULL, NULL);
            seen += n;
        }
        for (size_t i = 0; i < cls->state_count; i++)
            mean[i] += (double)cls->state(models[rank])[i] * (double)seen / (double)plan.images;
    }
    for (int rank = 0; rank < r->ranks; rank++) {
        for (size_t i = 0; i < cls->state_count && averaged; i++)
            cls->state(models[rank])[i] = (float)mean[i];
        ddp_partition_part(r->o.data->eval.count, r->ranks, rank, &first, &n);
        gather(cls, models[rank], &r->o.data->eval, NULL, first, n, x, labels);
        cls->evaluate(models[rank], x, labels, (int)n, &sum, &correct);
        loss += sum;
        cls->destroy(models[rank]);
    }
    free(params), free(grads), free(x), free(mean), free(labels), free(order);
    return loss / (double)r->o.data->eval.count;
}

/* Shards of 34, 33 and 33 images in batches of 33: in the second step one rank has one image and
 * the others have none. */
static void running_statistics_are_averaged(void **state)
{
    static struct run r;
    struct ddp_dataset set = made_for(ddp_model_find("resnet9"), 100);
    r = run_of("resnet9", 3, &set);
    r.o.global_batch = 0;
    r.o.batch = 33;
    r.o.partition.kind = DDP_PARTITION_SHARD;
    r.o.lr = 0.0;
    expect_success(&r);
    double averaged = expected_loss(&r, true), own = expected_loss(&r, false);
    print_message("# %.7f: averaged %.7f, each its own %.7f\n", r.epochs[0].eval_loss, averaged,
                  own);
    assert_true(fabs(r.epochs[0].eval_loss - averaged) < 1e-6 * averaged);
    assert_true(fabs(averaged - own) > 1e-4 * averaged); /* otherwise the test shows nothing */
    /* Ranks that exchange nothing train different models and keep their own statistics. */
    r.epoch_count = 0;
    r.steps = 0;
    r.o.check_replicas = false;
    set_sync(&r.o, "none");
    expect_success(&r);
    assert_true(fabs(r.epochs[0].eval_loss - own) < 1e-6 * own);
    ddp_dataset_release(&set);
}

static int load_blas(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    return ddp_blas_load(NULL, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_learns_by_its_own_rule),
        cmocka_unit_test(global_batch_is_the_same_at_any_rank_count),
        cmocka_unit_test(running_statistics_are_averaged),
    };
    return cmocka_run_group_tests(tests, load_blas, NULL);
}
