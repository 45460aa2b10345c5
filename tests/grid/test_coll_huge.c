/* Messages longer than 31 and 32 bits can count: u8 with 2^31 + 8 elements on 2 ranks, through
 * every algorithm that sends messages. This takes 9 GB and half a minute and needs --full (make
 * grid); without it the test uses 2^20 + 8 elements. --mpi FOLDER: runs under mpiexec, with native
 * calls and the ring. */
#include "grid/grid.h"

#define SMALL (((size_t)1 << 20) + 8)
#define HUGE  (((size_t)1 << 31) + 8)

/* Returns a value below 128, because sums of bytes wrap in our algorithms and saturate in Open
 * MPI's. */
static unsigned char value(int rank, size_t i)
{
    return (unsigned char)((i * 7 + i / 251 + (size_t)rank * 13) & 0x7f);
}

/* Checks all-reduce in place, and send-recv and broadcast out of place; messages of the latter two
 * are as long as the array. buf: two arrays. */
static int check_collective(struct ddp_comm *comm, const struct ddp_coll_alg *alg, size_t count,
                            unsigned char *const buf[2], struct ddp_err *err)
{
    const bool reduces = alg->coll == DDP_ALLREDUCE;
    const struct ddp_coll_args args = {.coll = alg->coll,
                                       .send = buf[0],
                                       .recv = reduces ? buf[0] : buf[1],
                                       .count = count,
                                       .dtype = DDP_U8,
                                       .op = DDP_SUM};
    const int source = alg->coll == DDP_SEND_RECV ? 1 - comm->rank : 0;
    const unsigned char *got = args.recv;
    const struct grid grid = {.comm = comm};

    for (size_t i = 0; i < count; i++)
        buf[0][i] = value(comm->rank, i);
    DDP_TRY(grid_run(&grid, alg, &args, err));
    for (size_t i = 0; i < count; i++) {
        const int want = reduces ? value(0, i) + value(1, i) : value(source, i);
        if (got[i] != (unsigned char)want)
            return ddp_fail(err, DDP_EDATA, "%s/%s of %zu: element %zu is %d, not %d",
                            ddp_coll_name(alg->coll), alg->name, count, i, got[i], want & 0xff);
    }
    return 0;
}

static bool is_wanted(const struct ddp_coll_alg *alg, bool mpi)
{
    if (alg->coll != DDP_ALLREDUCE && alg->coll != DDP_SEND_RECV && alg->coll != DDP_BROADCAST)
        return false;
    return mpi ? strcmp(alg->name, "native") == 0 || strcmp(alg->name, "ring") == 0
               : grid_sends(alg);
}

/* Runs all checks, on backend shm if module_dir is NULL. */
static int check_all(size_t count, const struct ddp_rank_info *rank_info, const char *module_dir,
                     struct ddp_err *err)
{
    const bool mpi = module_dir != NULL;
    const struct ddp_comm_options options = {.timeout_ns = GRID_TIMEOUT_NS,
                                             .device = ddp_device_cpu(ddp_cpu_best_simd()),
                                             .module_dir = module_dir};
    unsigned char *buf[2] = {ddp_alloc_pages(count), ddp_alloc_pages(count)};
    struct ddp_comm *comm = NULL;
    int rc;

    if (buf[0] == NULL || buf[1] == NULL) {
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for two arrays of %zu bytes", count);
        goto err_alloc;
    }
    DDP_TRY_GOTO(
        ddp_comm_create(ddp_backend_find(mpi ? "mpi" : "shm"), rank_info, &options, &comm, err),
        err_alloc);
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL && rc == 0; a++)
        if (is_wanted(*a, mpi))
            rc = check_collective(comm, *a, count, buf, err);
    if (rc != 0 && mpi) {
        fprintf(stderr, "%s\n", err->text);
        ddp_comm_abort(comm, rc);
    }
    ddp_comm_destroy(comm);
err_alloc:
    for (int i = 0; i < 2; i++)
        if (buf[i] != NULL)
            ddp_free_pages(buf[i], count);
    return rc;
}

static int rank_main(void *arg, struct ddp_launch_rank *rank, struct ddp_err *err)
{
    return check_all(*(const size_t *)arg, &rank->rank_info, NULL, err);
}

static void test_long_messages(void **state)
{
    const struct ddp_launch_job job = {
        .ranks = 2,
        .mode = DDP_LAUNCH_PROCESSES,
        .timeout_ns = GRID_TIMEOUT_NS,
        .rank_main = rank_main,
        .arg = *state,
    };
    struct ddp_launch_outcome outcome = {0};
    struct ddp_err err = DDP_ERR_INIT;
    if (ddp_launch(&job, &outcome, &err) != 0 || outcome.code != 0)
        fail_msg("%s (%s)", err.text, outcome.report_text);
}

int main(int argc, char **argv)
{
    const bool full = argc > 1 && strcmp(argv[argc - 1], "--full") == 0;
    size_t count = full ? HUGE : SMALL;
    if (argc > 2 && strcmp(argv[1], "--mpi") == 0) {
        struct ddp_launcher launcher;
        struct ddp_err err = DDP_ERR_INIT;
        int rc = ddp_launcher_detect(&launcher, &err);
        if (rc == 0)
            rc = check_all(count, &launcher.rank_info, argv[2], &err);
        return ddp_exit_code(rc);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_long_messages, &count)};
    return cmocka_run_group_tests_name("coll huge", tests, NULL, NULL);
}
