/* The sync strategy zero1: its shards cover the parameters, the parameters have the bits of dense,
 * and the optimiser state is divided by the number of ranks. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"

#include "comm_ranks.h"
#include "trainer_runs.h"

/* Each run evaluates few images. */
static int make_few(void **state)
{
    int rc = make_data(state);
    data.eval.count = 50;
    return rc;
}

enum { LINE = 16 /* floats of a cache line */, PARTS_MAX = 64 };

static const struct ddp_sync_class *zero1(void)
{
    struct ddp_sync_spec spec;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_sync_parse("zero1", &spec, &err), 0);
    return spec.cls;
}

/* The ranks own all elements once, except the tail, which every rank owns. All shards have the same
 * size. The parts of a bucket begin at cache lines. */
static void shards_cover_the_parameters(void **state)
{
    static const size_t totals[] = {0, 1, 15, 16, 17, 33, 64, 100, 999, 1000};
    static const size_t bytes[] = {0, 4, 400, 4096};
    static unsigned char owners[1000];
    struct ddp_range parts[PARTS_MAX];
    for (size_t i = 0; i < DDP_COUNT_OF(totals) * DDP_COUNT_OF(bytes); i++) {
        const size_t total = totals[i % DDP_COUNT_OF(totals)];
        const struct ddp_sync_setup setup = {.total = total,
                                             .bucket_bytes = bytes[i / DDP_COUNT_OF(totals)]};
        for (int ranks = 1; ranks <= 5; ranks++) {
            const size_t tail = ranks > 1 ? total % (size_t)(ranks * LINE) : 0;
            memset(owners, 0, sizeof owners);
            for (int r = 0; r < ranks; r++) {
                int count, again;
                size_t sum = 0;
                const size_t n = zero1()->shard(&setup, ranks, r, NULL, &count);
                assert_in_range(count, 0, PARTS_MAX);
                assert_int_equal(n, (total - tail) / (size_t)ranks + tail);
                assert_int_equal(zero1()->shard(&setup, ranks, r, parts, &again), n);
                assert_int_equal(again, count);
                for (int p = 0; p < count; p++) {
                    assert_true((ranks == 1 || parts[p].begin % LINE == 0) &&
                                parts[p].end <= total);
                    sum += parts[p].end - parts[p].begin;
                    for (size_t k = parts[p].begin; k < parts[p].end; k++)
                        owners[k]++;
                }
                assert_int_equal(sum, n);
            }
            for (size_t k = 0; k < total; k++)
                assert_int_equal(owners[k], k < total - tail ? 1 : ranks);
        }
    }
}

/* Three tensors whose total size is no multiple of anything. */
enum { TENSORS = 3, N = 1031 };
static const size_t offsets[TENSORS] = {0, 700, 1001}, counts[TENSORS] = {700, 301, 30};

struct steps {
    const char *sync;
    size_t bucket_bytes, total;
    bool overlap;
    float params[N];
};

/* Takes three steps of gradient descent, after which all ranks must hold the same parameters. */
static int take_steps(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                      struct ddp_err *err)
{
    struct steps *c = arg;
    struct ddp_sync_spec spec;
    struct ddp_sync *sync;
    struct ddp_range parts[PARTS_MAX] = {{0, c->total}};
    void *params_memory, *grads_memory;
    int count = 1;
    (void)rank;
    comm->device = ddp_device_cpu(ddp_cpu_best_simd());
    DDP_TRY(ddp_comm_alloc(comm, sizeof c->params, &params_memory, err));
    DDP_TRY(ddp_comm_alloc(comm, sizeof c->params, &grads_memory, err));
    float *params = params_memory, *grads = grads_memory;
    size_t cut[TENSORS];
    for (int i = 0; i < TENSORS; i++)
        cut[i] = DDP_MIN(counts[i], c->total - DDP_MIN(c->total, offsets[i]));
    const struct ddp_sync_setup setup = {.comm = comm,
                                         .params = params,
                                         .grads = grads,
                                         .total = c->total,
                                         .offsets = offsets,
                                         .counts = cut,
                                         .param_count = TENSORS,
                                         .bucket_bytes = c->bucket_bytes,
                                         .overlap = c->overlap};
    DDP_TRY(ddp_sync_parse(c->sync, &spec, err));
    DDP_TRY(spec.cls->create(&setup, &sync, err));
    if (spec.cls->shard)
        spec.cls->shard(&setup, comm->size, comm->rank, parts, &count);
    for (size_t i = 0; i < N; i++)
        params[i] = (float)i;
    for (uint64_t step = 0; step < 3; step++) {
        struct ddp_rng rng;
        ddp_rng_init(&rng, 7 + step, (uint64_t)comm->rank);
        for (size_t i = 0; i < c->total; i++)
            grads[i] = (float)ddp_rng_below(&rng, 1000003) / 7.0f;
        for (int t = TENSORS - 1; t >= 0; t--)
            DDP_TRY(spec.cls->on_grad_ready(sync, t, err));
        DDP_TRY(spec.cls->finish_backward(sync, err));
        for (int p = 0; p < count; p++)
            for (size_t i = parts[p].begin; i < parts[p].end; i++)
                params[i] -= 0.1f * grads[i];
        if (spec.cls->end_step)
            DDP_TRY(spec.cls->end_step(sync, err));
    }
    spec.cls->destroy(sync);
    /* Rank 0 stores its parameters before the others compare. */
    if (comm->rank == 0)
        memcpy(c->params, params, sizeof c->params);
    DDP_TRY(ddp_comm_barrier(comm, err));
    CHECK(memcmp(c->params, params, sizeof c->params) == 0);
    ddp_comm_free(comm, grads_memory);
    ddp_comm_free(comm, params_memory);
    return 0;
}

static void expect_steps(struct steps *c, int ranks)
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ranks_job job = {.body = take_steps, .arg = c, .threads = c->overlap};
    assert_int_equal(ranks_run(ranks, DDP_LAUNCH_THREADS, job, &outcome, &err), 0);
    if (outcome.code != 0)
        fail_msg("%s, %d ranks: %s", c->sync, ranks, err.text[0] ? err.text : outcome.report_text);
}

/* The totals leave tails of several lengths. The smallest array is only a tail. */
static void uneven_arrays_have_the_bits_of_dense(void **state)
{
    static const size_t totals[] = {N, 1024, 700, 65, 16, 3};
    static struct steps dense, other;
    for (size_t i = 0; i < DDP_COUNT_OF(totals); i++) {
        for (int ranks = 1; ranks <= 5; ranks++) {
            dense = (struct steps){.sync = "dense", .total = totals[i]};
            expect_steps(&dense, ranks);
            for (int way = 0; way < 4; way++) {
                other = (struct steps){.sync = "zero1",
                                       .total = totals[i],
                                       .bucket_bytes = way >= 2 ? 1200 : 0,
                                       .overlap = way % 2 == 1};
                expect_steps(&other, ranks);
                assert_memory_equal(other.params, dense.params, sizeof dense.params);
            }
        }
    }
}

/* Training on shared memory: SGD, SGD with momentum, and Adam. */
static void training_has_the_bits_of_dense(void **state)
{
    static const int worlds[] = {1, 2, 3, 4};
    static struct run dense, other;
    for (size_t w = 0; w < DDP_COUNT_OF(worlds); w++) {
        const int64_t ranks = worlds[w];
        for (int rule = 0; rule < 3; rule++) {
            dense = defaults((int)ranks, 12 / (int)ranks);
            dense.o.max_steps = 6;
            dense.o.momentum = rule == 0 ? 0.0 : 0.9;
            dense.o.optimizer = rule == 2 ? DDP_OPTIM_ADAM : DDP_OPTIM_SGD;
            other = dense;
            set_sync(&other.o, "zero1");
            other.o.check_replicas = true;
            other.o.bucket_bytes = rule * (size_t)50000;
            other.o.overlap = rule == 2;
            expect_success(&dense);
            expect_success(&other);
            assert_true(other.epochs[0].parameter_hash == dense.epochs[0].parameter_hash);
            assert_true(other.epochs[0].eval_loss == dense.epochs[0].eval_loss);
            const int64_t each = rule == 2 ? 8 : 4, all = dense.start.parameters;
            const int64_t tail = ranks > 1 ? all % (ranks * LINE) : 0;
            assert_int_equal(dense.start.optimizer_bytes, each * all);
            assert_int_equal(other.start.optimizer_bytes, each * ((all - tail) / ranks + tail));
            const uint64_t saved =
                (uint64_t)(dense.start.optimizer_bytes - other.start.optimizer_bytes);
            assert_int_equal(ddp_train_private_bytes(&dense.o, (int)ranks) -
                                 ddp_train_private_bytes(&other.o, (int)ranks),
                             saved);
        }
    }
}

/* A ring adds in another order than shared memory does, but two ranks have only one order. */
static void rings_have_the_same_result(void **state)
{
    static struct run dense, other;
    for (int ranks = 2; ranks <= 4; ranks++) {
        dense = defaults(ranks, 4);
        dense.o.max_steps = 4;
        other = dense;
        set_sync(&other.o, "zero1");
        other.o.algorithm = "ring";
        other.o.check_replicas = true;
        expect_success(&dense);
        expect_success(&other);
        const double a = dense.epochs[0].eval_loss, b = other.epochs[0].eval_loss;
        assert_true(fabs(a - b) < 1e-5 * a && other.epochs[0].wire_counted);
        if (ranks == 2)
            assert_true(other.epochs[0].parameter_hash == dense.epochs[0].parameter_hash);
    }
}

static int refuse(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                  struct ddp_err *err)
{
    static const struct ddp_device gpu = {.name = "gpu"};
    const size_t offset = 0, count = LINE;
    struct ddp_sync_setup setup = {.comm = comm,
                                   .device = &gpu,
                                   .total = count,
                                   .offsets = &offset,
                                   .counts = &count,
                                   .param_count = 1};
    struct ddp_sync *sync;
    struct ddp_err why = DDP_ERR_INIT;
    (void)rank;
    (void)arg;
    CHECK(ddp_sync_zero1.create(&setup, &sync, &why) == DDP_EUNAVAIL);
    CHECK(strstr(why.text, "'gpu'") != NULL && strstr(why.text, "zero1") != NULL);
    setup.device = NULL;
    setup.algorithm = "rhd"; /* an all-reduce without halves */
    setup.total = (size_t)comm->size * count;
    why = (struct ddp_err)DDP_ERR_INIT;
    CHECK(ddp_sync_zero1.create(&setup, &sync, &why) == DDP_EUSAGE);
    CHECK(strstr(why.text, "'rhd'") != NULL);
    return 0;
}

static void devices_and_algorithms_are_refused(void **state)
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ranks_job job = {.body = refuse};
    assert_int_equal(ranks_run(2, DDP_LAUNCH_THREADS, job, &outcome, &err), 0);
    if (outcome.code != 0)
        fail_msg("%s", err.text[0] ? err.text : outcome.report_text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_cover_the_parameters),
        cmocka_unit_test(uneven_arrays_have_the_bits_of_dense),
        cmocka_unit_test(training_has_the_bits_of_dense),
        cmocka_unit_test(rings_have_the_same_result),
        cmocka_unit_test(devices_and_algorithms_are_refused),
    };
    return cmocka_run_group_tests(tests, make_few, drop_data);
}
