/* Backend shm: barrier, exchange, agreement, groups, registered memory. test_shm_p2p.c tests
 * point-to-point messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "comm/shm/comm_shm.h"
#include "comm_ranks.h"

static const enum ddp_launch_mode modes[] = {DDP_LAUNCH_THREADS, DDP_LAUNCH_PROCESSES};
static const int mode_count = RANKS_TSAN ? 1 : 2;

/* Runs job in 1 to `most` ranks of each kind. All runs must succeed. */
static void run_all(struct ranks_job job, int most)
{
    for (int m = 0; m < mode_count; m++) {
        for (int ranks = 1; ranks <= most; ranks++) {
            struct ddp_launch_outcome outcome;
            struct ddp_err err = DDP_ERR_INIT;
            assert_int_equal(ranks_run(ranks, modes[m], job, &outcome, &err), 0);
            if (outcome.code != 0)
                print_error("%d ranks: %s\n", ranks, outcome.report_text);
            assert_int_equal(outcome.code, 0);
        }
    }
}

/* No rank leaves a barrier before all have entered. The ranks write plain memory before the
 * barrier and read it after. */
static int body_barrier(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                        struct ddp_err *err)
{
    int rounds = *(int *)arg;
    int *mine, step = 0;
    void *block;
    DDP_TRY(ddp_comm_alloc(comm, sizeof(int), &block, err));
    mine = block;
    *mine = 0;
    for (int i = 0; i < rounds; i++) {
        *mine = ++step;
        DDP_TRY(ddp_comm_barrier(comm, err));
        for (int r = 0; r < comm->size; r++)
            CHECK(*(int *)ddp_comm_map(comm, r, block) == step);
        DDP_TRY(ddp_comm_barrier(comm, err));
    }
    ddp_comm_free(comm, block);
    return 0;
}

static void test_barrier(void **state)
{
    int rounds = 300;
    run_all((struct ranks_job){.body = body_barrier, .arg = &rounds}, 8);
}

/* 10,000 barriers of 8 ranks. On 2 cores this is fast only if waiting ranks yield. */
static int body_many(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                     struct ddp_err *err)
{
    for (int i = 0; i < *(int *)arg; i++)
        DDP_TRY(ddp_comm_barrier(comm, err));
    return 0;
}

/* Returns the CPU time of this process and of children that have ended, in microseconds. */
static double processor_us(void)
{
    double us = 0;
    for (int i = 0; i < 2; i++) {
        struct rusage usage;
        getrusage(i == 0 ? RUSAGE_SELF : RUSAGE_CHILDREN, &usage);
        us += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
              (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    }
    return us;
}

static void test_many_barriers(void **state)
{
    int rounds = RANKS_TSAN ? 1000 : 10000;
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    struct ranks_job job = {.body = body_many, .arg = &rounds};
    const double before = processor_us();
    assert_int_equal(ranks_run(8, modes[mode_count - 1], job, &outcome, &err), 0);
    assert_int_equal(outcome.code, 0);
    const double each_us = (processor_us() - before) / rounds;
    print_message("# 8 ranks: %.1f us of processors a barrier\n", each_us);
    /* A time slice takes 4000 us; ranks that spin would use several of them. */
    assert_true(each_us < 4000);
}

static unsigned char content(int rank, size_t bytes, size_t i)
{
    return (unsigned char)ddp_mix64((uint64_t)rank * 977 + bytes * 31 + i);
}

static int check_exchange(struct ddp_comm *comm, size_t bytes, struct ddp_err *err)
{
    unsigned char *mine = malloc(bytes + 1);
    unsigned char *all = malloc(bytes * (size_t)comm->size + 1);
    CHECK(mine != NULL && all != NULL);
    for (size_t i = 0; i < bytes; i++)
        mine[i] = content(comm->world_rank[comm->rank], bytes, i);
    all[bytes * (size_t)comm->size] = 0xa5;
    int rc = ddp_comm_allgather_bytes(comm, mine, all, bytes, err);
    for (int r = 0; rc == 0 && r < comm->size; r++) {
        for (size_t i = 0; i < bytes; i++)
            CHECK(all[(size_t)r * bytes + i] == content(comm->world_rank[r], bytes, i));
    }
    CHECK(all[bytes * (size_t)comm->size] == 0xa5);
    free(mine);
    free(all);
    return rc;
}

static int body_exchange(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                         struct ddp_err *err)
{
    static const size_t sizes[] = {
        0, 1, 8, 4096, DDP_SHM_SLOT_BYTES - 1, DDP_SHM_SLOT_BYTES, DDP_SHM_SLOT_BYTES + 1, 100003};
    for (int round = 0; round < 3; round++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            DDP_TRY(check_exchange(comm, sizes[s], err));
    }
    return 0;
}

static void test_exchange(void **state)
{
    run_all((struct ranks_job){.body = body_exchange}, 5);
}

static int body_agree(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                      struct ddp_err *err)
{
    CHECK(ddp_comm_agree(comm, 0, err) == 0);
    /* The last two ranks disagree. All ranks report the first of them. */
    int first = comm->size > 1 ? comm->size - 2 : 0;
    struct ddp_err mine = DDP_ERR_INIT;
    int rc = 0;
    if (comm->rank >= first)
        rc = ddp_fail(&mine, comm->rank == first ? DDP_EMISMATCH : DDP_ENOMEM, "from %d",
                      comm->rank);
    rc = ddp_comm_agree(comm, rc, &mine);
    char expected[32];
    snprintf(expected, sizeof expected, "from %d", first);
    CHECK(rc == DDP_EMISMATCH && mine.code == DDP_EMISMATCH);
    CHECK(strcmp(mine.text, expected) == 0);
    CHECK(comm->rank == first ? mine.rank == -1 : mine.rank == first);
    return ddp_comm_agree(comm, 0, err);
}

static void test_agree(void **state)
{
    run_all((struct ranks_job){.body = body_agree}, 4);
}

/* Registered blocks are aligned, map to the peers' copies, and can be freed and allocated again. */
static int body_alloc(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                      struct ddp_err *err)
{
    static const size_t sizes[] = {0, 1, 4096, 100000, 4u << 20, (4u << 20) + 1, 9u << 20};
    enum { N = sizeof sizes / sizeof sizes[0] };
    void *block[N];
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < N; i++) {
            DDP_TRY(ddp_comm_alloc(comm, sizes[i], &block[i], err));
            CHECK((uintptr_t)block[i] % (sizes[i] >= 4u << 20 ? 2u << 20 : 4096) == 0);
            memset(block[i], comm->rank * 16 + i, sizes[i]);
        }
        DDP_TRY(ddp_comm_barrier(comm, err));
        for (int r = 0; r < comm->size; r++) {
            for (int i = 1; i < N; i++) {
                const unsigned char *theirs = ddp_comm_map(comm, r, block[i]);
                CHECK(theirs != NULL && (r != comm->rank || theirs == block[i]));
                CHECK(theirs[0] == r * 16 + i && theirs[sizes[i] - 1] == r * 16 + i);
                CHECK(ddp_comm_map(comm, r, (char *)block[i] + sizes[i] - 1) ==
                      theirs + sizes[i] - 1);
            }
        }
        int on_stack;
        CHECK(ddp_comm_map(comm, 0, &on_stack) == NULL);
        DDP_TRY(ddp_comm_barrier(comm, err));
        /* Leaves holes of different sizes for the next round. */
        for (int i = 0; i < N; i++)
            ddp_comm_free(comm, block[(i * 3 + round) % N]);
    }
    /* The announced size fits at once. More than that is refused on all ranks. */
    DDP_TRY(ddp_comm_alloc(comm, 64u << 20, &block[0], err));
    struct ddp_err refused = DDP_ERR_INIT;
    CHECK(ddp_comm_alloc(comm, (size_t)1 << 40, &block[1], &refused) == DDP_ENOMEM);
    CHECK(strstr(refused.text, "1 TiB") != NULL);
    ddp_comm_free(comm, block[0]);
    return ddp_comm_barrier(comm, err);
}

static void test_alloc(void **state)
{
    run_all((struct ranks_job){.body = body_alloc}, 3);
}

static int body_alloc_differs(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                              struct ddp_err *err)
{
    void *block;
    return ddp_comm_alloc(comm, comm->rank == 1 ? 8192 : 4096, &block, err);
}

static void test_alloc_differs(void **state)
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    struct ranks_job job = {.body = body_alloc_differs};
    assert_int_equal(ranks_run(3, modes[0], job, &outcome, &err), 0);
    assert_int_equal(outcome.code, DDP_EMISMATCH);
}

/* Groups: two halves at the same time, nested groups, groups of one rank, and many groups in
 * sequence. */
static int use_group(struct ddp_comm *group, struct ddp_err *err)
{
    DDP_TRY(ddp_comm_barrier(group, err));
    DDP_TRY(check_exchange(group, 20000, err));
    return ddp_comm_barrier(group, err);
}

static int body_groups(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                       struct ddp_err *err)
{
    for (int round = 0; round < 80; round++) {
        int members[8], n = 0, parity = comm->rank % 2;
        for (int r = parity; r < comm->size; r += 2)
            members[n++] = r;
        struct ddp_comm *half, *alone;
        DDP_TRY(ddp_comm_group(comm, members, n, &half, err));
        CHECK(half->size == n && half->world_rank[half->rank] == comm->rank);
        DDP_TRY(ddp_comm_group(half, &half->rank, 1, &alone, err));
        CHECK(alone->size == 1 && alone->world_rank[0] == comm->rank);
        DDP_TRY(use_group(half, err));
        DDP_TRY(use_group(alone, err));
        ddp_comm_destroy(alone);
        if (round % 16 == 0)
            DDP_TRY(use_group(comm, err));
        ddp_comm_destroy(half);
    }
    return 0;
}

static void test_groups(void **state)
{
    run_all((struct ranks_job){.body = body_groups}, 6);
}

/* 64 groups can exist at a time. The 65th is refused on all its members. */
static int body_group_limit(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                            struct ddp_err *err)
{
    struct ddp_comm *group[65];
    int members[8];
    for (int r = 0; r < comm->size; r++)
        members[r] = r;
    for (int g = 0; g < 64; g++)
        DDP_TRY(ddp_comm_group(comm, members, comm->size, &group[g], err));
    struct ddp_err refused = DDP_ERR_INIT;
    CHECK(ddp_comm_group(comm, members, comm->size, &group[64], &refused) == DDP_EUNAVAIL);
    for (int g = 0; g < 64; g++)
        DDP_TRY(ddp_comm_barrier(group[g], err));
    for (int g = 0; g < 64; g++)
        ddp_comm_destroy(group[g]);
    DDP_TRY(ddp_comm_barrier(comm, err));
    DDP_TRY(ddp_comm_group(comm, members, comm->size, &group[0], err));
    DDP_TRY(ddp_comm_barrier(group[0], err));
    ddp_comm_destroy(group[0]);
    return 0;
}

static void test_group_limit(void **state)
{
    run_all((struct ranks_job){.body = body_group_limit}, 3);
}

static int body_group_misuse(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                             struct ddp_err *err)
{
    struct ddp_comm *group = NULL;
    int unordered[] = {1, 0}, outside[] = {0, 7}, twice[] = {0, 0, 1}, both[] = {0, 1};
    int other = 1 - comm->rank;
    struct ddp_err refused = DDP_ERR_INIT;
    CHECK(ddp_comm_group(comm, unordered, 2, &group, &refused) == DDP_EUSAGE);
    CHECK(ddp_comm_group(comm, outside, 2, &group, NULL) == DDP_EUSAGE);
    CHECK(ddp_comm_group(comm, twice, 2, &group, NULL) == DDP_EUSAGE);
    CHECK(ddp_comm_group(comm, twice, 3, &group, NULL) == DDP_EUSAGE);
    CHECK(ddp_comm_group(comm, both, 0, &group, NULL) == DDP_EUSAGE);
    CHECK(ddp_comm_group(comm, &other, 1, &group, NULL) == DDP_EUSAGE);
    CHECK(group == NULL);
    /* The communicator can still be used afterwards. */
    DDP_TRY(ddp_comm_group(comm, both, 2, &group, err));
    DDP_TRY(ddp_comm_barrier(group, err));
    ddp_comm_destroy(group);
    return 0;
}

static void test_group_misuse(void **state)
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    struct ranks_job job = {.body = body_group_misuse};
    assert_int_equal(ranks_run(2, modes[0], job, &outcome, &err), 0);
    assert_int_equal(outcome.code, 0);
}

/* The flags move through all areas of the world and of a group, while one rank is late. A group
 * that takes the channel later must find cleared flags in every area. */
static int body_moves(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                      struct ddp_err *err)
{
    const struct ddp_shm_flag_slot *begin = comm->shm->flag_slots;
    int all[8], areas = 0;
    for (int r = 0; r < comm->size; r++)
        all[r] = r;
    for (int round = 0; round < 3; round++) {
        struct ddp_comm *group;
        DDP_TRY(ddp_comm_group(comm, all, comm->size, &group, err));
        for (int i = 0; i < 2 * DDP_SHM_FLAG_AREAS; i++) {
            DDP_TRY(ddp_shm_move_flags(comm, err));
            DDP_TRY(ddp_shm_move_flags(group, err));
            areas += comm->shm->flag_slots != begin;
            if (i % comm->size == comm->rank)
                ddp_sleep_ns(100000);
            /* The number of bytes decides the content, so earlier data is wrong. */
            DDP_TRY(check_exchange(group, 1000 + (size_t)(100 * round + i), err));
            DDP_TRY(ddp_comm_barrier(i % 2 ? group : comm, err));
        }
        CHECK(comm->shm->flag_slots == begin);
        ddp_comm_destroy(group);
    }
    CHECK(areas == 3 * 2 * (DDP_SHM_FLAG_AREAS - 1));
    return 0;
}

static void test_moves(void **state)
{
    run_all((struct ranks_job){.body = body_moves}, 4);
}

/* A world is closed and opened again in the same segment. */
static int reopen_main(void *arg, struct ddp_launch_rank *rank, struct ddp_err *err)
{
    struct ddp_comm_options options = {.timeout_ns = INT64_C(10000000000), .heap_bytes = 1 << 20};
    for (int i = 0; i < 30; i++) {
        struct ddp_comm *comm;
        DDP_TRY(ddp_comm_create(ddp_backend_find("shm"), &rank->rank_info, &options, &comm, err));
        DDP_TRY(check_exchange(comm, 1000, err));
        /* A message that no rank received must not appear in the next world. */
        struct ddp_request req = {0};
        int next = (comm->rank + 1) % comm->size;
        DDP_TRY(ddp_comm_isend(comm, next, 5, &i, sizeof i, &req, err));
        DDP_TRY(ddp_comm_wait(comm, &req, 1, err));
        if (i % 2 == 0) {
            int got = -1, previous = (comm->rank + comm->size - 1) % comm->size;
            DDP_TRY(ddp_comm_irecv(comm, previous, 5, &got, sizeof got, &req, err));
            DDP_TRY(ddp_comm_wait(comm, &req, 1, err));
            CHECK(got == i);
        }
        ddp_comm_destroy(comm);
    }
    return 0;
}

static void test_reopen(void **state)
{
    for (int m = 0; m < mode_count; m++) {
        struct ddp_launch_job job = {.ranks = 3,
                                     .mode = modes[m],
                                     .timeout_ns = INT64_C(10000000000),
                                     .heap_bytes = 1 << 20,
                                     .rank_main = reopen_main};
        struct ddp_launch_outcome outcome;
        struct ddp_err err = DDP_ERR_INIT;
        assert_int_equal(ddp_launch(&job, &outcome, &err), 0);
        if (outcome.code != 0)
            print_error("%s\n", outcome.report_text);
        assert_int_equal(outcome.code, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barrier),      cmocka_unit_test(test_many_barriers),
        cmocka_unit_test(test_exchange),     cmocka_unit_test(test_agree),
        cmocka_unit_test(test_alloc),        cmocka_unit_test(test_alloc_differs),
        cmocka_unit_test(test_groups),       cmocka_unit_test(test_group_limit),
        cmocka_unit_test(test_group_misuse), cmocka_unit_test(test_moves),
        cmocka_unit_test(test_reopen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
