/* Dense gradient averaging. Each rank multiplies its gradients by 1/(number of images of all
 * ranks). The strategy sums them over the ranks in buckets. --aggregate selects where each bucket
 * is summed (aggregate.h). */
#include <stdlib.h>

#include "base/mem.h"
#include "exchange/grad_buckets.h"

struct ddp_sync {
    const struct ddp_aggregate *how;
    struct ddp_host_groups hosts; /* Only if how->needs_hosts. */
    struct ddp_grad_buckets *buckets;
};

static int begin(void *arg, const struct ddp_sync_setup *setup, struct ddp_comm *comm,
                 struct ddp_err *err)
{
    struct ddp_sync *s = arg;
    (void)setup;
    return s->how->needs_hosts ? ddp_host_groups_open(comm, &s->hosts, err) : 0;
}

static void end(void *arg)
{
    struct ddp_sync *s = arg;
    ddp_host_groups_close(&s->hosts);
}

static int open_bucket(void *arg, const struct ddp_sync_setup *setup, struct ddp_comm *comm,
                       const struct ddp_grad_bucket *bucket, void **state, struct ddp_err *err)
{
    const struct ddp_sync *s = arg;
    const size_t tensors = (size_t)bucket->tensors;
    struct ddp_aggregation *aggregation = NULL;
    size_t *offsets = ddp_calloc(tensors, sizeof *offsets);
    if (offsets == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a bucket of %zu tensors", tensors);
    for (size_t i = 0; i < tensors; i++)
        offsets[i] = setup->offsets[(size_t)bucket->first + i] - bucket->offset;
    const struct ddp_aggregate_setup inner = {.comm = comm,
                                              .data = setup->grads + bucket->offset,
                                              .n = bucket->count,
                                              .offsets = offsets,
                                              .counts = setup->counts + bucket->first,
                                              .key_count = bucket->tensors,
                                              .hosts = &s->hosts,
                                              .algorithm = setup->algorithm};
    const int rc = ddp_aggregation_create(s->how, &inner, &aggregation, err);
    free(offsets);
    *state = aggregation;
    return rc;
}

static int run_bucket(void *state, struct ddp_err *err)
{
    return ddp_aggregation_run(state, err);
}

static void count_bucket(void *arg, const void *state, struct ddp_sync_counters *sum)
{
    (void)arg;
    bool counted;
    sum->wire_bytes += ddp_aggregation_wire_bytes(state, &counted);
    sum->wire_counted &= counted;
}

static void close_bucket(void *state)
{
    ddp_aggregation_destroy(state);
}

static const struct ddp_bucket_method method = {
    .begin = begin,
    .end = end,
    .open = open_bucket,
    .run = run_bucket,
    .count = count_bucket,
    .close = close_bucket,
};

static int create(const struct ddp_sync_setup *setup, struct ddp_sync **out, struct ddp_err *err)
{
    struct ddp_sync *s = ddp_calloc(1, sizeof *s);
    if (s == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the sync strategy");
    s->how = setup->aggregate != NULL ? setup->aggregate : ddp_aggregates()[0];
    const int rc = ddp_grad_buckets_create(setup, &method, s, &s->buckets, err);
    if (rc != 0) {
        free(s);
        return rc;
    }
    *out = s;
    return 0;
}

static void destroy(struct ddp_sync *s)
{
    if (s == NULL)
        return;
    ddp_grad_buckets_destroy(s->buckets);
    free(s);
}

static int on_grad_ready(struct ddp_sync *s, int param, struct ddp_err *err)
{
    return ddp_grad_buckets_ready(s->buckets, param, err);
}

static int finish_backward(struct ddp_sync *s, struct ddp_err *err)
{
    return ddp_grad_buckets_finish(s->buckets, err);
}

static int end_step(struct ddp_sync *s, struct ddp_err *err)
{
    (void)s;
    (void)err;
    return 0;
}

static void counters(const struct ddp_sync *s, struct ddp_sync_counters *out)
{
    ddp_grad_buckets_counters(s->buckets, out);
}

extern const struct ddp_sync_class ddp_sync_dense;
const struct ddp_sync_class ddp_sync_dense = {
    .name = "dense",
    .summary = "every gradient, averaged over the global batch",
    .replicas_equal = true,
    .buckets = true,
    .aggregates = true,
    .on_device = true,
    .scale = DDP_SCALE_SUM,
    .create = create,
    .destroy = destroy,
    .on_grad_ready = on_grad_ready,
    .finish_backward = finish_backward,
    .end_step = end_step,
    .counters = counters,
};
