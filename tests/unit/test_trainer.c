/* The trainer on threads as ranks, with generated images: P ranks of batch B train as one rank of
 * P*B, the same seed gives the same bits, replicas that differ are detected, no image is dropped,
 * and an error on one rank stops all ranks. */
#include <stdarg.h>
#include <setjmp.h>
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/blas.h"

#include "trainer_runs.h"

static void ranks_train_as_one(void **state)
{
    static struct run one, two;
    one = defaults(1, 32);
    two = defaults(2, 16);
    one.o.epochs = two.o.epochs = EPOCHS_MAX;
    one.o.max_steps = two.o.max_steps = 100;
    two.o.check_replicas = true;
    expect_success(&one);
    expect_success(&two);
    assert_int_equal(one.steps, 100);
    assert_int_equal(two.steps, 100);
    for (int s = 0; s < 10; s++)
        assert_true(fabs(one.losses[s] - two.losses[s]) <= 1e-6 * one.losses[s]);
    assert_true(fabs(one.losses[99] - two.losses[99]) <= 5e-3 * one.losses[99]);
    assert_true(one.losses[99] < 0.9 * one.losses[0]); /* the model learns */
}

/* With uneven shares the gradient is still the average over all images of the global batch. */
static void weighted_ranks_train_as_one(void **state)
{
    static const char *const same[] = {"dense", "partial:1", "local:1"};
    static struct run one, two;
    one = defaults(1, 64);
    one.o.momentum = one.o.weight_decay = 0.0;
    one.o.max_steps = 10;
    one.o.lr = 0.02;
    expect_success(&one);
    for (size_t i = 0; i < DDP_COUNT_OF(same); i++) {
        two = defaults(2, 32);
        two.o.momentum = two.o.weight_decay = 0.0;
        two.o.max_steps = 10;
        two.o.lr = 0.02;
        set_sync(&two.o, same[i]);
        two.o.partition = (struct ddp_partition_spec){
            .kind = DDP_PARTITION_WEIGHTS, .count = 2, .weight = {3, 1}};
        expect_success(&two);
        assert_int_equal(two.steps, 10);
        assert_string_equal(two.start.partition, "weights:3,1");
        assert_int_equal(two.start.batch_per_rank, 48);
        for (int s = 0; s < 10; s++)
            assert_true(fabs(one.losses[s] - two.losses[s]) <= 2e-6 * one.losses[s]);
    }
    two.o.partition.count = 3;
    run_it(&two);
    assert_int_equal(two.code, DDP_EUSAGE);
}

static void same_seed_same_bits(void **state)
{
    static struct run first, again, buckets, other;
    first = defaults(2, 64);
    first.o.check_replicas = true;
    again = buckets = other = first;
    buckets.o.bucket_bytes = 65536; /* smaller buckets, the same sums */
    other.o.seed = 2;
    expect_success(&first);
    expect_success(&again);
    expect_success(&buckets);
    expect_success(&other);
    assert_int_equal(first.steps, 8);
    assert_memory_equal(first.losses, again.losses, sizeof first.losses);
    assert_memory_equal(first.losses, buckets.losses, sizeof first.losses);
    assert_true(first.epochs[0].parameter_hash == again.epochs[0].parameter_hash);
    assert_true(first.epochs[0].parameter_hash == buckets.epochs[0].parameter_hash);
    assert_true(first.epochs[0].parameter_hash != other.epochs[0].parameter_hash);
    assert_true(first.epochs[0].wire_bytes_per_rank == 8 * 431080 * 4.0);
    assert_true(buckets.epochs[0].wire_bytes_per_rank == first.epochs[0].wire_bytes_per_rank);
}

/* All sizes are uneven: 1000 images in batches of 3 x 64, and 203 images to evaluate. An accuracy
 * times the number of images must be a whole number. */
static void nothing_is_dropped(void **state)
{
    for (int kind = DDP_PARTITION_BATCH; kind <= DDP_PARTITION_SHARD; kind++) {
        static struct run r;
        r = defaults(3, 64);
        r.o.partition.kind = (enum ddp_partition)kind;
        r.o.epochs = 2;
        expect_success(&r);
        assert_int_equal(r.epoch_count, 2);
        for (int e = 0; e < 2; e++) {
            double hits = r.epochs[e].train_accuracy * TRAIN,
                   seen = r.epochs[e].eval_accuracy * EVAL;
            assert_true(fabs(hits - round(hits)) < 1e-6);
            assert_true(fabs(seen - round(seen)) < 1e-6);
            assert_int_equal(r.epochs[e].steps, 6);
        }
        assert_int_equal(r.start.train_images, TRAIN);
        assert_int_equal(r.start.eval_images, EVAL);
        assert_true(isnan(r.start.total_seconds) && isnan(r.start.total_wire_bytes));
        assert_true(r.end.total_seconds >= r.epochs[0].seconds);
        assert_string_equal(r.start.partition, ddp_partition_names[r.o.partition.kind]);
    }
}

/* At a learning rate of 0 the parameters do not change: three ranks with batches of 16 must find
 * the same figures as one pass of the model over all images. */
static void evaluation_is_over_all_images(void **state)
{
    static struct run r;
    const struct ddp_model_class *cls = ddp_model_find("singa-cnn");
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_model *m;
    double loss;
    int correct;
    r = defaults(3, 16);
    r.o.lr = 0.0;
    r.o.max_steps = 1;
    expect_success(&r);
    float *params = malloc(sizeof *params * cls->parameter_count);
    float *x = malloc(sizeof *x * EVAL * PIXELS);
    for (size_t i = 0; i < (size_t)EVAL * PIXELS; i++)
        x[i] = (float)data.eval.pixels[i] / 255.0f;
    ddp_model_init_params(cls, DDP_INIT_HE, 1, params);
    assert_int_equal(ddp_blas_load(NULL, &err), 0);
    assert_int_equal(cls->create(cls, NULL, EVAL, params, NULL, &m, &err), 0);
    cls->evaluate(m, x, data.eval.labels, EVAL, &loss, &correct);
    assert_true(fabs(r.epochs[0].eval_loss * EVAL - loss) < 1e-5 * loss);
    assert_true(fabs(r.epochs[0].eval_accuracy * EVAL - correct) < 1e-6);
    cls->destroy(m);
    free(x);
    free(params);
}

static void more_ranks_than_images_in_a_step(void **state)
{
    struct ddp_dataset few = data;
    static struct run r;
    few.train.count = 5;
    few.eval.count = 2;
    for (int kind = DDP_PARTITION_BATCH; kind <= DDP_PARTITION_SHARD; kind++) {
        r = defaults(4, 1);
        r.o.data = &few;
        r.o.partition.kind = (enum ddp_partition)kind;
        r.o.check_replicas = true;
        expect_success(&r);
        assert_int_equal(r.epochs[0].steps, 2);
    }
}

static void max_steps_cuts_and_evaluates(void **state)
{
    static struct run r;
    r = defaults(2, 64);
    r.o.epochs = 5;
    r.o.max_steps = 11;
    expect_success(&r);
    assert_int_equal(r.epoch_count, 2);
    assert_int_equal(r.epochs[1].steps, 3);
    assert_true(r.epochs[1].eval_accuracy > 0.0);
    assert_int_equal(r.start.max_steps, 11);
}

static void first_parameters_agree(void **state)
{
    uint64_t hash[3];
    for (int i = DDP_INIT_BROADCAST; i <= DDP_INIT_SEED; i++) {
        static struct run r;
        r = defaults(3, 16);
        r.o.init_sync = (enum ddp_init_sync)i;
        r.o.max_steps = 1;
        r.o.check_replicas = true;
        expect_success(&r);
        hash[i] = r.epochs[0].parameter_hash;
    }
    assert_true(hash[DDP_INIT_BROADCAST] == hash[DDP_INIT_SEED]);
    assert_true(hash[DDP_INIT_BROADCAST] != hash[DDP_INIT_AVERAGE]);
}

/* Without an exchange replicas may differ if the strategy says so; if it denies this, the run
 * fails. */
static void unequal_replicas_are_found(void **state)
{
    static struct run honest, liar;
    struct ddp_sync_class claims;
    honest = defaults(2, 64);
    set_sync(&honest.o, "none");
    claims = *honest.o.sync.cls;
    honest.o.check_replicas = true;
    expect_success(&honest);
    assert_true(honest.epochs[0].wire_bytes_per_rank == 0.0);
    claims.replicas_equal = true;
    for (int every_step = 0; every_step < 2; every_step++) {
        liar = defaults(2, 64);
        liar.o.sync.cls = &claims;
        liar.o.check_replicas = every_step;
        run_it(&liar);
        assert_int_equal(liar.code, DDP_EDATA);
        assert_non_null(strstr(liar.err.text, every_step ? " 1" : " 8"));
        assert_int_equal(liar.epoch_count, 0);
    }
}

static void a_listener_stops_all_ranks(void **state)
{
    static struct run r;
    r = defaults(3, 64);
    r.o.epochs = 3;
    r.stop_at_epoch = 2;
    r.stop_code = DDP_EIO;
    run_it(&r);
    assert_int_equal(r.code, DDP_EIO);
    assert_int_equal(r.epoch_count, 2);
    assert_string_equal(r.err.text, "the listener has had enough");
}

static void targets_are_noted_once(void **state)
{
    static struct run r;
    r = defaults(2, 64);
    r.o.epochs = 3;
    r.o.target_accuracy = 0.01;
    expect_success(&r);
    assert_int_equal(r.end.target_epoch, 1);
    assert_true(r.end.target_seconds == r.epochs[0].seconds);
    assert_true(r.end.total_wire_bytes == 3 * r.end.target_wire_bytes);
    r = defaults(2, 64);
    r.o.target_accuracy = 1.0;
    expect_success(&r);
    assert_int_equal(r.end.target_epoch, -1);
    assert_true(isnan(r.end.target_seconds));
}

static void data_must_fit_the_model(void **state)
{
    struct ddp_dataset small = data;
    static struct run r;
    small.train.height = small.eval.height = SIDE / 2;
    r = defaults(2, 64);
    r.o.data = &small;
    run_it(&r);
    assert_int_equal(r.code, DDP_EUSAGE);
    assert_non_null(strstr(r.err.text, "1 x 28 x 28"));
    r = defaults(2, 64);
    r.o.blas = "libno-such-blas.so.9";
    /* A library was loaded before in this process, so the name has no effect. */
    expect_success(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_train_as_one),
        cmocka_unit_test(weighted_ranks_train_as_one),
        cmocka_unit_test(same_seed_same_bits),
        cmocka_unit_test(nothing_is_dropped),
        cmocka_unit_test(evaluation_is_over_all_images),
        cmocka_unit_test(more_ranks_than_images_in_a_step),
        cmocka_unit_test(max_steps_cuts_and_evaluates),
        cmocka_unit_test(first_parameters_agree),
        cmocka_unit_test(unequal_replicas_are_found),
        cmocka_unit_test(a_listener_stops_all_ranks),
        cmocka_unit_test(targets_are_noted_once),
        cmocka_unit_test(data_must_fit_the_model),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
