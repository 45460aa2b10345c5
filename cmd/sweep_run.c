/* The part of a sweep that runs in the ranks. Runs the items of one launch group, one after the
 * other. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/unit.h"
#include "sweep.h"

/* A rank's progress through a launch group. */
struct position {
    const struct ddp_sweep_values *v;
    const struct ddp_sweep_launch_group *stage;
    int item;               /* index in v->items */
    int finished, measured; /* items finished in the group, points measured in the repetition */
    double seconds;         /* estimated duration of the finished items */
    char prefix[96];        /* of progress lines */
};

static bool has(void *arg, const char *id)
{
    const struct position *at = arg;
    return ddp_sweep_done_has(&at->v->done, ddp_sweep_key(at->stage->launch, at->item, id));
}

/* Writes the prefix of progress lines, with the time left. The time left is the estimate for the
 * remaining items, multiplied by the ratio of real to estimated time of the finished items. */
static void describe(struct position *at)
{
    const struct ddp_sweep_values *v = at->v;
    const double done = v->seconds_done + at->seconds;
    const double took = (double)(ddp_now_ns() - v->started_ns) / 1e9;
    const double worth = done > 0 ? took / done : 1;
    char left[24];
    ddp_format_ns(DDP_MAX(v->seconds_todo - done, 0) * worth * 1e9, left, sizeof left);
    snprintf(at->prefix, sizeof at->prefix, "[%d/%d, about %s left] ", v->ended + at->finished + 1,
             v->count * (int)v->launches, left);
}

static int send_event(struct ddp_rank *rank, const struct position *at,
                      enum ddp_sweep_event_type type, const char *text, struct ddp_err *err)
{
    struct ddp_sweep_event event;
    memset(&event, 0, sizeof event);
    event.type = (int)type;
    event.launch = at->stage->launch;
    event.item = at->item;
    ddp_printable(text, event.text, sizeof event.text);
    return ddp_emit_sweep(rank, &event, sizeof event, err);
}

static int run_item(struct ddp_rank *rank, struct position *at, bool has_control,
                    struct ddp_err *err)
{
    const struct ddp_sweep_values *v = at->v;
    const struct ddp_sweep_item *item = &v->items[at->item];
    struct ddp_sweep_open open;
    int rc = ddp_sweep_item_open(rank->app, v, item, &open, err);
    DDP_TRY(ddp_comm_agree(rank->comm, rc, err));
    struct ddp_rank mine = *rank;
    mine.app = &open.app;
    mine.world = open.values;
    mine.launch_number = v->launches > 1 ? at->stage->launch : 0;
    mine.first_place = item->first_place;
    mine.of = v->points;
    mine.measured = &at->measured;
    mine.prefix = at->prefix;
    mine.has_control = has_control;
    mine.has = has;
    mine.has_arg = at;
    rc = send_event(rank, at, DDP_SWEEP_BEGINS, "", err);
    if (rc == 0)
        rc = item->cmd->rank_main(&mine, open.values, err);
    ddp_sweep_item_close(item, &open);
    return rc;
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
    struct position at = {.v = v, .stage = &v->stages[v->current]};
    bool has_control = false;
    at.measured = v->measured[at.stage->launch - 1];
    for (int i = 0; i < at.stage->count; i++) {
        at.item = at.stage->items[i];
        if (has(&at, DDP_SWEEP_END))
            continue;
        describe(&at);
        int rc = run_item(rank, &at, has_control, err);
        if (can_go_on(rc, err)) {
            struct ddp_err cause = *err;
            *err = DDP_ERR_INIT;
            DDP_TRY(send_event(rank, &at, DDP_SWEEP_LEFT_OUT, cause.text, err));
        } else if (rc == 0) {
            has_control = true;
            DDP_TRY(send_event(rank, &at, DDP_SWEEP_ENDS, "", err));
        } else {
            return rc;
        }
        at.finished++;
        at.seconds += v->items[at.item].seconds;
    }
    return 0;
}
