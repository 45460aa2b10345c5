/* Point-to-point messages over shared memory, and the parts of comm.c around them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <pthread.h>

#include "base/rng.h"
#include "comm_ranks.h"
#include "names.h"

static const enum ddp_launch_mode modes[] = {DDP_LAUNCH_THREADS, DDP_LAUNCH_PROCESSES};
static const int mode_count = RANKS_TSAN ? 1 : 2;

static void run_all(struct ranks_job job, int least, int most)
{
    for (int m = 0; m < mode_count; m++) {
        for (int ranks = least; ranks <= most; ranks++) {
            struct ddp_launch_outcome outcome;
            struct ddp_err err = DDP_ERR_INIT;
            assert_int_equal(ranks_run(ranks, modes[m], job, &outcome, &err), 0);
            if (outcome.code != 0)
                print_error("%d ranks: %s\n", ranks, outcome.report_text);
            assert_int_equal(outcome.code, 0);
        }
    }
}

static unsigned char content(uint64_t key, size_t i)
{
    return (unsigned char)ddp_mix64(key * 1000003 + i);
}

/* Every rank sends random messages to every rank, including itself. Both sides derive the same
 * plan from the seed. Receives are posted in another order than the sends, and there are few
 * tags, so both the order within a tag and the matching across tags matter. */
enum { PER_PAIR = 12, TAGS = 3 };
struct message {
    int tag;
    size_t bytes;
    uint64_t key;
};

static void plan_pair(int round, int source, int target, struct message *out)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, (uint64_t)round * 10000 + (uint64_t)source * 100 + (uint64_t)target, 0);
    for (int i = 0; i < PER_PAIR; i++) {
        static const size_t limit[] = {1, 64, 5000, 16320 * 2, 300000};
        out[i].tag = (int)ddp_rng_below(&rng, TAGS) - 1;
        out[i].bytes = (size_t)ddp_rng_below(&rng, limit[ddp_rng_below(&rng, 5)] + 1);
        out[i].key = ddp_rng_u64(&rng);
    }
}

static int post_sends(struct ddp_comm *comm, int round, struct ddp_request *req,
                      unsigned char **buf, struct ddp_err *err)
{
    for (int r = 0; r < comm->size; r++) {
        struct message plan[PER_PAIR];
        plan_pair(round, comm->rank, r, plan);
        for (int i = 0; i < PER_PAIR; i++, req++, buf++) {
            *buf = malloc(plan[i].bytes + 1);
            CHECK(*buf != NULL);
            for (size_t b = 0; b < plan[i].bytes; b++)
                (*buf)[b] = content(plan[i].key, b);
            DDP_TRY(ddp_comm_isend(comm, r, plan[i].tag, *buf, plan[i].bytes, req, err));
        }
    }
    return 0;
}

/* Posts the receives tag by tag, so a receive may be posted long before or long after its
 * message arrives. */
static int post_receives(struct ddp_comm *comm, int round, struct ddp_request *req,
                         unsigned char **buf, struct ddp_err *err)
{
    for (int r = 0; r < comm->size; r++) {
        struct message plan[PER_PAIR];
        plan_pair(round, r, comm->rank, plan);
        for (int tag = TAGS - 2; tag >= -1; tag--) {
            for (int i = 0; i < PER_PAIR; i++) {
                if (plan[i].tag != tag)
                    continue;
                int at = r * PER_PAIR + i;
                buf[at] = malloc(plan[i].bytes + 1);
                CHECK(buf[at] != NULL);
                buf[at][plan[i].bytes] = 0xa5;
                DDP_TRY(ddp_comm_irecv(comm, r, tag, buf[at], plan[i].bytes, &req[at], err));
            }
        }
    }
    return 0;
}

static int check_received(struct ddp_comm *comm, int round, unsigned char **buf,
                          struct ddp_err *err)
{
    for (int r = 0; r < comm->size; r++) {
        struct message plan[PER_PAIR];
        plan_pair(round, r, comm->rank, plan);
        for (int i = 0; i < PER_PAIR; i++) {
            const unsigned char *got = buf[r * PER_PAIR + i];
            for (size_t b = 0; b < plan[i].bytes; b++)
                CHECK(got[b] == content(plan[i].key, b));
            CHECK(got[plan[i].bytes] == 0xa5);
        }
    }
    return 0;
}

static int body_random(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                       struct ddp_err *err)
{
    int n = comm->size * PER_PAIR;
    struct ddp_request *req = calloc((size_t)n * 2, sizeof *req);
    unsigned char **buf = calloc((size_t)n * 2, sizeof *buf);
    CHECK(req != NULL && buf != NULL);
    for (int round = 0; round < 3; round++) {
        if ((round + comm->rank) % 2 == 0) {
            DDP_TRY(post_sends(comm, round, req, buf, err));
            DDP_TRY(post_receives(comm, round, req + n, buf + n, err));
        } else {
            DDP_TRY(post_receives(comm, round, req + n, buf + n, err));
            DDP_TRY(post_sends(comm, round, req, buf, err));
        }
        DDP_TRY(ddp_comm_wait(comm, req, 2 * n, err));
        DDP_TRY(check_received(comm, round, buf + n, err));
        for (int i = 0; i < 2 * n; i++) {
            CHECK(!req[i].active);
            free(buf[i]);
        }
    }
    free(req);
    free(buf);
    return ddp_comm_barrier(comm, err);
}

static void test_random(void **state)
{
    run_all((struct ranks_job){.body = body_random}, 1, 5);
}

/* Two threads of a rank, each with its own communicator, at the same time. */
struct second {
    struct ddp_comm *comm;
    int rc;
    struct ddp_err err;
};

static void *second_main(void *arg)
{
    struct second *s = arg;
    s->rc = body_random(s->comm, NULL, NULL, &s->err);
    return NULL;
}

static int body_two_threads(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                            struct ddp_err *err)
{
    int members[8];
    for (int r = 0; r < comm->size; r++)
        members[r] = r;
    struct second second = {.err = DDP_ERR_INIT};
    DDP_TRY(ddp_comm_group(comm, members, comm->size, &second.comm, err));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, second_main, &second) == 0);
    int rc = body_random(comm, rank, arg, err);
    pthread_join(thread, NULL);
    if (rc == 0 && second.rc != 0) {
        *err = second.err;
        rc = second.rc;
    }
    ddp_comm_destroy(second.comm);
    return rc;
}

static void test_two_threads(void **state)
{
    run_all((struct ranks_job){.body = body_two_threads, .threads = true}, 2, 3);
}

/* Two ranks that first send much and only then receive; and a ring of three ranks. */
static int body_send_first(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                           struct ddp_err *err)
{
    size_t bytes = 5u << 20;
    unsigned char *out = malloc(bytes), *in = malloc(bytes);
    CHECK(out != NULL && in != NULL);
    memset(out, comm->rank + 1, bytes);
    int next = (comm->rank + 1) % comm->size;
    int previous = (comm->rank + comm->size - 1) % comm->size;
    struct ddp_request req;
    DDP_TRY(ddp_comm_isend(comm, next, 0, out, bytes, &req, err));
    DDP_TRY(ddp_comm_wait(comm, &req, 1, err));
    DDP_TRY(ddp_comm_irecv(comm, previous, 0, in, bytes, &req, err));
    DDP_TRY(ddp_comm_wait(comm, &req, 1, err));
    for (size_t i = 0; i < bytes; i++)
        CHECK(in[i] == previous + 1);
    free(out);
    free(in);
    return ddp_comm_barrier(comm, err);
}

static void test_send_first(void **state)
{
    run_all((struct ranks_job){.body = body_send_first}, 2, 3);
}

/* Each communicator counts the bytes that were passed to its isend. */
static int body_counted(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                        struct ddp_err *err)
{
    int members[8];
    for (int r = 0; r < comm->size; r++)
        members[r] = r;
    struct ddp_comm *group;
    DDP_TRY(ddp_comm_group(comm, members, comm->size, &group, err));
    CHECK(comm->wire_bytes == 0 && comm->wire_messages == 0);
    struct ddp_request req[2];
    char out[100] = {0}, in[100];
    int next = (comm->rank + 1) % comm->size;
    int previous = (comm->rank + comm->size - 1) % comm->size;
    /* Messages with the same tag on two communicators are never mixed up. */
    char first = 'w', second = 'g';
    DDP_TRY(ddp_comm_isend(comm, next, 0, &first, 1, &req[0], err));
    DDP_TRY(ddp_comm_isend(group, next, 0, &second, 1, &req[1], err));
    DDP_TRY(ddp_comm_irecv(group, previous, 0, in, 1, &req[1], err));
    DDP_TRY(ddp_comm_wait(group, &req[1], 1, err));
    CHECK(in[0] == 'g');
    DDP_TRY(ddp_comm_irecv(comm, previous, 0, in, 1, &req[1], err));
    DDP_TRY(ddp_comm_wait(comm, &req[1], 1, err));
    CHECK(in[0] == 'w');
    DDP_TRY(ddp_comm_isend(comm, next, 1, out, 100, &req[0], err));
    DDP_TRY(ddp_comm_irecv(comm, previous, 1, in, 100, &req[1], err));
    DDP_TRY(ddp_comm_wait(comm, req, 2, err));
    CHECK(comm->wire_bytes == 101 && comm->wire_messages == 2);
    CHECK(group->wire_bytes == 1 && group->wire_messages == 1);
    ddp_comm_destroy(group);
    return 0;
}

static void test_counted(void **state)
{
    run_all((struct ranks_job){.body = body_counted}, 2, 4);
}

/* If a message and its receive differ in length, the error names both lengths, whichever of the
 * two comes first. */
static int body_length(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                       struct ddp_err *err)
{
    char data[16] = {0};
    struct ddp_request req;
    if (comm->rank == 0) {
        DDP_TRY(ddp_comm_isend(comm, 1, 3, data, 16, &req, err));
        DDP_TRY(ddp_comm_wait(comm, &req, 1, err));
    }
    if (*(int *)arg)
        DDP_TRY(ddp_comm_barrier(comm, err));
    if (comm->rank == 1) {
        DDP_TRY(ddp_comm_irecv(comm, 0, 3, data, 8, &req, err));
        DDP_TRY(ddp_comm_wait(comm, &req, 1, err));
    }
    return ddp_comm_barrier(comm, err);
}

static void test_length(void **state)
{
    for (int pre_scale = 0; pre_scale < 2; pre_scale++) {
        struct ddp_launch_outcome outcome;
        struct ddp_err err = DDP_ERR_INIT;
        struct ranks_job job = {.body = body_length, .arg = &pre_scale};
        assert_int_equal(ranks_run(2, modes[0], job, &outcome, &err), 0);
        assert_int_equal(outcome.code, DDP_EMISMATCH);
        assert_true(text_names(err.text, "rank 0|16 bytes|3|rank 1|8"));
    }
}

/* A receive without a sender ends at the deadline, and the error names the rank waited for. */
static int body_nobody(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                       struct ddp_err *err)
{
    char data[8];
    struct ddp_request req;
    if (comm->rank == 1)
        return ddp_comm_barrier(comm, err);
    DDP_TRY(ddp_comm_irecv(comm, 2, 0, data, 8, &req, err));
    if (comm->rank == 0)
        return ddp_comm_wait(comm, &req, 1, err);
    return ddp_comm_barrier(comm, err);
}

static void test_deadline(void **state)
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    struct ranks_job job = {.body = body_nobody, .timeout_ns = 300000000};
    assert_int_equal(ranks_run(2, modes[0], job, &outcome, &err), 0);
    assert_int_equal(outcome.code, DDP_EUSAGE); /* rank 2 does not exist among 2 ranks */
    err = DDP_ERR_INIT;
    assert_int_equal(ranks_run(3, modes[0], job, &outcome, &err), 0);
    assert_int_equal(outcome.code, DDP_ELOST);
    assert_true(text_names(err.text, "300 ms|rank"));
}

/* Backend self, and comm.c's errors for functions that a backend lacks. */
static void test_self(void **state)
{
    struct ddp_rank_info rank_info = {.size = 1, .segment_fd = -1};
    struct ddp_comm_options options = {.timeout_ns = 1000000000};
    struct ddp_comm *comm;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ddp_backend *self = ddp_backend_find("self");
    assert_int_equal(ddp_comm_create(self, &rank_info, &options, &comm, &err), 0);
    assert_int_equal(ddp_comm_barrier(comm, &err), 0);
    int mine = 7, all = 0, zero = 0;
    assert_int_equal(ddp_comm_allgather_bytes(comm, &mine, &all, sizeof all, &err), 0);
    assert_int_equal(all, 7);
    assert_int_equal(ddp_comm_agree(comm, 0, &err), 0);
    assert_int_equal(ddp_comm_agree(comm, DDP_EDATA, &err), DDP_EDATA);
    void *block, *second;
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_comm_alloc(comm, 5u << 20, &block, &err), 0);
    assert_int_equal(ddp_comm_alloc(comm, 0, &second, &err), 0);
    assert_int_equal((uintptr_t)block % (2u << 20), 0);
    memset(block, 1, 5u << 20);
    assert_null(ddp_comm_map(comm, 0, block));
    ddp_comm_free(comm, block);
    ddp_comm_free(comm, NULL);
    struct ddp_request req = {0};
    assert_int_equal(ddp_comm_isend(comm, 0, 0, &mine, sizeof mine, &req, &err), DDP_EUNAVAIL);
    assert_false(req.active);
    struct ddp_comm *group;
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_comm_group(comm, &zero, 1, &group, &err), 0);
    assert_int_equal(ddp_comm_barrier(group, &err), 0);
    ddp_comm_destroy(group);
    ddp_comm_destroy(comm);
    ddp_comm_destroy(NULL);
    rank_info.size = 2;
    assert_int_equal(ddp_comm_create(self, &rank_info, &options, &comm, &err), DDP_EUSAGE);
}

static void test_backends(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_backend_check(&err), 0);
    assert_non_null(ddp_backend_find("mpi"));
    assert_null(ddp_backend_find("tcp"));
    int n = 0;
    while (ddp_backend_all()[n] != NULL)
        n++;
    assert_true(n >= 3);
    /* Backend shm without our launcher gives an error and does not crash. */
    struct ddp_rank_info rank_info = {.size = 1, .segment_fd = -1};
    struct ddp_comm_options options = {.timeout_ns = 1000000000};
    struct ddp_comm *comm;
    assert_int_equal(ddp_comm_create(ddp_backend_find("shm"), &rank_info, &options, &comm, &err),
                     DDP_EUNAVAIL);
    assert_true(text_names(err.text, "launcher"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),     cmocka_unit_test(test_two_threads),
        cmocka_unit_test(test_send_first), cmocka_unit_test(test_counted),
        cmocka_unit_test(test_length),     cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_self),       cmocka_unit_test(test_backends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
