/* The table of `auto`: its choice for each collective, size, memory and distance on shared
 * memory, with ranks as processes; it always chooses an algorithm; and its printed form. */
#include <math.h>
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

static int taken(const struct ddp_comm *comm, enum ddp_coll coll, size_t bytes, bool registered,
                 enum ddp_distance distance, const char *name, struct ddp_err *err)
{
    const size_t parts = ddp_coll_message_bytes(coll, comm->size, 1, DDP_U8);
    const struct ddp_coll_shape shape = {
        .coll = coll, .count = bytes / parts, .dtype = DDP_U8, .registered = registered};
    const struct ddp_coll_alg *alg = ddp_coll_auto_at(comm, &shape, distance, err);
    if (alg == NULL)
        return err->code;
    if (strcmp(alg->name, name) != 0)
        return ddp_fail(err, DDP_EDATA, "%s of %zu bytes, %s, %s: '%s', not '%s'",
                        ddp_coll_name(coll), bytes, registered ? "registered" : "private",
                        ddp_distance_name(distance), alg->name, name);
    return 0;
}

/* With more ranks than cores a step costs more, so `auto` prefers longer copies. The
 * communicator knows whether ranks share cores. */
static int choose_oversubscribed(struct ddp_comm *comm, struct ddp_err *err)
{
    const enum ddp_distance oversubscribed = DDP_DISTANCE_OVERSUBSCRIBED;
    const bool was = comm->shm->oversubscribed;

    DDP_TRY(taken(comm, DDP_ALLREDUCE, 8 << 10, true, oversubscribed, "flat", err));
    DDP_TRY(taken(comm, DDP_ALLREDUCE, 16 << 10, true, oversubscribed, "direct", err));
    DDP_TRY(taken(comm, DDP_ALLREDUCE, 8 << 10, false, oversubscribed, "flat", err));
    DDP_TRY(taken(comm, DDP_ALL_TO_ALL, 12 << 10, true, oversubscribed, "flat", err));
    DDP_TRY(taken(comm, DDP_BROADCAST, 1 << 10, true, oversubscribed, "flat", err));
    DDP_TRY(taken(comm, DDP_BROADCAST, 4 << 10, true, oversubscribed, "direct", err));
    for (int on = 0; on <= 1; on++) {
        const struct ddp_coll_shape shape = {
            .coll = DDP_ALLREDUCE, .count = 4 << 10, .dtype = DDP_U8, .registered = true};
        comm->shm->oversubscribed = on;
        const struct ddp_coll_alg *alg = ddp_coll_auto(comm, &shape, err);
        comm->shm->oversubscribed = was;
        if (alg == NULL)
            return err->code;
        if (strcmp(alg->name, on ? "flat" : "direct") != 0)
            return ddp_fail(err, DDP_EDATA, "oversubscribed %d: '%s'", on, alg->name);
    }
    return 0;
}

static int choose(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                  struct ddp_err *err)
{
    (void)rank;
    (void)arg;
    if (comm->size == 1) {
        for (int coll = 0; coll < DDP_COLL_COUNT; coll++)
            DDP_TRY(
                taken(comm, (enum ddp_coll)coll, 4096, true, DDP_DISTANCE_UNKNOWN, "self", err));
        return 0;
    }
    for (int coll = 0; coll < DDP_BARRIER; coll++) {
        const enum ddp_coll c = (enum ddp_coll)coll;
        for (int d = 0; d < DDP_DISTANCE_COUNT; d++) {
            const enum ddp_distance distance = (enum ddp_distance)d;
            DDP_TRY(taken(comm, c, 0, false, distance, "flat", err));
            DDP_TRY(taken(comm, c, 48, true, distance, "flat", err));
            DDP_TRY(taken(comm, c, 64 << 10, true, distance, "direct", err));
            DDP_TRY(taken(comm, c, 64 << 10, false, distance, "staged", err));
            DDP_TRY(taken(comm, c, (size_t)1 << 40, false, distance, "staged", err));
        }
    }
    DDP_TRY(taken(comm, DDP_BARRIER, 0, false, DDP_DISTANCE_UNKNOWN, "flags", err));
    /* A step costs more between distant cores, so flat is chosen up to larger sizes. An unknown
     * distance counts as medium. */
    DDP_TRY(taken(comm, DDP_ALLREDUCE, 768, true, DDP_DISTANCE_CACHE, "direct", err));
    DDP_TRY(taken(comm, DDP_ALLREDUCE, 768, true, DDP_DISTANCE_UNKNOWN, "direct", err));
    DDP_TRY(taken(comm, DDP_ALLREDUCE, 768, true, DDP_DISTANCE_FAR, "flat", err));
    DDP_TRY(taken(comm, DDP_ALLREDUCE, 768, false, DDP_DISTANCE_UNKNOWN, "flat", err));
    DDP_TRY(taken(comm, DDP_REDUCE_SCATTER, 1008, true, DDP_DISTANCE_CACHE, "flat", err));
    DDP_TRY(taken(comm, DDP_BROADCAST, 1 << 10, true, DDP_DISTANCE_CACHE, "flat", err));
    DDP_TRY(taken(comm, DDP_BROADCAST, 2 << 10, true, DDP_DISTANCE_CACHE, "direct", err));
    DDP_TRY(taken(comm, DDP_ALL_GATHER, 1 << 10, true, DDP_DISTANCE_CACHE, "direct", err));
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

static void test_distance(void **state)
{
    (void)state;
    assert_int_equal(ddp_distance_of(NAN), DDP_DISTANCE_UNKNOWN);
    assert_int_equal(ddp_distance_of(49), DDP_DISTANCE_CORE);
    assert_int_equal(ddp_distance_of(97), DDP_DISTANCE_CACHE);
    assert_int_equal(ddp_distance_of(280), DDP_DISTANCE_CACHE);
    assert_int_equal(ddp_distance_of(450), DDP_DISTANCE_FAR);
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
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_every_collective),
    };
    return cmocka_run_group_tests_name("coll auto", tests, NULL, NULL);
}
