/* The report of which rank waits for which: from recorders that the test fills, and from ranks
 * that really wait. Ranks are processes and threads (DDP_LAUNCH_THREADS). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/coll_kind.h"
#include "base/cpuinfo.h"
#include "coll/coll.h"
#include "comm/shm/comm_shm.h"
#include "comm_ranks.h"
#include "diag/flight_report.h"
#include "names.h"

#define RANKS 4
#define GROUP 77

/* One recorder per rank. */
static struct ddp_flight flights[RANKS];

static int reset(void **state)
{
    (void)state;
    memset(flights, 0, sizeof flights);
    for (int r = 0; r < RANKS; r++)
        ddp_flight_phase(&flights[r], "point 9");
    return 0;
}

static void enter(int rank, unsigned what, uint64_t bytes, uint64_t group, uint64_t seq)
{
    const struct ddp_flight_op op = {
        .what = what, .bytes = bytes, .group = group, .seq = seq, .ranks = 3};
    ddp_flight_enter_op(&flights[rank], &op);
}

static void did(int rank, unsigned what, uint64_t bytes, uint64_t group, uint64_t seq)
{
    enter(rank, what, bytes, group, seq);
    ddp_flight_leave(&flights[rank], flights[rank].entered - 1, 0);
}

static void assert_report(int by, int peer, const char *expected)
{
    const struct ddp_flights all = {.first = flights, .stride = sizeof flights[0], .ranks = RANKS};
    char text[512] = "nothing";
    assert_int_equal(ddp_flight_report(&all, by, peer, text, sizeof text),
                     strcmp(expected, "nothing") != 0);
    if (!text_names(text, expected))
        fail_msg("'%s' does not name %s", text, expected);
}

/* The other ranks have done different numbers of operations outside the world's group, which
 * must not matter. */
static void test_never_entered(void **state)
{
    (void)state;
    for (int r = 0; r < RANKS; r++) {
        did(r, DDP_BARRIER, 0, 0, 40);
        for (int i = 0; i < 3 * r; i++)
            ddp_flight_enter(&flights[r], DDP_FLIGHT_SEND, 0, 8);
        did(r, DDP_FLIGHT_EXCHANGE, 8, 0, 100 + (uint64_t)r);
        if (r != 2)
            enter(r, DDP_ALLREDUCE, 64u << 20, 0, 41);
    }
    assert_report(0, 2,
                  "rank 2|allreduce seq 41|0, 1, 3|64 MiB, f32|'point 9'|exchange seq 102|8 B");
    assert_report(2, -1, "nothing"); /* rank 2 waits for nothing */
}

static void test_two_never_entered(void **state)
{
    (void)state;
    enter(0, DDP_BARRIER, 0, 0, 5);
    did(1, DDP_BARRIER, 0, 0, 4);
    enter(2, DDP_BARRIER, 0, 0, 4);
    did(3, DDP_BARRIER, 0, 0, 5);
    assert_report(0, 1, "ranks 1, 2|barrier seq 5|0 |3 |'point 9'|rank 1|barrier seq 4");
}

static void test_all_inside(void **state)
{
    (void)state;
    for (int r = 0; r < RANKS; r++)
        enter(r, DDP_ALLREDUCE, 8, 0, 1);
    ddp_flight_leave(&flights[1], 0, 1); /* gave up a moment before */
    assert_report(3, 1, "0-3|allreduce seq 1|8 B, f32|'point 9'");
}

/* A program whose ranks call different operations. */
static void test_other_operation(void **state)
{
    (void)state;
    enter(0, DDP_ALLREDUCE, 8, 0, 1);
    enter(1, DDP_BROADCAST, 16, 0, 1);
    enter(2, DDP_ALLREDUCE, 8, 0, 1);
    enter(3, DDP_ALLREDUCE, 8, 0, 1);
    assert_report(0, 1, "0, 2, 3|allreduce seq 1|8 B, f32|'point 9'|1 |broadcast seq 1|16 B, f32");
}

/* Each rank is named with its own operation, not with that of another rank. */
static void test_different_operations(void **state)
{
    (void)state;
    enter(0, DDP_ALLREDUCE, 8, 0, 1);
    enter(1, DDP_BROADCAST, 16, 0, 1);
    enter(2, DDP_BARRIER, 0, 0, 1);
    enter(3, DDP_BROADCAST, 16, 0, 1);
    assert_report(0, 1, "0 |allreduce seq 1|ranks 1, 3 are|broadcast seq 1|16 B, f32|rank 2 is");
}

/* Ranks outside the group are not waited for. A rank belongs to the group if its recorder has an
 * operation of the group or if it is the rank waited for. */
static void test_group(void **state)
{
    (void)state;
    did(0, DDP_BARRIER, 0, GROUP, 0);
    did(1, DDP_BARRIER, 0, GROUP, 0);
    enter(0, DDP_BARRIER, 0, GROUP, 1);
    did(3, DDP_BARRIER, 0, GROUP + 1, 0);
    assert_report(0, -1, "rank 1|barrier seq 1|3|0 |'point 9'|barrier seq 0");
    assert_report(0, 2, "ranks 1, 2|barrier seq 1|3|0 |'point 9'|rank 1|barrier seq 0");
}

/* A rank that is far ahead has overwritten the operation in its ring. */
static void test_long_gone(void **state)
{
    (void)state;
    enter(0, DDP_BARRIER, 0, 0, 3);
    for (int r = 1; r < RANKS; r++) {
        for (uint64_t i = 0; i < 2 * DDP_FLIGHT_DEPTH; i++)
            did(r, DDP_BARRIER, 0, 0, i);
    }
    assert_report(0, -1, "0 |barrier seq 3|1, 2, 3|'point 9'");
}

static void test_no_room(void **state)
{
    (void)state;
    enter(0, DDP_BARRIER, 0, 0, 0);
    const struct ddp_flights all = {.first = flights, .stride = sizeof flights[0], .ranks = RANKS};
    char small[16];
    assert_true(ddp_flight_report(&all, 0, -1, small, sizeof small));
    assert_int_equal(strlen(small), sizeof small - 1);
}

static void test_rank_list(void **state)
{
    (void)state;
    static const struct {
        const char *marks, *text;
        int count;
    } cases[] = {
        {"", "", 0},           {"...", "", 0},     {"x..x", "0, 3", 2},
        {"xxx", "0, 1, 2", 3}, {"xxxx", "0-3", 4}, {".xxxxx.x", "1-5, 7", 6},
    };
    char text[16];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const unsigned char *marks = (const unsigned char *)cases[i].marks;
        int n = (int)strlen(cases[i].marks);
        assert_int_equal(ddp_rank_list(marks, n, 'x', text, sizeof text), cases[i].count);
        assert_string_equal(text, cases[i].text);
    }
    const unsigned char *far = (const unsigned char *)"x.x.x.x.x.x.x.x.";
    assert_int_equal(ddp_rank_list(far, 16, 'x', text, sizeof text), 8);
    assert_string_equal(text, "0, 2, 4, 6, ...");
}

/* Rank 2 stays away from the third collective. Ranks 0 and 1 make a group first, and every rank
 * sometimes waits for an operation of its own. */
static int body_away(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                     struct ddp_err *err)
{
    static const int pair[] = {0, 1};
    struct ddp_comm *group;
    struct ddp_coll_plan plan;
    float data = 1;
    const struct ddp_coll_args args = {
        .coll = DDP_ALLREDUCE, .send = &data, .recv = &data, .count = 1, .dtype = DDP_F32};
    (void)rank;
    (void)arg;
    comm->device = ddp_device_cpu(ddp_cpu_best_simd());
    if (comm->rank < 2) {
        ddp_sleep_ns(comm->rank * 20000000);
        DDP_TRY(ddp_comm_group(comm, pair, 2, &group, err));
        DDP_TRY(ddp_comm_barrier(group, err));
        ddp_comm_destroy(group);
    }
    DDP_TRY(ddp_comm_barrier(comm, err));
    DDP_TRY(ddp_comm_agree(comm, 0, err));
    DDP_TRY(ddp_coll_plan_init(&plan, comm, NULL, &args, err));
    int rc = ddp_coll_run(comm, &plan, err);
    if (rc == 0 && comm->rank == 2) {
        ddp_flight_phase(comm->flight, "lost in thought");
        while (atomic_load(comm->shm->abort_word) == 0)
            ddp_sleep_ns(1000000);
    } else if (rc == 0) {
        rc = ddp_coll_run(comm, &plan, err);
    }
    ddp_coll_plan_release(&plan);
    return rc;
}

static void test_ranks(void **state)
{
    (void)state;
    const enum ddp_launch_mode modes[] = {DDP_LAUNCH_THREADS, DDP_LAUNCH_PROCESSES};
    for (int m = 0; m < (RANKS_TSAN ? 1 : 2); m++) {
        struct ddp_launch_outcome outcome;
        struct ddp_err err = DDP_ERR_INIT;
        const struct ranks_job job = {.body = body_away, .timeout_ns = 300000000};
        assert_int_equal(ranks_run(RANKS, modes[m], job, &outcome, &err), 0);
        assert_int_equal(outcome.code, DDP_ELOST);
        assert_int_equal(outcome.rank, 2);
        if (!text_names(err.text, "300 ms|rank 2|allreduce seq 2|0, 1, 3|4 B, f32") ||
            !text_names(err.text, "rank 2|'lost in thought'|allreduce seq 1"))
            fail_msg("%s", err.text);
    }
}

/* A group's id is the same on all its ranks. Another group has another id, even with the same
 * ranks. */
static int body_ids(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                    struct ddp_err *err)
{
    static const int even[] = {0, 2}, odd[] = {1, 3}, all[] = {0, 1, 2, 3};
    struct ddp_comm *half, *again, *whole;
    (void)rank;
    (void)arg;
    const int *mine = comm->rank % 2 ? odd : even;
    DDP_TRY(ddp_comm_group(comm, mine, 2, &half, err));
    DDP_TRY(ddp_comm_group(comm, all, 4, &whole, err));
    DDP_TRY(ddp_comm_group(comm, mine, 2, &again, err));
    uint64_t ids[3] = {half->id, again->id, whole->id}, got[RANKS][3];
    DDP_TRY(ddp_comm_allgather_bytes(comm, ids, got, sizeof ids, err));
    CHECK(comm->id == 0 && ids[0] != 0 && ids[1] != 0 && ids[2] != 0);
    CHECK(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
    for (int r = 0; r < RANKS; r++) {
        const bool same = r % 2 == comm->rank % 2;
        CHECK((got[r][0] == ids[0]) == same && (got[r][1] == ids[1]) == same);
        CHECK(got[r][2] == ids[2]);
    }
    ddp_comm_destroy(again);
    ddp_comm_destroy(whole);
    ddp_comm_destroy(half);
    return 0;
}

static void test_ids(void **state)
{
    (void)state;
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ranks_job job = {.body = body_ids};
    assert_int_equal(ranks_run(RANKS, DDP_LAUNCH_THREADS, job, &outcome, &err), 0);
    if (outcome.code != 0)
        fail_msg("%s", outcome.report_text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_never_entered, reset),
        cmocka_unit_test_setup(test_two_never_entered, reset),
        cmocka_unit_test_setup(test_all_inside, reset),
        cmocka_unit_test_setup(test_other_operation, reset),
        cmocka_unit_test_setup(test_different_operations, reset),
        cmocka_unit_test_setup(test_group, reset),
        cmocka_unit_test_setup(test_long_gone, reset),
        cmocka_unit_test_setup(test_no_room, reset),
        cmocka_unit_test(test_rank_list),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
