#include "record/strategy_alike.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* Settings of a run, except ranks, strategy and seed. `label` stands before the value. */
static const struct detail {
    const char *label;
    enum { TEXT, REAL, INTEGER, SWITCH } kind;
    size_t offset; /* in struct ddp_train_run */
} details[] = {
#define DETAIL(label, kind, member)                                                                \
    {                                                                                              \
        label, kind, offsetof(struct ddp_train_run, member)                                        \
    }
    /* The network and its training. */
    DETAIL("", TEXT, model),
    DETAIL("", TEXT, dataset),
    DETAIL("", TEXT, data_path),
    DETAIL("images ", INTEGER, train_images),
    DETAIL("", TEXT, optimizer),
    DETAIL("lr ", REAL, lr),
    DETAIL("momentum ", REAL, momentum),
    DETAIL("weight decay ", REAL, weight_decay),
    DETAIL("init ", TEXT, init),
    DETAIL("init-sync ", TEXT, init_sync),
    DETAIL("partition ", TEXT, partition),
    /* The other settings that define the task. */
    DETAIL("batch ", INTEGER, batch_per_rank),
    DETAIL("max-steps ", INTEGER, max_steps),
    /* How gradients are exchanged. */
    DETAIL("feedback ", TEXT, feedback),
    DETAIL("aggregate ", TEXT, aggregate),
    DETAIL("algorithm ", TEXT, algorithm),
    DETAIL("bucket-bytes ", INTEGER, bucket_bytes),
    DETAIL("overlap ", SWITCH, overlap),
#undef DETAIL
};
#define NET_END      11
#define TASK_END     13
#define DETAILS      ((int)DDP_COUNT_OF(details))
#define DETAIL_BYTES 288

static void print(const struct ddp_train_run *r, int which, char out[DETAIL_BYTES])
{
    const struct detail *d = &details[which];
    const unsigned char *at = (const unsigned char *)r + d->offset;
    double real = 0.0;
    int64_t integer = 0;
    bool is_on = false;
    switch (d->kind) {
    case TEXT:
        snprintf(out, DETAIL_BYTES, "%s%s", d->label, (const char *)at);
        return;
    case SWITCH:
        memcpy(&is_on, at, sizeof is_on);
        snprintf(out, DETAIL_BYTES, "%s%s", d->label, is_on ? "on" : "off");
        return;
    case REAL:
        memcpy(&real, at, sizeof real);
        break;
    case INTEGER:
        memcpy(&integer, at, sizeof integer);
        real = (double)integer;
        break;
    }
    snprintf(out, DETAIL_BYTES, "%s%.9g", d->label, real);
}

static bool same(const struct ddp_train_run *a, const struct ddp_train_run *b, int which)
{
    char mine[DETAIL_BYTES], other[DETAIL_BYTES];
    print(a, which, mine);
    print(b, which, other);
    return strcmp(mine, other) == 0;
}

static bool same_before(const struct ddp_train_run *a, const struct ddp_train_run *b, int end)
{
    for (int i = 0; i < end; i++)
        if (!same(a, b, i))
            return false;
    return true;
}

bool ddp_runs_same_task(const struct ddp_train_run *a, const struct ddp_train_run *b)
{
    return same_before(a, b, TASK_END);
}

bool ddp_runs_same_net(const struct ddp_train_run *a, const struct ddp_train_run *b)
{
    return same_before(a, b, NET_END);
}

bool ddp_runs_same_row(const struct ddp_train_run *a, const struct ddp_train_run *b)
{
    return a->ranks == b->ranks && strcmp(a->sync, b->sync) == 0 && same_before(a, b, DETAILS);
}

void ddp_runs_add_difference(const struct ddp_train_run *run, const struct ddp_train_run *other,
                             char *label, size_t label_bytes)
{
    char text[DETAIL_BYTES + 2] = ", ";
    const size_t used = strlen(label);
    int first = DETAILS;
    for (int i = DETAILS - 1; i >= 0; i--) {
        if (same(run, other, i))
            continue;
        print(run, i, text + 2);
        if (strstr(label, text) != NULL)
            return;
        first = i;
    }
    if (first < DETAILS)
        snprintf(label + used, label_bytes - used, "%s", text);
}
