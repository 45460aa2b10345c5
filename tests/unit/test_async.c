/* Non-blocking collectives: results, order, sleeping and misuse. test_async_lost.c tests the
 * loss of ranks. ThreadSanitizer runs it with ranks as threads (DDP_LAUNCH_THREADS). */
#include "async_ranks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"

static void run_all(struct job job)
{
    static const int ranks[] = {1, 2, 3, 4};
    for (int mode = DDP_LAUNCH_THREADS; mode >= ONLY_THREADS; mode--) {
        for (size_t i = 0; i < DDP_COUNT_OF(ranks); i++) {
            struct ddp_launch_outcome outcome;
            struct ddp_err err = DDP_ERR_INIT;
            assert_int_equal(run(ranks[i], (enum ddp_launch_mode)mode, job, &outcome, &err), 0);
            if (outcome.code != 0)
                print_error("%d ranks: %s\n%s\n", ranks[i], outcome.report_text, err.text);
            assert_int_equal(outcome.code, 0);
        }
    }
}

/* Many requests at once, registered and private, large and small. Ranks wait for the last one
 * first and use the parent communicator meanwhile. */
static int body_many(struct ddp_comm *comm, struct ddp_async *async, struct ddp_err *err)
{
    static const size_t counts[] = {1, 100000, 7, 0, 3000, 65536, 2, 500};
    enum { N = sizeof counts / sizeof counts[0] };
    struct ddp_async_request requests[N];
    float *data[N];
    const float sum = (float)comm->size * (float)(comm->size + 1) / 2;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < N; i++) {
            void *block = malloc(counts[i] * sizeof(float) + 64);
            if (i % 2 == 0)
                free(block);
            if (i % 2 == 0)
                DDP_TRY(ddp_comm_alloc(comm, counts[i] * sizeof(float) + 64, &block, err));
            CHECK(block != NULL);
            data[i] = block;
            for (size_t j = 0; j < counts[i]; j++)
                data[i][j] = (float)(comm->rank + 1) * (float)(i + 1 + round);
            struct ddp_coll_args args = sum_of(data[i], counts[i]);
            DDP_TRY(start_request(async, NULL, &args, &requests[i], err));
            float one = 1;
            struct ddp_coll_plan plan;
            args = sum_of(&one, 1);
            DDP_TRY(ddp_coll_plan_init(&plan, comm, NULL, &args, err));
            DDP_TRY(ddp_coll_run(comm, &plan, err));
            ddp_coll_plan_release(&plan);
            CHECK(one == (float)comm->size);
        }
        for (int i = N - 1; i >= 0; i--) {
            DDP_TRY(ddp_async_wait(&requests[i], 0, err));
            for (size_t j = 0; j < counts[i]; j++)
                CHECK(data[i][j] == sum * (float)(i + 1 + round));
            CHECK(ddp_async_wait(&requests[i], 0, err) == 0); /* waiting again is allowed */
            ddp_async_release(&requests[i]);
        }
        for (int i = 0; i < N; i++) {
            if (i % 2 == 0)
                ddp_comm_free(comm, data[i]);
            else
                free(data[i]);
        }
    }
    return 0;
}

static void test_many(void **state)
{
    run_all((struct job){.body = body_many});
}

struct note {
    int *order, *next, mine;
};

static void note_order(void *arg)
{
    struct note *note = arg;
    note->order[(*note->next)++] = note->mine;
}

/* Prepared once and posted often. `after` runs in the order of posting and before the request is
 * done. */
static int body_prepared(struct ddp_comm *comm, struct ddp_async *async, struct ddp_err *err)
{
    enum { N = 3 };
    struct ddp_async_request requests[N];
    struct note notes[N];
    float data[N];
    int order[64], next = 0;
    for (int i = 0; i < N; i++) {
        const struct ddp_coll_args args = sum_of(&data[i], 1);
        DDP_TRY(ddp_async_prepare(async, NULL, &args, &requests[i], err));
        notes[i] = (struct note){order, &next, i};
        requests[i].after = note_order;
        requests[i].arg = &notes[i];
        CHECK(ddp_async_wait(&requests[i], 0, err) == 0); /* never posted */
    }
    const uint64_t entered = atomic_load(&comm->flight->entered);
    for (int step = 0; step < 20; step++) {
        for (int i = 0; i < N; i++)
            data[i] = (float)(comm->rank + step + i);
        ddp_async_post(&requests[2]);
        ddp_async_post(&requests[0]);
        ddp_async_post(&requests[1]);
        DDP_TRY(ddp_async_wait(&requests[1], 0, err));
        CHECK(next == 3 * (step + 1));
        CHECK(order[3 * step] == 2 && order[3 * step + 1] == 0 && order[3 * step + 2] == 1);
        DDP_TRY(ddp_async_wait(&requests[0], 0, err));
        DDP_TRY(ddp_async_wait(&requests[2], 0, err));
        for (int i = 0; i < N; i++) {
            float expected = 0;
            for (int r = 0; r < comm->size; r++)
                expected += (float)(r + step + i);
            CHECK(data[i] == expected);
        }
    }
    /* The parent's recorder has every operation once, the same on every rank. */
    CHECK(atomic_load(&comm->flight->entered) == entered + 60);
    for (int i = 0; i < N; i++)
        ddp_async_release(&requests[i]);
    return 0;
}

static void test_prepared(void **state)
{
    run_all((struct job){.body = body_prepared});
}

/* Destroying waits for the requests under way. */
static int body_destroy(struct ddp_comm *comm, struct ddp_async *async, struct ddp_err *err)
{
    struct ddp_async *second;
    struct ddp_async_request request;
    float data[1000];
    DDP_TRY(ddp_async_create(comm, &second, err));
    for (int i = 0; i < 1000; i++)
        data[i] = 1;
    const struct ddp_coll_args args = sum_of(data, 1000);
    DDP_TRY(start_request(second, NULL, &args, &request, err));
    ddp_async_destroy(second);
    CHECK(data[0] == (float)comm->size && data[999] == (float)comm->size);
    ddp_async_release(&request);
    CHECK(ddp_async_comm(async) != comm && ddp_async_flight(async) != comm->flight);
    return 0;
}

static void test_destroy(void **state)
{
    run_all((struct job){.body = body_destroy});
    ddp_async_destroy(NULL);
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A process without work sleeps and uses no CPU time. */
static int body_idle(struct ddp_comm *comm, struct ddp_async *async, struct ddp_err *err)
{
    float data = 1;
    struct ddp_async_request request;
    const struct ddp_coll_args args = sum_of(&data, 1);
    DDP_TRY(start_request(async, NULL, &args, &request, err));
    DDP_TRY(ddp_async_wait(&request, 0, err));
    ddp_async_release(&request);
    const int64_t before = cpu_ns();
    ddp_sleep_ns(300000000);
    CHECK(cpu_ns() - before < 15000000);
    return 0;
}

static void test_idle(void **state)
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    if (ONLY_THREADS)
        return; /* needs ranks that are processes */
    assert_int_equal(run(2, DDP_LAUNCH_PROCESSES, (struct job){.body = body_idle}, &outcome, &err),
                     0);
    assert_string_equal(outcome.report_text, "");
}

/* If a plan cannot be made, the start returns the error and nothing is queued. */
static int body_illegal(struct ddp_comm *comm, struct ddp_async *async, struct ddp_err *err)
{
    float data = 1;
    struct ddp_async_request request;
    struct ddp_coll_args args = sum_of(&data, SIZE_MAX / 2);
    struct ddp_err wrong = DDP_ERR_INIT;
    CHECK(start_request(async, NULL, &args, &request, &wrong) == DDP_EUSAGE);
    CHECK(ddp_async_prepare(async, NULL, &args, &request, NULL) == DDP_EUSAGE);
    ddp_async_release(&request);
    const struct ddp_coll_alg *direct = ddp_coll_find(DDP_ALLREDUCE, "direct");
    args = sum_of(&data, 1);
    CHECK(start_request(async, direct, &args, &request, NULL) == DDP_EUNAVAIL);
    DDP_TRY(start_request(async, ddp_coll_find(DDP_ALLREDUCE, "staged"), &args, &request, err));
    DDP_TRY(ddp_async_wait(&request, 0, err));
    ddp_async_release(&request);
    CHECK(data == (float)comm->size);
    return 0;
}

static void test_illegal(void **state)
{
    run_all((struct job){.body = body_illegal});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),    cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_destroy), cmocka_unit_test(test_idle),
        cmocka_unit_test(test_illegal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
