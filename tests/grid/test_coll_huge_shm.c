/* Messages longer than 31 bits can count, through every algorithm that shares memory: u8, full
 * buffers of 2^31 + 8 elements on 2 ranks. This takes 9 GB and minutes, and needs
 * DDPBENCH_TEST_HUGE; without it the test uses 2^20 + 8 elements. test_coll_huge.c tests the
 * algorithms that send messages. */
#include <stdlib.h>

#include "grid/grid.h"
#include "grid/grid_values.h"

#define SMALL (((size_t)1 << 20) + 8)
#define HUGE  (((size_t)1 << 31) + 8)

static unsigned char value(int rank, size_t i)
{
    return (unsigned char)(i * 7 + (i >> 8) + (i >> 16) + (size_t)rank * 13);
}

/* Returns element i of rank `me`'s result, for root 0. */
static unsigned char expected(enum ddp_coll coll, size_t count, int me, size_t i)
{
    const size_t own = (size_t)me * count;
    const int source = i < count ? 0 : 1;
    switch (coll) {
    case DDP_ALLREDUCE:
    case DDP_REDUCE:
        return (unsigned char)(value(0, i) + value(1, i));
    case DDP_REDUCE_SCATTER:
    case DDP_REDUCE_SCATTER_V:
        return (unsigned char)(value(0, own + i) + value(1, own + i));
    case DDP_BROADCAST:
        return value(0, i);
    case DDP_SCATTER:
        return value(0, own + i);
    case DDP_SEND_RECV:
        return value(1 - me, i);
    case DDP_ALL_TO_ALL:
    case DDP_ALL_TO_ALL_V:
        return value(source, own + i - (size_t)source * count);
    default: /* all-gather, gather */
        return value(source, i - (size_t)source * count);
    }
}

static int check_algorithm(struct ddp_comm *comm, const struct ddp_coll_alg *alg, size_t full,
                           unsigned char *const buf[2], struct ddp_err *err)
{
    const size_t parts = ddp_coll_message_bytes(alg->coll, comm->size, 1, DDP_U8);
    const size_t count = full / parts;
    const struct grid grid = {.comm = comm};
    const struct ddp_coll_args args = {.coll = alg->coll,
                                       .send = buf[0],
                                       .recv = buf[1],
                                       .count = count,
                                       .dtype = DDP_U8,
                                       .op = DDP_SUM};
    const size_t gets = grid_recv_count(alg->coll, count, comm->rank, comm->size, 0);

    memset(buf[1], 0xa5, full);
    DDP_TRY(grid_run(&grid, alg, &args, err));
    for (size_t i = 0; i < gets; i++)
        if (buf[1][i] != expected(alg->coll, count, comm->rank, i))
            return ddp_fail(err, DDP_EDATA, "%s/%s of %zu: element %zu is wrong",
                            ddp_coll_name(alg->coll), alg->name, count, i);
    return 0;
}

static int rank_main(void *arg, struct ddp_launch_rank *rank, struct ddp_err *err)
{
    const size_t full = *(const size_t *)arg;
    const struct ddp_comm_options options = {.timeout_ns = GRID_TIMEOUT_NS,
                                             .heap_bytes = 2 * full + (16u << 20),
                                             .device = ddp_device_cpu(ddp_cpu_best_simd())};
    struct ddp_comm *comm;
    void *memory[2] = {NULL, NULL};

    DDP_TRY(ddp_comm_create(ddp_backend_find("shm"), &rank->rank_info, &options, &comm, err));
    int rc = ddp_comm_alloc(comm, full, &memory[0], err);
    if (rc == 0)
        rc = ddp_comm_alloc(comm, full, &memory[1], err);
    unsigned char *const buf[2] = {memory[0], memory[1]};
    for (size_t i = 0; rc == 0 && i < full; i++)
        buf[0][i] = value(comm->rank, i);
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL && rc == 0; a++) {
        const struct ddp_coll_shape shape = {
            .coll = (*a)->coll, .count = full, .dtype = DDP_U8, .registered = true};
        struct ddp_err reason = DDP_ERR_INIT;
        if ((*a)->coll != DDP_BARRIER && !grid_sends(*a) &&
            ddp_coll_supports(*a, comm, &shape, &reason) == 0)
            rc = check_algorithm(comm, *a, full, buf, err);
    }
    if (rc != 0)
        ddp_comm_abort(comm, rc);
    ddp_comm_destroy(comm);
    return rc;
}

static void test_long_arrays(void **state)
{
    size_t *full = *state;
    const struct ddp_launch_job job = {
        .ranks = 2,
        .mode = DDP_LAUNCH_PROCESSES,
        .timeout_ns = GRID_TIMEOUT_NS,
        .heap_bytes = 2 * *full + (16u << 20),
        .rank_main = rank_main,
        .arg = full,
    };
    struct ddp_launch_outcome outcome = {0};
    struct ddp_err err = DDP_ERR_INIT;
    if (ddp_launch(&job, &outcome, &err) != 0 || outcome.code != 0)
        fail_msg("%s (%s)", err.text, outcome.report_text);
}

int main(void)
{
    size_t full = getenv("DDPBENCH_TEST_HUGE") != NULL ? HUGE : SMALL;
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_long_arrays, &full)};
    return cmocka_run_group_tests_name("coll huge shm", tests, NULL, NULL);
}
