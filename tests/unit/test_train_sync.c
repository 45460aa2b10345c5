/* Sync strategies in training, on one to four ranks: each keeps its promise about replicas and
 * bytes, overlap changes no bit, all placements give the same sum, uneven batches are weighted,
 * and recorded gradients are correct. */
#include <stdarg.h>
#include <setjmp.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/npy.h"
#include "compress/compress.h"

#include "trainer_runs.h"

/* Each run evaluates few images. */
static int make_few(void **state)
{
    int rc = make_data(state);
    data.eval.count = 50;
    return rc;
}

#define N 431080.0 /* parameters of singa-cnn */

/* Bytes that a rank sends in `steps` steps, averaged over the ranks. most: the value is an upper
 * bound only. */
struct bytes {
    double each;
    bool most;
};

static struct bytes wire_bytes(const char *sync, int ranks, int steps, double density)
{
    const double peers = ranks - 1, p = ranks;
    const double dense = 2.0 * peers / p * 4.0 * N, k = (double)ddp_compress_k(0.01, (size_t)N);
    if (strcmp(sync, "dense") == 0 || strcmp(sync, "zero1") == 0)
        return (struct bytes){dense * steps, false};
    if (strcmp(sync, "fp16") == 0 || strcmp(sync, "bf16") == 0)
        return (struct bytes){dense / 2.0 * steps, false};
    if (strcmp(sync, "sign") == 0)
        return (struct bytes){20.0 * ceil(N / 128.0) * peers * steps, false};
    if (strcmp(sync, "powersgd:2") == 0) /* the factors are less than an eighth of the weights */
        return (struct bytes){dense / 8.0 * steps, true};
    if (strcmp(sync, "topk:0.01") == 0)
        return (struct bytes){8.0 * k * peers * steps, false};
    if (strcmp(sync, "oktopk:0.01") == 0)
        return (struct bytes){(24.0 * k * peers / p + 256.0 * p) * steps, true};
    if (strncmp(sync, "threshold", 9) == 0)
        return (struct bytes){(8.0 * density * N + 8.0) * peers * steps, true};
    if (strcmp(sync, "partial:4") == 0) /* one chunk per step; the steps are a multiple of 4 */
        return (struct bytes){dense * steps / 4.0, false};
    if (strcmp(sync, "local:4") == 0 ||
        strcmp(sync, "diloco:4") == 0) /* averages also before the evaluation, if steps are left */
        return (struct bytes){dense * ceil(steps / 4.0), false};
    return (struct bytes){0.0, false};
}

static void expect_bytes(const struct run *r, const char *sync)
{
    const double sent = r->epochs[0].wire_bytes_per_rank;
    const int steps = (int)r->epochs[0].steps;
    const struct bytes want = wire_bytes(sync, r->ranks, steps, r->epochs[0].achieved_density);
    const bool good = want.most ? sent <= want.each : fabs(sent - want.each) < 0.5;
    if (!good)
        fail_msg("%s, %d ranks: %.1f bytes sent, %s%.1f wanted", sync, r->ranks, sent,
                 want.most ? "at most " : "", want.each);
    if (r->ranks > 1 && strcmp(sync, "none") != 0)
        assert_true(sent > 0.0);
}

static const char *const strategies[] = {
    "dense",          "fp16",      "bf16",    "sign",     "powersgd:2", "topk:0.01", "oktopk:0.01",
    "threshold:0.02", "partial:4", "local:4", "diloco:4", "zero1",      "none"};
enum { GRADIENT_STRATEGIES = 8 };

static bool is_compressed(const char *sync)
{
    return strcmp(sync, "dense") != 0;
}

/* Makes another run with the same options as r. */
static struct run like(const struct run *r)
{
    return (struct run){.ranks = r->ranks, .o = r->o, .err = DDP_ERR_INIT};
}

/* check_replicas compares after every step: all parameters, or the chunk that was just averaged. */
static void every_strategy_keeps_its_promises(void **state)
{
    for (size_t i = 0; i < DDP_COUNT_OF(strategies); i++) {
        for (int ranks = 1; ranks <= 4; ranks++) {
            static struct run r;
            r = defaults(ranks, 4);
            set_sync(&r.o, strategies[i]);
            r.o.max_steps = strstr(strategies[i], "lo") != NULL ? 6 : 4; /* local, diloco */
            r.o.check_replicas = true;
            /* The bytes are counted from messages and not taken from a model. */
            if (ranks > 1 && i < 3)
                r.o.algorithm = "ring";
            if (ranks > 1 && r.o.sync.cls->end_step)
                r.o.algorithm = "ring";
            expect_success(&r);
            expect_bytes(&r, strategies[i]);
            assert_true(r.epochs[0].wire_counted);
            assert_string_equal(r.start.feedback, i < 3 && i > 0                      ? "off"
                                                  : i >= 3 && i < GRADIENT_STRATEGIES ? "on"
                                                                                      : "");
            assert_true(isnan(r.epochs[0].encode_seconds) ==
                        !(is_compressed(strategies[i]) && i < GRADIENT_STRATEGIES));
            assert_true(isnan(r.epochs[0].exchange_busbw_GBps) == (i > 0 || ranks == 1));
            assert_int_equal(r.epochs[0].overflow_count, i >= 1 && i <= 3 ? 0 : -1);
        }
    }
}

/* The same seed gives the same bits with the exchange during the backward pass or after it. */
static void overlap_changes_no_bit(void **state)
{
    for (int i = 0; i < GRADIENT_STRATEGIES; i++) {
        static struct run off, on;
        off = defaults(2, 16);
        set_sync(&off.o, strategies[i]);
        off.o.max_steps = 6;
        off.o.bucket_bytes = 65536;
        on = off;
        on.o.overlap = true;
        on.o.check_replicas = true;
        expect_success(&off);
        expect_success(&on);
        assert_true(off.epochs[0].parameter_hash == on.epochs[0].parameter_hash);
        assert_true(off.epochs[0].wire_bytes_per_rank == on.epochs[0].wire_bytes_per_rank);
        assert_true(on.epochs[0].exchange_seconds > 0.0 && on.start.overlap);
        assert_true(off.epochs[0].exposed_seconds == off.epochs[0].exchange_seconds);
    }
}

/* Each placement gives the result of the all-reduce. On two ranks, where only one order of
 * additions exists, it gives the same bits. */
static void placements_give_the_same_sum(void **state)
{
    static struct run reference, other;
    for (int ranks = 2; ranks <= 4; ranks++) {
        reference = defaults(ranks, 12 / ranks);
        reference.o.max_steps = 8;
        expect_success(&reference);
        for (int i = 1; ddp_aggregates()[i]; i++) {
            for (int hosts = 1; hosts <= (ddp_aggregates()[i]->needs_hosts ? 2 : 1); hosts++) {
                other = like(&reference);
                other.o.aggregate = ddp_aggregates()[i];
                other.o.bucket_bytes = hosts * 40000;
                other.o.check_replicas = true;
                if (hosts > 1)
                    setenv("DDPBENCH_SIMULATE_HOSTS", "2*", 1);
                expect_success(&other);
                unsetenv("DDPBENCH_SIMULATE_HOSTS");
                assert_string_equal(other.start.aggregate, ddp_aggregates()[i]->name);
                const double a = reference.epochs[0].eval_loss, b = other.epochs[0].eval_loss;
                assert_true(fabs(a - b) < 1e-5 * a);
                if (ranks == 2)
                    assert_true(reference.epochs[0].parameter_hash ==
                                other.epochs[0].parameter_hash);
            }
        }
    }
}

/* Without momentum, averaging the parameters after one private step each, weighted by images,
 * equals the step of the whole batch. With five images over four ranks the second step has only one
 * rank. */
static void uneven_parts_have_their_weight(void **state)
{
    struct ddp_dataset few = data;
    few.train.count = 5;
    for (int kind = DDP_PARTITION_BATCH; kind <= DDP_PARTITION_SHARD; kind++) {
        static const char *const same[] = {"local:1", "partial:1", "local:2"};
        static struct run dense, other;
        dense = defaults(4, 1);
        dense.o.data = &few;
        dense.o.partition.kind = (enum ddp_partition)kind;
        dense.o.momentum = dense.o.weight_decay = 0.0;
        dense.o.lr = 0.05;
        dense.o.epochs = 3;
        expect_success(&dense);
        for (size_t i = 0; i < DDP_COUNT_OF(same); i++) {
            other = like(&dense);
            set_sync(&other.o, same[i]);
            expect_success(&other);
            const double a = dense.epochs[2].eval_loss, b = other.epochs[2].eval_loss;
            const bool close = fabs(a - b) < 2e-6 * a;
            assert_true(close == (i < 2)); /* averaging every second step gives another result */
        }
    }
}

/* The mean of the gradients that the ranks record is the gradient of one rank with all the images.
 * Recording changes no bit and no later exchange. */
static void recorded_gradients_are_those_before_the_exchange(void **state)
{
    char dir[] = "/tmp/ddpbench-dump-XXXXXX", one_dir[64], two_dir[64], path[96];
    static float all[(size_t)N], mine[(size_t)N];
    static const char *const syncs[] = {"dense", "topk:0.01", "partial:2"};
    static struct run one, two, plain;
    struct ddp_npy npy;
    struct ddp_err err = DDP_ERR_INIT;
    assert_non_null(mkdtemp(dir));
    snprintf(one_dir, sizeof one_dir, "%s/one", dir);
    snprintf(two_dir, sizeof two_dir, "%s/two", dir);
    for (size_t i = 0; i < DDP_COUNT_OF(syncs); i++) {
        one = defaults(1, 14);
        one.o.max_steps = 4;
        one.o.dump_every = 3;
        one.o.lr = 0.0; /* so the second row has the same parameters */
        two = one;
        one.o.dump_dir = one_dir;
        two.ranks = 2;
        two.o.batch = 7;
        set_sync(&two.o, syncs[i]);
        plain = two;
        two.o.dump_dir = two_dir;
        expect_success(&one);
        expect_success(&two);
        expect_success(&plain);
        assert_true(two.epochs[0].parameter_hash == plain.epochs[0].parameter_hash);
        for (size_t row = 0; row < 2; row++) {
            double worst = 0.0, largest = 0.0;
            snprintf(path, sizeof path, "%s/rank0.npy", one_dir);
            assert_int_equal(ddp_npy_open(path, &npy, &err), 0);
            assert_int_equal(npy.rows, 2);
            assert_int_equal(npy.columns, (size_t)N);
            assert_int_equal(ddp_npy_read(&npy, row, 0, all, (size_t)N, &err), 0);
            ddp_npy_close(&npy);
            for (int r = 0; r < 2; r++) {
                snprintf(path, sizeof path, "%s/rank%d.npy", two_dir, r);
                assert_int_equal(ddp_npy_open(path, &npy, &err), 0);
                assert_int_equal(ddp_npy_read(&npy, row, 0, mine, (size_t)N, &err), 0);
                ddp_npy_close(&npy);
                for (size_t k = 0; k < (size_t)N; k++)
                    all[k] -= mine[k] / 2.0f;
            }
            for (size_t k = 0; k < (size_t)N; k++) {
                worst = fmax(worst, fabs((double)all[k]));
                largest = fmax(largest, fabs((double)mine[k]));
            }
            assert_true(largest > 0.0 && worst < 1e-5 * largest);
        }
    }
    for (int r = 0; r < 2; r++) {
        snprintf(path, sizeof path, "%s/rank%d.npy", two_dir, r);
        remove(path);
    }
    snprintf(path, sizeof path, "%s/rank0.npy", one_dir);
    remove(path);
    rmdir(one_dir);
    rmdir(two_dir);
    rmdir(dir);
}

static void a_folder_that_cannot_be_made_is_an_error(void **state)
{
    static struct run r;
    r = defaults(2, 8);
    r.o.max_steps = 1;
    r.o.dump_dir = "/proc/no/such/folder";
    run_it(&r);
    assert_int_equal(r.code, DDP_ECREATE);
    assert_int_equal(r.epoch_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_strategy_keeps_its_promises),
        cmocka_unit_test(overlap_changes_no_bit),
        cmocka_unit_test(placements_give_the_same_sum),
        cmocka_unit_test(uneven_parts_have_their_weight),
        cmocka_unit_test(recorded_gradients_are_those_before_the_exchange),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_few, drop_data);
}
