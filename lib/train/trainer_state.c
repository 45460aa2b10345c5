/* Averages the running statistics of batch normalisation over the ranks before an evaluation. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "train/trainer_impl.h"

/* Sent by each rank to compute the weights of the average. */
struct state_weight {
    int64_t images;    /* images that the rank trained on in this epoch */
    int64_t exchanged; /* 1 if this rank has exchanged anything since the run began, else 0 */
};

/* Sets share [size] to each rank's fraction of the epoch's images. If the ranks have never
 * exchanged anything, sets all shares to zero, because the statistics must not be averaged. */
static int shares(struct ddp_trainer *t, double *share, struct ddp_err *err)
{
    struct ddp_sync_counters now;
    t->o->sync->counters(t->sync, &now);
    struct state_weight mine = {t->sums.images, now.exchange_ns > 0}, *all = t->gathered;
    int64_t images = 0, exchanged = 0;
    DDP_TRY(ddp_comm_allgather_bytes(t->comm, &mine, all, sizeof mine, err));
    for (int r = 0; r < t->comm->size; r++) {
        images += all[r].images;
        exchanged |= all[r].exchanged;
    }
    for (int r = 0; r < t->comm->size; r++)
        share[r] = exchanged && images > 0 ? (double)all[r].images / (double)images : 0.0;
    return 0;
}

/* Averages in rank order, so that all ranks get the same bits. */
int ddp_trainer_average_state(struct ddp_trainer *t, struct ddp_err *err)
{
    size_t count = t->o->model->state_count;
    int ranks = t->comm->size, rc;
    if (count == 0 || ranks == 1)
        return 0;
    float *state = ddp_calloc(count, sizeof *state);
    float *all = ddp_calloc(count * (size_t)ranks, sizeof *all);
    double *share = ddp_calloc((size_t)ranks, sizeof *share);
    rc = all && share && state ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory for running statistics");
    DDP_TRY_GOTO(ddp_comm_agree(t->comm, rc, err), err_memory);
    memcpy(state, ddp_trainer_read(t, t->o->model->state(t->model), count), count * sizeof *state);
    DDP_TRY_GOTO(shares(t, share, err), err_memory);
    DDP_TRY_GOTO(ddp_comm_allgather_bytes(t->comm, state, all, count * sizeof *state, err),
                 err_memory);
    double sum = 0.0;
    for (int r = 0; r < ranks; r++)
        sum += share[r];
    for (size_t i = 0; i < count && sum > 0.0; i++) {
        double mean = 0.0;
        for (int r = 0; r < ranks; r++)
            mean += share[r] * (double)all[(size_t)r * count + i];
        state[i] = (float)mean;
    }
    ddp_trainer_write(t, t->o->model->state(t->model), state, count);

err_memory:
    free(share);
    free(all);
    free(state);
    return rc;
}
