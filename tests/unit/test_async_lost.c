/* Non-blocking collectives when a rank is late, gives up, or dies. ThreadSanitizer runs it with
 * ranks as threads (DDP_LAUNCH_THREADS). */
#include "async_ranks.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "names.h"

/* Rank 1 never takes part: wait on rank 0 fails at the deadline, and so do later requests. */
static int body_late(struct ddp_comm *comm, struct ddp_async *async, struct ddp_err *err)
{
    float data[2] = {1, 1};
    struct ddp_async_request first, second;
    struct ddp_coll_args args = sum_of(&data[0], 1);
    if (comm->rank == 1) {
        ddp_sleep_ns(1000000000);
        return 0;
    }
    DDP_TRY(start_request(async, NULL, &args, &first, err));
    args = sum_of(&data[1], 1);
    DDP_TRY(start_request(async, NULL, &args, &second, err));
    struct ddp_err lost = DDP_ERR_INIT;
    const int64_t begin = ddp_now_ns();
    CHECK(ddp_async_wait(&first, 0, &lost) == DDP_ELOST && lost.code == DDP_ELOST);
    CHECK(text_names(lost.text, "300 ms|rank 1"));
    CHECK(ddp_now_ns() - begin > 200000000 && ddp_now_ns() - begin < 900000000);
    struct ddp_err also = DDP_ERR_INIT;
    CHECK(ddp_async_wait(&second, 0, &also) == DDP_ELOST && also.code == DDP_ELOST);
    CHECK(data[0] == 1 && data[1] == 1);
    ddp_async_release(&first);
    ddp_async_release(&second);
    return 0;
}

/* The deadline given to wait itself. */
static int body_own_deadline(struct ddp_comm *comm, struct ddp_async *async, struct ddp_err *err)
{
    float data = 1;
    struct ddp_async_request request;
    const struct ddp_coll_args args = sum_of(&data, 1);
    if (comm->rank == 1) {
        /* Rank 0 releases this rank with a message, not after a time. */
        DDP_TRY(ddp_comm_barrier(comm, err));
        return ddp_comm_barrier(comm, err) == DDP_ELOST ? 0 : DDP_EDATA;
    }
    DDP_TRY(ddp_comm_barrier(comm, err));
    DDP_TRY(start_request(async, NULL, &args, &request, err));
    struct ddp_err lost = DDP_ERR_INIT;
    const int64_t begin = ddp_now_ns();
    CHECK(ddp_async_wait(&request, 100000000, &lost) == DDP_ELOST);
    CHECK(ddp_now_ns() - begin >= 100000000 && ddp_now_ns() - begin < 2000000000);
    CHECK(text_names(lost.text, "100 ms"));
    CHECK(text_names(lost.text, "allreduce seq 0"));
    ddp_async_release(&request);
    return 0;
}

/* Abort on one rank ends the wait of another. */
static int body_abort(struct ddp_comm *comm, struct ddp_async *async, struct ddp_err *err)
{
    float data = 1;
    struct ddp_async_request request;
    const struct ddp_coll_args args = sum_of(&data, 1);
    if (comm->rank == 1) {
        ddp_sleep_ns(50000000);
        ddp_comm_abort(comm, DDP_EDATA);
        return 0;
    }
    DDP_TRY(start_request(async, NULL, &args, &request, err));
    struct ddp_err lost = DDP_ERR_INIT;
    const int64_t begin = ddp_now_ns();
    CHECK(ddp_async_wait(&request, 0, &lost) == DDP_ELOST);
    CHECK(ddp_now_ns() - begin < 2000000000);
    CHECK(text_names(lost.text, "rank 1|11"));
    ddp_async_release(&request);
    return 0;
}

/* The launch must end with the code of the abort. Errors that ranks found are in err. */
static void expect_ended(struct job job, int code)
{
    for (int mode = DDP_LAUNCH_THREADS; mode >= ONLY_THREADS; mode--) {
        struct ddp_launch_outcome outcome;
        struct ddp_err err = DDP_ERR_INIT;
        assert_int_equal(run(2, (enum ddp_launch_mode)mode, job, &outcome, &err), 0);
        if (outcome.code != code || text_names(err.text, "test_async_lost.c"))
            fail_msg("code %d: %s; %s", outcome.code, outcome.report_text, err.text);
    }
}

static void test_late(void **state)
{
    expect_ended((struct job){.body = body_late, .timeout_ns = 300000000}, DDP_ELOST);
}

static void test_own_deadline(void **state)
{
    expect_ended((struct job){.body = body_own_deadline}, DDP_ELOST);
}

static void test_abort(void **state)
{
    expect_ended((struct job){.body = body_abort}, DDP_EDATA);
}

/* A rank dies while it waits for its progress thread. The supervisor must still name the
 * operation. */
static int body_killed(struct ddp_comm *comm, struct ddp_async *async, struct ddp_err *err)
{
    float data[1000] = {0};
    struct ddp_async_request request;
    const struct ddp_coll_args args = sum_of(data, 1000);
    DDP_TRY(ddp_comm_barrier(comm, err));
    if (comm->rank == 0) {
        ddp_sleep_ns(200000000);
        return start_request(async, NULL, &args, &request, err);
    }
    DDP_TRY(start_request(async, NULL, &args, &request, err));
    const struct itimerspec in = {.it_value = {.tv_nsec = 50000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &in, NULL) == 0);
    return ddp_async_wait(&request, 0, err);
}

static void test_killed(void **state)
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    if (ONLY_THREADS)
        return; /* needs ranks that are processes */
    assert_int_equal(
        run(2, DDP_LAUNCH_PROCESSES, (struct job){.body = body_killed}, &outcome, &err), 0);
    assert_int_equal(outcome.code, DDP_ELOST);
    assert_int_equal(outcome.rank, 1);
    assert_int_equal(outcome.signal, SIGKILL);
    if (!text_names(outcome.report_text, "allreduce seq ") ||
        !text_names(outcome.report_text, " (3.906 KiB, f32)"))
        fail_msg("%s", outcome.report_text);
}

/* A rank dies while it computes. Its own recorder does not know the collective, but the recorder
 * of its progress thread does. */
static int body_killed_computing(struct ddp_comm *comm, struct ddp_async *async,
                                 struct ddp_err *err)
{
    float data[1000] = {0};
    struct ddp_async_request request;
    const struct ddp_coll_args args = sum_of(data, 1000);
    DDP_TRY(ddp_comm_barrier(comm, err));
    if (comm->rank == 0)
        return ddp_comm_barrier(comm, err);
    DDP_TRY(start_request(async, NULL, &args, &request, err));
    ddp_sleep_ns(100000000);
    return raise(SIGKILL);
}

static void test_killed_computing(void **state)
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    if (ONLY_THREADS)
        return; /* needs ranks that are processes */
    assert_int_equal(
        run(2, DDP_LAUNCH_PROCESSES, (struct job){.body = body_killed_computing}, &outcome, &err),
        0);
    assert_int_equal(outcome.signal, SIGKILL);
    if (!text_names(outcome.report_text, "allreduce seq 0"))
        fail_msg("%s", outcome.report_text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_own_deadline),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_killed_computing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
