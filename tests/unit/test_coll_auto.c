/* The table of `auto`: its choice for each collective, size, and memory on shared memory, with
 * ranks as processes; it always chooses an algorithm; and its printed form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coll/coll_auto.h"
#include "comm/shm/comm_shm.h"
#include "comm_ranks.h"
#include "names.h"

/* The communicator knows whether there are more ranks than cores. */
static int taken(struct ddp_comm *comm, enum ddp_coll coll, size_t bytes, bool registered,
                 bool oversubscribed, const char *name, struct ddp_err *err)
{
    const size_t parts = ddp_coll_message_bytes(coll, comm->size, 1, DDP_U8);
    const struct ddp_coll_shape shape = {
        .coll = coll, .count = bytes / parts, .dtype = DDP_U8, .registered = registered};
    const bool was = comm->shm != NULL && comm->shm->oversubscribed;
    if (comm->shm != NULL)
        comm->shm->oversubscribed = oversubscribed;
    const struct ddp_coll_alg *alg = ddp_coll_auto(comm, &shape, err);
    if (comm->shm != NULL)
        comm->shm->oversubscribed = was;
    if (alg == NULL)
        return err->code;
    if (strcmp(alg->name, name) != 0)
        return ddp_fail(err, DDP_EDATA, "%s of %zu bytes, %s, oversubscribed %d: '%s', not '%s'",
                        ddp_coll_name(coll), bytes, registered ? "registered" : "private",
                        oversubscribed, alg->name, name);
    return 0;
}

/* With more ranks than cores a step costs more, so `auto` prefers longer copies. */
static int choose_oversubscribed(struct ddp_comm *comm, struct ddp_err *err)
{
    DDP_TRY(taken(comm, DDP_ALLREDUCE, 8 << 10, true, true, "flat", err));
    DDP_TRY(taken(comm, DDP_ALLREDUCE, 16 << 10, true, true, "direct", err));
    DDP_TRY(taken(comm, DDP_ALLREDUCE, 8 << 10, false, true, "flat", err));
    DDP_TRY(taken(comm, DDP_ALL_TO_ALL, 12 << 10, true, true, "flat", err));
    DDP_TRY(taken(comm, DDP_BROADCAST, 1 << 10, true, true, "flat", err));
    return taken(comm, DDP_BROADCAST, 4 << 10, true, true, "direct", err);
}

static int choose(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                  struct ddp_err *err)
{
    (void)rank;
    (void)arg;
    if (comm->size == 1) {
        for (int coll = 0; coll < DDP_COLL_COUNT; coll++)
            DDP_TRY(taken(comm, (enum ddp_coll)coll, 4096, true, false, "self", err));
        return 0;
    }
    for (int coll = 0; coll < DDP_BARRIER; coll++) {
        const enum ddp_coll c = (enum ddp_coll)coll;
        for (int oversubscribed = 0; oversubscribed <= 1; oversubscribed++) {
            DDP_TRY(taken(comm, c, 0, false, oversubscribed, "flat", err));
            DDP_TRY(taken(comm, c, 48, true, oversubscribed, "flat", err));
            DDP_TRY(taken(comm, c, 64 << 10, true, oversubscribed, "direct", err));
            DDP_TRY(taken(comm, c, 64 << 10, false, oversubscribed, "staged", err));
            DDP_TRY(taken(comm, c, (size_t)1 << 40, false, oversubscribed, "staged", err));
        }
    }
    DDP_TRY(taken(comm, DDP_BARRIER, 0, false, false, "flags", err));
    DDP_TRY(taken(comm, DDP_ALLREDUCE, 512, true, false, "flat", err));
    DDP_TRY(taken(comm, DDP_ALLREDUCE, 768, true, false, "direct", err));
    DDP_TRY(taken(comm, DDP_ALLREDUCE, 4 << 10, true, false, "direct", err));
    DDP_TRY(taken(comm, DDP_ALLREDUCE, 768, false, false, "flat", err));
    DDP_TRY(taken(comm, DDP_REDUCE_SCATTER, 1008, true, false, "flat", err));
    DDP_TRY(taken(comm, DDP_BROADCAST, 1 << 10, true, false, "flat", err));
    DDP_TRY(taken(comm, DDP_BROADCAST, 2 << 10, true, false, "direct", err));
    DDP_TRY(taken(comm, DDP_ALL_GATHER, 1 << 10, true, false, "direct", err));
    return choose_oversubscribed(comm, err);
}

static void test_choice(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++) {
        struct ddp_launch_outcome outcome = {0};
        struct ddp_err err = DDP_ERR_INIT;
        const struct ranks_job job = {.body = choose};
        if (ranks_run(ranks, DDP_LAUNCH_PROCESSES, job, &outcome, &err) != 0 || outcome.code != 0)
            fail_msg("%d ranks: %s (%s)", ranks, err.text, outcome.report_text);
    }
}

/* Prints the table for a query. Its lines after the head must name `expected`. */
static void check_text(enum ddp_coll coll, const char *backend, int ranks, int hosts,
                       bool registered, const char *const *expected)
{
    const struct ddp_auto_query query = {.coll = coll,
                                         .backend = ddp_backend_find(backend),
                                         .ranks = ranks,
                                         .hosts = hosts,
                                         .registered = registered,
                                         .open_mpi = true};
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    char *save = NULL;

    ddp_coll_auto_explain(&query, &text);
    assert_false(text.failed);
    assert_non_null(strtok_r(text.text, "\n", &save));
    for (; *expected != NULL; expected++) {
        const char *line = strtok_r(NULL, "\n", &save);
        assert_non_null(line);
        if (!text_names(line, *expected))
            fail_msg("'%s' does not name %s", line, *expected);
    }
    assert_null(strtok_r(NULL, "\n", &save));
    ddp_strbuf_release(&text);
}

static void test_text(void **state)
{
    (void)state;
    check_text(DDP_ALLREDUCE, "shm", 2, 1, true,
               (const char *const[]){" 512 B | flat ", " direct ", NULL});
    check_text(DDP_ALLREDUCE, "shm", 2, 1, false,
               (const char *const[]){" 1 KiB | flat ", " staged ", NULL});
    check_text(DDP_ALLREDUCE, "self", 1, 1, true, (const char *const[]){" self ", NULL});
    /* One host or an unknown number of hosts; two hosts with two ranks each; one rank per host. */
    check_text(DDP_ALLREDUCE, "mpi", 4, 0, true,
               (const char *const[]){" 512 B | flat ", " direct ", NULL});
    check_text(DDP_ALLREDUCE, "mpi", 4, 2, false,
               (const char *const[]){" 512 KiB | native ", " hier ", NULL});
    check_text(DDP_ALLREDUCE, "mpi", 4, 4, false,
               (const char *const[]){" 2 MiB | native ", " ring ", NULL});
    /* More hosts than were measured. */
    check_text(DDP_ALLREDUCE, "mpi", 5, 5, false,
               (const char *const[]){" native ", " 16 KiB | rhd ", " ring ", NULL});
    check_text(DDP_BARRIER, "shm", 2, 1, true, (const char *const[]){" flags ", NULL});
    check_text(DDP_BARRIER, "self", 2, 1, true, (const char *const[]){"", NULL});
}

/* The table has an algorithm for every shape that the backend supports. */
static void test_every_collective(void **state)
{
    (void)state;
    for (int coll = 0; coll < DDP_COLL_COUNT; coll++) {
        static const char *const backends[] = {"shm", "mpi"};
        for (size_t b = 0; b < DDP_COUNT_OF(backends); b++) {
            const struct ddp_auto_query query = {
                .coll = (enum ddp_coll)coll, .backend = ddp_backend_find(backends[b]), .ranks = 5};
            struct ddp_strbuf text = DDP_STRBUF_INIT;
            ddp_coll_auto_explain(&query, &text);
            const char *row = strchr(text.text, '\n'); /* the first row after the head */
            bool found = false;
            for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a && row; a++)
                found = found || strstr(row, (*a)->name) != NULL;
            if (!found)
                fail_msg("%s", text.text);
            ddp_strbuf_release(&text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_every_collective),
    };
    return cmocka_run_group_tests_name("coll auto", tests, NULL, NULL);
}
