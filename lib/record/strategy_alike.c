#include "record/strategy_alike.h"

#include <stdio.h>
#include <string.h>

/* Settings of a run, except ranks, strategy and seed. The first group, up to NET_END, defines the
 * network and its training. The first two groups, up to TASK_END, define the task. The third group
 * defines how gradients are exchanged. */
enum detail {
    MODEL,
    DATASET,
    DATA_PATH,
    IMAGES,
    OPTIMIZER,
    LR,
    MOMENTUM,
    WEIGHT_DECAY,
    INIT,
    INIT_SYNC,
    PARTITION,
    NET_END,
    BATCH = NET_END,
    STEPS,
    TASK_END,
    FEEDBACK = TASK_END,
    AGGREGATE,
    ALGORITHM,
    BUCKETS,
    OVERLAP,
    DETAILS
};
#define DETAIL_BYTES 288

static void print(const struct ddp_train_run *r, int which, char out[DETAIL_BYTES])
{
    const char *name = "", *text = NULL;
    double number = 0.0;
    switch ((enum detail)which) {
    case MODEL:
        text = r->model;
        break;
    case DATASET:
        text = r->dataset;
        break;
    case DATA_PATH:
        text = r->data_path;
        break;
    case IMAGES:
        name = "images ", number = (double)r->train_images;
        break;
    case OPTIMIZER:
        text = r->optimizer;
        break;
    case LR:
        name = "lr ", number = r->lr;
        break;
    case MOMENTUM:
        name = "momentum ", number = r->momentum;
        break;
    case WEIGHT_DECAY:
        name = "weight decay ", number = r->weight_decay;
        break;
    case INIT:
        name = "init ", text = r->init;
        break;
    case INIT_SYNC:
        name = "init-sync ", text = r->init_sync;
        break;
    case PARTITION:
        name = "partition ", text = r->partition;
        break;
    case BATCH:
        name = "batch ", number = (double)r->batch_per_rank;
        break;
    case STEPS:
        name = "max-steps ", number = (double)r->max_steps;
        break;
    case FEEDBACK:
        name = "feedback ", text = r->feedback;
        break;
    case AGGREGATE:
        name = "aggregate ", text = r->aggregate;
        break;
    case ALGORITHM:
        name = "algorithm ", text = r->algorithm;
        break;
    case BUCKETS:
        name = "bucket-bytes ", number = (double)r->bucket_bytes;
        break;
    case OVERLAP:
        name = "overlap ", text = r->overlap ? "on" : "off";
        break;
    case DETAILS:
        break;
    }
    if (text)
        snprintf(out, DETAIL_BYTES, "%s%s", name, text);
    else
        snprintf(out, DETAIL_BYTES, "%s%.9g", name, number);
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
