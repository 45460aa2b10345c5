/* Control traffic over TCP when a rank dies, hangs, or disagrees: the other ranks get an error
 * that says so. */
#include "unit/rendezvous_ranks.h"

/* Rank 2 dies between two exchanges, and no rank waits until the deadline. */
static int die(struct ddp_comm *comm, struct ddp_err *err)
{
    DDP_TRY(ddp_comm_barrier(comm, err));
    if (comm->rank == 2)
        raise(SIGKILL);
    return ddp_comm_barrier(comm, err);
}

/* Rank 0 dies. */
static int die_first(struct ddp_comm *comm, struct ddp_err *err)
{
    DDP_TRY(ddp_comm_barrier(comm, err));
    if (comm->rank == 0)
        raise(SIGKILL);
    return ddp_comm_barrier(comm, err);
}

static void lose(int (*body)(struct ddp_comm *, struct ddp_err *), int rank, const char *words)
{
    const int port = free_port();
    for (int r = 0; r < 4; r++)
        start(r, (struct process){
                     .port = port, .rank = r, .size = 4, .timeout_ns = 60 * SECOND, .body = body});
    for (int r = 0; r < 4; r++)
        finish(r);
    for (int r = 0; r < 4; r++) {
        if (r == rank)
            continue;
        assert_says(r, DDP_ELOST, words);
        assert_true(outcomes[r].took_ns < 30 * SECOND);
    }
}

static void test_lost(void **state)
{
    (void)state;
    lose(die, 2, "rank 2");
    lose(die_first, 0, "rank 0");
}

/* Rank 1 never enters the second barrier. Rank 3 only polls meanwhile. */
static int hang(struct ddp_comm *comm, struct ddp_err *err)
{
    DDP_TRY(ddp_comm_barrier(comm, err));
    if (comm->rank == 1)
        ddp_sleep_ns(2 * SECOND);
    for (int i = 0; comm->rank == 3 && i < 600; i++) {
        DDP_TRY(comm->backend->look(comm, err));
        ddp_sleep_ns(SECOND / 100);
    }
    return ddp_comm_barrier(comm, err);
}

static void test_hung(void **state)
{
    (void)state;
    const int port = free_port();
    for (int r = 0; r < 4; r++)
        start(r, (struct process){
                     .port = port, .rank = r, .size = 4, .timeout_ns = SECOND, .body = hang});
    for (int r = 0; r < 4; r++)
        finish(r);
    for (int r = 0; r < 4; r++)
        assert_says(r, DDP_ELOST, "rank 0|1 s|1, 3|barrier");
}

/* The ranks pass exchanges of different sizes. */
static int disagree(struct ddp_comm *comm, struct ddp_err *err)
{
    char mine[8] = "", all[64];
    return ddp_comm_allgather_bytes(comm, mine, all, comm->rank == 1 ? 4 : 8, err);
}

static void test_disagree(void **state)
{
    (void)state;
    const int port = free_port();
    for (int r = 0; r < 3; r++)
        start(r, (struct process){.port = port, .rank = r, .size = 3, .body = disagree});
    for (int r = 0; r < 3; r++)
        finish(r);
    for (int r = 0; r < 3; r++)
        assert_says(r, DDP_ELOST, "rank 1|4 bytes|rank 0|8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hung, setup, teardown),
        cmocka_unit_test_setup_teardown(test_disagree, setup, teardown),
    };
    return cmocka_run_group_tests_name("control_tcp", tests, NULL, NULL);
}
