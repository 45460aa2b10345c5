/* The part of a sweep that runs in the ranks. Runs the items of one launch group, one after the
 * other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "run/sweep.h"

bool ddp_sweep_has(const struct ddp_sweep_position *at, const char *id)
{
    return ddp_sweep_done_has(&at->v->done, ddp_sweep_key(at->stage->launch, at->item, id));
}

int ddp_sweep_launch_number(const struct ddp_sweep_position *at)
{
    return at->v->launches > 1 ? at->stage->launch : 0;
}

void ddp_sweep_set_place(struct ddp_sweep_position *at, struct ddp_point *point)
{
    point->launch = ddp_sweep_launch_number(at);
    point->place += at->v->items[at->item].first_place;
    point->order = at->measured++;
    point->of = at->v->points;
}

void ddp_sweep_progress(const struct ddp_sweep_position *at, char out[DDP_SWEEP_PROGRESS_BYTES])
{
    const struct ddp_sweep_values *v = at->v;
    const double done = at->done_before + at->seconds;
    const double item = v->items[at->item].estimate.seconds;
    const double took = (double)(at->item_ns - v->started_ns) / 1e9;
    const double in_item = (double)(ddp_now_ns() - at->item_ns) / 1e9;
    /* Real seconds per estimated second. Before the first item is finished, the factor is computed
     * from the running item, and is at least 1. */
    const double factor = done > 0 ? took / done : DDP_MAX(in_item / item, 1);
    const double others = DDP_MAX(v->seconds_todo - done - item, 0) * factor;
    snprintf(out, DDP_SWEEP_PROGRESS_BYTES, "[%d/%d", at->ended_before + at->finished + 1,
             v->count * (int)v->launches);
    ddp_log_progress_times(out, DDP_SWEEP_PROGRESS_BYTES, took + in_item, "about",
                           others + DDP_MAX(item * factor - in_item, 0));
    ddp_text_append(out, DDP_SWEEP_PROGRESS_BYTES, "] ");
}

static int send_event(struct ddp_rank *rank, const struct ddp_sweep_position *at,
                      enum ddp_sweep_event_type type, const char *text, struct ddp_err *err)
{
    struct ddp_sweep_event event;
    memset(&event, 0, sizeof event);
    event.type = (int)type;
    event.launch = at->stage->launch;
    event.item = at->item;
    ddp_printable(text, event.text, sizeof event.text);
    return ddp_emit_sweep(rank, &event, err);
}

static int run_item(const struct ddp_rank *rank, struct ddp_sweep_position *at, struct ddp_err *err)
{
    const struct ddp_sweep_item *item = &at->v->items[at->item];
    struct ddp_rank mine = *rank;
    mine.sweep = at;
    DDP_TRY(send_event(&mine, at, DDP_SWEEP_BEGINS, "", err));
    return item->cmd->job->rank_main(&mine, item->values, err);
}

/* Returns true if the sweep can continue after an error, because all ranks agree that the item
 * cannot run here. */
static bool can_go_on(int rc, const struct ddp_err *err)
{
    return rc == DDP_EUNAVAIL && err->agreed;
}

int ddp_sweep_rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err)
{
    const struct ddp_sweep_values *v = values;
    struct ddp_sweep_position at = {.v = v,
                                    .stage = &v->stages[v->current],
                                    .ended_before = v->ended,
                                    .done_before = v->seconds_done};
    at.measured = v->measured[at.stage->launch - 1];
    for (int i = 0; i < at.stage->count; i++) {
        at.item = at.stage->items[i];
        if (ddp_sweep_has(&at, DDP_SWEEP_END))
            continue;
        at.item_ns = ddp_now_ns();
        int rc = run_item(rank, &at, err);
        if (can_go_on(rc, err)) {
            struct ddp_err cause = *err;
            *err = DDP_ERR_INIT;
            DDP_TRY(send_event(rank, &at, DDP_SWEEP_LEFT_OUT, cause.text, err));
        } else if (rc == 0) {
            at.has_control = true;
            DDP_TRY(send_event(rank, &at, DDP_SWEEP_ENDS, "", err));
        } else {
            return rc;
        }
        at.finished++;
        at.seconds += v->items[at.item].estimate.seconds;
    }
    return 0;
}

/* Every rank sends the hash of its plan and the number of its keys to all ranks in this struct. */
struct summary {
    uint64_t plan, keys;
};

static int share_keys(struct ddp_sweep_values *v, struct ddp_comm *comm, uint64_t n,
                      struct ddp_err *err)
{
    uint64_t *mine, *all = NULL;
    int rc = DDP_NEW(&mine, (size_t)n, err);
    if (rc == 0)
        rc = DDP_NEW(&all, (size_t)n * (size_t)comm->size, err);
    rc = ddp_comm_agree(comm, rc, err);
    if (rc == 0 && comm->rank == 0)
        memcpy(mine, v->done.keys, (size_t)n * sizeof *mine);
    if (rc == 0)
        rc = ddp_comm_allgather_bytes(comm, mine, all, (size_t)n * sizeof *mine, err);
    for (uint64_t i = 0; i < n && rc == 0 && comm->rank != 0; i++)
        rc = ddp_sweep_done_add(&v->done, all[i], err);
    free(mine);
    free(all);
    return ddp_comm_agree(comm, rc, err);
}

int ddp_sweep_share(struct ddp_sweep_values *v, struct ddp_comm *comm, struct ddp_err *err)
{
    struct summary mine = {.plan = v->plan.hash, .keys = v->done.count};
    struct summary *all;
    int rc = DDP_NEW(&all, (size_t)comm->size, err);
    DDP_TRY(ddp_comm_agree(comm, rc, err));
    rc = ddp_comm_allgather_bytes(comm, &mine, all, sizeof mine, err);
    for (int r = 1; r < comm->size && rc == 0; r++)
        if (all[r].plan != all[0].plan)
            rc = ddp_fail(err, DDP_EMISMATCH, "rank %d reads a different '%.200s' than rank 0", r,
                          v->config_path);
    const uint64_t n = all[0].keys;
    free(all);
    rc = ddp_comm_agree(comm, rc, err);
    if (rc == 0 && n > 0)
        rc = share_keys(v, comm, n, err);
    ddp_sweep_done_sort(&v->done);
    return rc;
}
