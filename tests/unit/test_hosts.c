/* Hosts: DDPBENCH_SIMULATE_HOSTS, the ranks of a world and of its groups that share a host, and the
 * segment that another process attaches. tests/mpi tests hosts under mpiexec. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "comm/hosts.h"
#include "comm_ranks.h"
#include "launch/segment.h"
#include "names.h"

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int size, of[6];
    } good[] = {
        {"1", 3, {0, 0, 0}},
        {"2", 4, {0, 0, 1, 1}},
        {"3", 3, {0, 1, 2}},
        {"1+3", 4, {0, 1, 1, 1}},
        {"2+1", 3, {0, 0, 1}},
        {"2*", 5, {0, 1, 0, 1, 0}},
        {"1+2+3", 6, {0, 1, 1, 2, 2, 2}},
    };
    static const struct {
        const char *text;
        int size;
    } bad[] = {{"", 2},   {"0", 2},   {"-1", 2},   {"3", 4},
               {"5", 4},  {"1+2", 4}, {"2+3", 4},  {"1+", 1},
               {"+2", 2}, {"2x", 2},  {"x", 2},    {"2**", 2},
               {"5*", 4}, {"1+x", 2}, {"1++1", 2}, {"99999999999999999999", 2}};
    uint64_t of[6];
    for (size_t i = 0; i < DDP_COUNT_OF(good); i++) {
        struct ddp_err err = DDP_ERR_INIT;
        assert_int_equal(ddp_hosts_parse(good[i].text, good[i].size, of, &err), 0);
        for (int r = 0; r < good[i].size; r++)
            assert_int_equal(of[r], good[i].of[r]);
    }
    for (size_t i = 0; i < DDP_COUNT_OF(bad); i++) {
        struct ddp_err err = DDP_ERR_INIT;
        if (ddp_hosts_parse(bad[i].text, bad[i].size, of, &err) != DDP_EUSAGE)
            fail_msg("'%s' for %d ranks was taken", bad[i].text, bad[i].size);
        assert_true(text_names(err.text, "DDPBENCH_SIMULATE_HOSTS"));
        assert_true(err.hint[0] != '\0');
    }
}

/* Compares the hosts of a communicator: their number, the number of ranks on this host, and the
 * lowest rank of this host. */
static int check_hosts(const struct ddp_comm *comm, int count, int here, int leader,
                       struct ddp_err *err)
{
    const struct ddp_hosts *h = comm->hosts;
    CHECK(h != NULL && h->count == count && h->local != NULL);
    CHECK(h->local->size == here && h->leader[h->mine] == leader);
    CHECK(h->of[comm->rank] == h->mine);
    return 0;
}

/* Checks the ranks 0 | 1 2 | of "1+2", and groups of them. */
static int check_groups(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                        struct ddp_err *err)
{
    (void)rank;
    (void)arg;
    static const int ends[] = {0, 2}, pair[] = {1, 2};
    struct ddp_comm *group;
    DDP_TRY(check_hosts(comm, 2, comm->rank == 0 ? 1 : 2, comm->rank == 0 ? 0 : 1, err));
    CHECK(comm->hosts->local->hosts == NULL);
    if (comm->rank != 1) {
        DDP_TRY(ddp_comm_group(comm, ends, 2, &group, err));
        DDP_TRY(check_hosts(group, 2, 1, group->rank, err));
        ddp_comm_destroy(group);
    }
    if (comm->rank != 0) {
        DDP_TRY(ddp_comm_group(comm, pair, 2, &group, err));
        DDP_TRY(check_hosts(group, 1, 2, 0, err));
        CHECK(group->hosts->local->rank == group->rank);
        DDP_TRY(ddp_comm_barrier(group->hosts->local, err));
        ddp_comm_destroy(group);
    }
    return ddp_comm_barrier(comm, err);
}

static void run(const char *hosts, int expected)
{
    struct ddp_launch_outcome outcome = {0};
    struct ddp_err err = DDP_ERR_INIT;
    setenv("DDPBENCH_SIMULATE_HOSTS", hosts, 1);
    int rc = ranks_run(3, DDP_LAUNCH_PROCESSES, (struct ranks_job){.body = check_groups}, &outcome,
                       &err);
    unsetenv("DDPBENCH_SIMULATE_HOSTS");
    if (rc != 0 || outcome.code != expected)
        fail_msg("%d, %d: %s (%s)", rc, outcome.code, err.text, outcome.report_text);
}

static void test_groups(void **state)
{
    (void)state;
    run("1+2", 0);
    run("2", DDP_EUSAGE); /* fewer than the 3 ranks */
}

/* The exchange of a rank that reports a failure where its group in shared memory was made. */
static int exchange_failure(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                            struct ddp_err *err)
{
    int32_t code = 0;
    if (bytes == sizeof code && comm->hosts != NULL && comm->hosts->local != NULL) {
        memcpy(&code, mine, sizeof code);
        code = code == 0 ? DDP_ENOMEM : code;
        mine = &code;
    }
    return ddp_backend_find("shm")->exchange(comm, mine, all, bytes, err);
}

static int fail_group(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                      struct ddp_err *err)
{
    static const int pair[] = {0, 2};
    struct ddp_backend failing = *comm->backend;
    struct ddp_comm *group;
    (void)rank;
    (void)arg;
    failing.exchange = exchange_failure;
    if (comm->rank == 2)
        comm->backend = &failing;
    const int rc = comm->rank == 1 ? 0 : ddp_comm_group(comm, pair, 2, &group, err);
    comm->backend = ddp_backend_find("shm");
    return rc;
}

/* A rank whose own group was made reports the rank that failed, and its code. */
static void test_failed_group(void **state)
{
    struct ddp_launch_outcome outcome = {0};
    struct ddp_err err = DDP_ERR_INIT;
    (void)state;
    setenv("DDPBENCH_SIMULATE_HOSTS", "1+2", 1);
    const int rc =
        ranks_run(3, DDP_LAUNCH_PROCESSES, (struct ranks_job){.body = fail_group}, &outcome, &err);
    unsetenv("DDPBENCH_SIMULATE_HOSTS");
    if (rc != 0 || outcome.code != DDP_ENOMEM || !text_names(err.text, "rank 1|shared memory"))
        fail_msg("%d, %d: %s (%s)", rc, outcome.code, err.text, outcome.report_text);
}

/* One host, and DDPBENCH_SIMULATE_HOSTS does not simulate more: no hosts are created. */
static int check_plain(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                       struct ddp_err *err)
{
    (void)rank;
    (void)arg;
    CHECK(comm->hosts == NULL && ddp_comm_has_registered(comm, NULL, 0));
    return 0;
}

static void test_plain(void **state)
{
    (void)state;
    struct ddp_launch_outcome outcome = {0};
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(
        ranks_run(2, DDP_LAUNCH_PROCESSES, (struct ranks_job){.body = check_plain}, &outcome, &err),
        0);
    assert_int_equal(outcome.code, 0);
}

/* Two mappings of one segment. Files that are not segments, or belong to another world, are
 * refused. */
static void test_attach(void **state)
{
    (void)state;
    struct ddp_segment *made, *attached = NULL;
    struct ddp_err err = DDP_ERR_INIT;
    int fd = -1, other = memfd_create("other", MFD_CLOEXEC);
    assert_int_equal(ddp_segment_create(2, 1 << 20, &made, &fd, &err), 0);
    assert_int_equal(ddp_segment_attach(fd, 2, &attached, &err), 0);
    assert_ptr_not_equal(made, attached);
    assert_int_equal((uintptr_t)attached % DDP_SEGMENT_HUGE, 0);
    memcpy(ddp_segment_heap_of(made, 1), "seen", 5);
    assert_string_equal((char *)ddp_segment_heap_of(attached, 1), "seen");
    ddp_segment_abort(attached, 1, 0, DDP_ELOST);
    assert_true(ddp_segment_aborted(made, NULL, NULL, NULL));
    ddp_segment_destroy(attached, -1);

    assert_int_equal(ddp_segment_attach(fd, 3, &attached, &err), DDP_EMISMATCH);
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_segment_attach(other, 2, &attached, &err), DDP_EMISMATCH);
    assert_int_equal(ftruncate(other, 1 << 20), 0);
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_segment_attach(other, 2, &attached, &err), DDP_EMISMATCH);
    close(other);
    ddp_segment_destroy(made, fd);
}

/* A rank is described by its recorder, or by its progress thread's recorder while that is in an
 * operation. */
static void test_describe(void **state)
{
    (void)state;
    struct ddp_segment *segment;
    struct ddp_err err = DDP_ERR_INIT;
    char text[600];
    int fd = -1;
    assert_int_equal(ddp_segment_create(2, 0, &segment, &fd, &err), 0);
    struct ddp_segment_rank *block = ddp_segment_rank_of(segment, 1);
    ddp_flight_phase(&block->flight, "compute");
    ddp_flight_phase(&block->progress, "progress thread");
    uint64_t index = ddp_flight_enter(&block->progress, DDP_ALLREDUCE, DDP_F32, 4096);
    ddp_segment_describe(segment, 1, text, sizeof text);
    assert_null(strstr(text, "progress thread"));
    atomic_store(&block->progress_used, 1);
    ddp_segment_describe(segment, 1, text, sizeof text);
    assert_true(text_names(text, "compute"));
    assert_true(text_names(text, "allreduce"));
    ddp_flight_leave(&block->progress, index, 0);
    ddp_segment_describe(segment, 1, text, sizeof text);
    assert_null(strstr(text, "its progress thread"));
    ddp_segment_destroy(segment, fd);
}

static void check_subset(enum ddp_subset how, const char *hosts, int size, int n, const char *want)
{
    uint64_t of[64];
    int members[64];
    char got[256] = "";
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_hosts_parse(hosts, size, of, &err), 0);
    assert_int_equal(ddp_hosts_subset(how, of, size, n, members, &err), 0);
    for (int i = 0; i < n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d", i ? "," : "", members[i]);
    assert_string_equal(got, want);
}

static void test_subsets(void **state)
{
    (void)state;
    check_subset(DDP_SUBSET_SPREAD, "2", 4, 1, "0");
    check_subset(DDP_SUBSET_SPREAD, "2", 4, 2, "0,2");
    check_subset(DDP_SUBSET_SPREAD, "2", 4, 3, "0,1,2");
    check_subset(DDP_SUBSET_SPREAD, "2", 4, 4, "0,1,2,3");
    check_subset(DDP_SUBSET_SPREAD, "1+4+2", 7, 5, "0,1,2,5,6");
    check_subset(DDP_SUBSET_SPREAD, "1+4+2", 7, 6, "0,1,2,3,5,6");
    check_subset(DDP_SUBSET_SPREAD, "3*", 6, 3, "0,1,2");
    check_subset(DDP_SUBSET_PACK, "2", 4, 2, "0,1");
    check_subset(DDP_SUBSET_PACK, "3*", 6, 4, "0,1,2,3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),    cmocka_unit_test(test_groups),
        cmocka_unit_test(test_subsets),  cmocka_unit_test(test_failed_group),
        cmocka_unit_test(test_plain),    cmocka_unit_test(test_attach),
        cmocka_unit_test(test_describe),
    };
    return cmocka_run_group_tests_name("hosts", tests, NULL, NULL);
}
