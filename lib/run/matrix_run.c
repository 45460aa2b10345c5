#include "run/matrix_run.h"

#include "bench/pair_matrix.h"

/* The message buffers of a rank: one to send from, and four to receive into. */
#define BUFFERS 5

static int prepare(struct ddp_app *app, void *values, const char *backend, int ranks,
                   struct ddp_err *err)
{
    const struct ddp_matrix_values *v = values;
    const uint64_t bytes = v->size * BUFFERS * (uint64_t)ddp_app_local_ranks(app, ranks);
    return ddp_job_check_ranks("matrix", backend, ranks, bytes, err);
}

static int gpu(const void *values, struct ddp_gpu_options *out, struct ddp_err *err)
{
    (void)values;
    (void)out;
    return ddp_fail(err, DDP_EUNAVAIL,
                    "matrix measures messages between processors, not between GPUs");
}

static void progress(void *arg, int round, int rounds)
{
    ddp_emit_progress(arg, "matrix: round %d of %d", round, rounds);
}

static int rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err)
{
    const struct ddp_matrix_values *v = values;
    const struct ddp_pair_options options = {
        .by_host = v->by == DDP_MATRIX_BY_HOST,
        .bytes = v->size,
        .iters = v->iters,
        .max_time_s = v->max_time_s,
        .rounds = v->rounds,
        .seed = (uint64_t)v->world.seed,
    };
    struct ddp_matrix matrix;
    int rc = ddp_pair_matrix(rank->comm, &options, progress, rank, &matrix, err);
    if (rc == 0)
        rc = ddp_emit_matrix(rank, &matrix, err);
    ddp_matrix_release(&matrix);
    return rc;
}

static void release(void *values)
{
    (void)values;
}

const struct ddp_job ddp_matrix_job = {
    .prepare = prepare,
    .gpu = gpu,
    .rank_main = rank_main,
    .release = release,
};
