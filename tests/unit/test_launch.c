/* The launcher when nothing goes wrong, and errors that ranks return. test_launch_faults.c tests
 * deaths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpuinfo.h"
#include "base/rng.h"
#include "comm/shm/comm_shm.h"
#include "comm_ranks.h"
#include "names.h"

/* Every kind of launch that this build supports. */
static const enum ddp_launch_mode modes[] = {DDP_LAUNCH_THREADS, DDP_LAUNCH_PROCESSES};
static const int mode_count = RANKS_TSAN ? 1 : 2;

static int body_places(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                       struct ddp_err *err)
{
    int ranks = *(int *)arg;
    CHECK(comm->size == ranks && rank->rank_info.size == ranks);
    CHECK(comm->rank == rank->rank_info.rank && rank->rank_info.local_rank == comm->rank);
    int sum = 0, all[8];
    DDP_TRY(ddp_comm_allgather_bytes(comm, &comm->rank, all, sizeof(int), err));
    for (int r = 0; r < ranks; r++)
        sum += all[r];
    CHECK(sum == ranks * (ranks - 1) / 2);
    return 0;
}

static void test_places(void **state)
{
    for (int m = 0; m < mode_count; m++) {
        for (int ranks = 1; ranks <= 8; ranks++) {
            struct ddp_launch_outcome outcome;
            struct ddp_err err = DDP_ERR_INIT;
            struct ranks_job job = {.body = body_places, .arg = &ranks};
            assert_int_equal(ranks_run(ranks, modes[m], job, &outcome, &err), 0);
            if (outcome.code != 0)
                print_error("%s\n", outcome.report_text);
            assert_int_equal(outcome.code, 0);
            assert_int_equal(outcome.rank, -1);
            assert_int_equal(err.code, 0);
        }
    }
}

/* If there is a core for each rank, each rank is pinned to its own core. Otherwise no rank is
 * pinned. */
static int body_pinned(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                       struct ddp_err *err)
{
    int usable = *(int *)arg;
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    CHECK(rank->rank_info.oversubscribed == (comm->size > usable));
    CHECK(CPU_COUNT(&set) == (comm->size <= usable ? 1 : usable));
    int core = -1;
    for (int c = 0; c < CPU_SETSIZE && core < 0; c++)
        core = CPU_ISSET(c, &set) ? c : -1;
    int all[64];
    DDP_TRY(ddp_comm_allgather_bytes(comm, &core, all, sizeof core, err));
    for (int r = 0; comm->size <= usable && r < comm->size; r++)
        CHECK(r == comm->rank || all[r] != core);
    return 0;
}

static void test_pinned(void **state)
{
    int usable = ddp_cpu_usable_cores();
    int most = usable < 8 ? usable : 8;
    for (int m = 0; m < mode_count; m++) {
        for (int ranks = most; ranks <= most + 1; ranks++) {
            struct ddp_launch_outcome outcome;
            struct ddp_err err = DDP_ERR_INIT;
            struct ranks_job job = {.body = body_pinned, .arg = &usable};
            assert_int_equal(ranks_run(ranks, modes[m], job, &outcome, &err), 0);
            if (outcome.code != 0)
                print_error("%s\n", outcome.report_text);
            assert_int_equal(outcome.code, 0);
        }
    }
}

/* Messages of all sizes arrive complete and in order, and send returns after the handler. */
struct inbox {
    int count[8];
    uint64_t checksum[8];
    _Atomic(int) handled; /* with threads only: the ranks see it at once */
};
static const size_t sizes[] = {0, 1, 4095, 65536, 1000003, 8u << 20};
#define SIZES (sizeof sizes / sizeof sizes[0])

static unsigned char content(int rank, size_t size, size_t i)
{
    return (unsigned char)ddp_mix64((uint64_t)rank * 977 + size + i);
}

static int on_message(void *arg, int rank, uint32_t type, const void *payload, size_t bytes,
                      struct ddp_err *err)
{
    struct inbox *inbox = arg;
    const unsigned char *at = payload;
    if (type != (uint32_t)inbox->count[rank] || bytes != sizes[type % SIZES])
        return ddp_fail(err, DDP_EDATA, "type %u, %zu bytes", type, bytes);
    for (size_t i = 0; i < bytes; i += 1 + i / 64) {
        if (at[i] != content(rank, bytes, i))
            return ddp_fail(err, DDP_EDATA, "byte %zu", i);
    }
    inbox->count[rank]++;
    inbox->handled++;
    return 0;
}

static int body_send(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                     struct ddp_err *err)
{
    for (uint32_t t = 0; t < SIZES; t++) {
        unsigned char *data = malloc(sizes[t] + 1);
        CHECK(data != NULL);
        for (size_t i = 0; i < sizes[t]; i++)
            data[i] = content(comm->rank, sizes[t], i);
        int rc = ddp_launch_send(rank, t, data, sizes[t], err);
        free(data);
        DDP_TRY(rc);
    }
    return 0;
}

static void test_send(void **state)
{
    for (int m = 0; m < mode_count; m++) {
        struct inbox inbox = {0};
        struct ddp_launch_outcome outcome;
        struct ddp_err err = DDP_ERR_INIT;
        struct ranks_job job = {.body = body_send, .arg = &inbox, .on_message = on_message};
        assert_int_equal(ranks_run(3, modes[m], job, &outcome, &err), 0);
        if (outcome.code != 0)
            print_error("%s\n", outcome.report_text);
        assert_int_equal(outcome.code, 0);
        assert_int_equal(inbox.handled, 3 * SIZES);
    }
}

/* A rank's own error is the outcome of the run. The other ranks stop waiting, and their errors
 * do not replace it. */
static int body_error(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                      struct ddp_err *err)
{
    ddp_flight_phase(comm->flight, "point 3");
    if (comm->rank == 1) {
        ddp_sleep_ns(20000000);
        ddp_fail(err, DDP_EDATA, "element 7 is wrong");
        return ddp_hint(err, "try again");
    }
    int rc = ddp_comm_barrier(comm, err);
    struct ddp_err later = DDP_ERR_INIT;
    if (rc != DDP_ELOST || ddp_comm_barrier(comm, &later) != DDP_ELOST)
        abort();
    return rc;
}

static void test_rank_error(void **state)
{
    for (int m = 0; m < mode_count; m++) {
        for (int ranks = 2; ranks <= 5; ranks++) {
            struct ddp_launch_outcome outcome;
            struct ddp_err err = DDP_ERR_INIT;
            struct ranks_job job = {.body = body_error};
            int64_t start = ddp_now_ns();
            assert_int_equal(ranks_run(ranks, modes[m], job, &outcome, &err), 0);
            assert_true(ddp_now_ns() - start < 2000000000);
            assert_int_equal(outcome.code, DDP_EDATA);
            assert_int_equal(outcome.rank, 1);
            assert_int_equal(outcome.signal, 0);
            assert_int_equal(err.code, DDP_EDATA);
            assert_int_equal(err.rank, 1);
            assert_string_equal(err.text, "element 7 is wrong");
            assert_string_equal(err.hint, "try again");
            assert_true(text_names(outcome.report_text, "rank 1 (pid "));
            assert_true(text_names(outcome.report_text, "phase 'point 3'"));
            assert_true(text_names(outcome.report_text, "element 7 is wrong"));
        }
    }
}

/* If the handler fails (a full disk), its code is the run's outcome and it is not called again. */
static int full_disk(void *arg, int rank, uint32_t type, const void *payload, size_t bytes,
                     struct ddp_err *err)
{
    ++*(int *)arg;
    return ddp_fail(err, DDP_EIO, "cannot write 'out.json': no space");
}

static int body_two_sends(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                          struct ddp_err *err)
{
    if (comm->rank == 0) {
        int rc = ddp_launch_send(rank, 0, "x", 1, err);
        struct ddp_err again = DDP_ERR_INIT;
        if (rc != DDP_EIO || ddp_launch_send(rank, 0, "x", 1, &again) != DDP_EIO)
            abort();
        return rc;
    }
    for (;;)
        DDP_TRY(ddp_comm_barrier(comm, err));
}

static void test_handler_error(void **state)
{
    for (int m = 0; m < mode_count; m++) {
        int calls = 0;
        struct ddp_launch_outcome outcome;
        struct ddp_err err = DDP_ERR_INIT;
        struct ranks_job job = {.body = body_two_sends, .arg = &calls, .on_message = full_disk};
        assert_int_equal(ranks_run(3, modes[m], job, &outcome, &err), 0);
        assert_int_equal(outcome.code, DDP_EIO);
        assert_int_equal(calls, 1);
        assert_string_equal(err.text, "cannot write 'out.json': no space");
    }
}

/* One rank stays away: the wait ends at the deadline, and the error names the rank and its
 * operation. */
static int body_late(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                     struct ddp_err *err)
{
    DDP_TRY(ddp_comm_barrier(comm, err));
    if (comm->rank == 2) {
        ddp_flight_phase(comm->flight, "lost in thought");
        while (atomic_load(comm->shm->abort_word) == 0)
            ddp_sleep_ns(1000000);
        return 0;
    }
    return ddp_comm_barrier(comm, err);
}

static void test_deadline(void **state)
{
    for (int m = 0; m < mode_count; m++) {
        struct ddp_launch_outcome outcome;
        struct ddp_err err = DDP_ERR_INIT;
        struct ranks_job job = {.body = body_late, .timeout_ns = 300000000};
        int64_t start = ddp_now_ns();
        assert_int_equal(ranks_run(3, modes[m], job, &outcome, &err), 0);
        assert_in_range(ddp_now_ns() - start, 300000000, 3000000000);
        assert_int_equal(outcome.code, DDP_ELOST);
        assert_int_equal(outcome.rank, 2);
        assert_true(text_names(outcome.report_text, "rank 2 (pid "));
        assert_true(text_names(outcome.report_text, "lost in thought"));
        assert_true(text_names(err.text, "rank 2"));
        assert_true(err.rank == 0 || err.rank == 1);
    }
}

/* Rank 1 waits for rank 0, which waits for the parent process, which is slow. No rank is
 * reported as the cause. */
static int body_slow_collector(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                               struct ddp_err *err)
{
    for (int i = 0; i < 2; i++) {
        if (comm->rank == 0)
            DDP_TRY(ddp_launch_send(rank, 1, &i, sizeof i, err));
        DDP_TRY(ddp_comm_barrier(comm, err));
    }
    return 0;
}

static int handle_slowly(void *arg, int rank, uint32_t type, const void *payload, size_t bytes,
                         struct ddp_err *err)
{
    ddp_sleep_ns(*(const int *)payload == 0 ? 2300000000 : 0);
    return 0;
}

static void test_slow_collector(void **state)
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    struct ranks_job job = {
        .body = body_slow_collector, .on_message = handle_slowly, .timeout_ns = 1000000000};
    assert_int_equal(ranks_run(2, modes[mode_count - 1], job, &outcome, &err), 0);
    if (outcome.code != 0)
        print_error("%s\n", outcome.report_text);
    assert_int_equal(outcome.code, 0);
}

/* Both ranks compute. Rank 1 beats four times, and then computes without a beat until the run
 * ends. */
static int body_compute(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                        struct ddp_err *err)
{
    const int64_t timeout_ns = *(const int64_t *)arg;
    DDP_TRY(ddp_comm_barrier(comm, err));
    ddp_flight_phase(comm->flight, "deep in thought");
    ddp_flight_compute(comm->flight, true);
    for (int i = 0; atomic_load(comm->shm->abort_word) == 0; i++) {
        ddp_sleep_ns(timeout_ns / 2);
        if (comm->rank == 0 || i < 4)
            ddp_flight_beat(comm->flight);
    }
    return 0;
}

static void test_stalled(void **state)
{
    int64_t timeout_ns = 300000000;
    for (int m = 0; m < mode_count; m++) {
        struct ddp_launch_outcome outcome;
        struct ddp_err err = DDP_ERR_INIT;
        struct ranks_job job = {.body = body_compute, .arg = &timeout_ns, .timeout_ns = timeout_ns};
        int64_t start = ddp_now_ns();
        assert_int_equal(ranks_run(2, modes[m], job, &outcome, &err), 0);
        assert_in_range(ddp_now_ns() - start, 3 * timeout_ns, 20 * timeout_ns);
        assert_int_equal(outcome.code, DDP_ELOST);
        assert_int_equal(outcome.rank, 1);
        assert_true(text_names(outcome.report_text, "rank 1 (pid "));
        assert_true(text_names(outcome.report_text, "deep in thought"));
    }
}

static void test_refusals(void **state)
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    struct ranks_job job = {.body = body_places};
    assert_int_equal(ranks_run(0, DDP_LAUNCH_PROCESSES, job, &outcome, &err), DDP_EUSAGE);
    err = DDP_ERR_INIT;
    assert_int_equal(ranks_run(257, DDP_LAUNCH_PROCESSES, job, &outcome, &err), DDP_EUSAGE);
    /* 2^47 bytes for each of 8 ranks exceed the address space. */
    err = DDP_ERR_INIT;
    job.heap_bytes = UINT64_C(1) << 47;
    assert_int_equal(ranks_run(8, DDP_LAUNCH_PROCESSES, job, &outcome, &err), DDP_ENOMEM);
    assert_true(err.text[0] != '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),        cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_send),          cmocka_unit_test(test_rank_error),
        cmocka_unit_test(test_handler_error), cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_slow_collector),
        cmocka_unit_test(test_stalled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
