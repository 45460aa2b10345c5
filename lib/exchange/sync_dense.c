/* Dense gradient averaging: the sum over ranks of gradients that each rank scaled by 1/global
 * count, by all-reduce.
 *
 * A bucket is a run of neighbouring tensors of the flat array, at most bucket_bytes together; a
 * larger tensor is a bucket alone. Gradients come last layer first, so buckets are filled from the
 * end of the array, and each is reduced as soon as its first tensor in memory is final.
 * bucket_bytes 0: one bucket. Wire bytes: counted where the algorithm sends messages; 2(P-1)/P of
 * the buffer where it maps memory or calls a native library, and then said to be a model. */
#include "exchange/sync.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

/* first: the parameter whose gradient is the last of the bucket to become final. */
struct bucket {
    int first;
    size_t offset, count;
    struct ddp_coll_plan plan;
};

struct ddp_sync {
    struct ddp_comm *comm;
    struct bucket *buckets; /* [bucket_count], in the order in which they fill */
    int bucket_count, next; /* next: the one that fills now */
    struct ddp_sync_counters so_far;
};

static void destroy(struct ddp_sync *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->bucket_count; i++)
        ddp_coll_plan_release(&s->buckets[i].plan);
    free(s->buckets);
    free(s);
}

/* Cuts the array into buckets from its end; buckets [param_count] is large enough. */
static int cut(const struct ddp_sync_setup *setup, struct bucket *buckets)
{
    int n = 0;
    size_t most = setup->bucket_bytes ? setup->bucket_bytes / sizeof(float) : setup->total;
    for (int p = setup->param_count - 1; p >= 0; p--) {
        struct bucket *b = n ? &buckets[n - 1] : NULL;
        if (!b || b->count + setup->counts[p] > most) {
            b = &buckets[n++];
            b->count = 0;
        }
        b->first = p;
        b->offset = setup->offsets[p];
        b->count += setup->counts[p];
    }
    return n;
}

static int create(const struct ddp_sync_setup *setup, struct ddp_sync **out, struct ddp_err *err)
{
    int rc;
    struct ddp_sync *s = ddp_calloc(1, sizeof *s);
    struct bucket *buckets = ddp_calloc((size_t)setup->param_count, sizeof *buckets);
    if (!s || !buckets) {
        free(buckets);
        free(s);
        return ddp_fail(err, DDP_ENOMEM, "no memory for the sync strategy");
    }
    s->comm = setup->comm;
    s->buckets = buckets;
    s->so_far.wire_counted = true;
    int n = cut(setup, buckets);
    for (; s->bucket_count < n; s->bucket_count++) {
        struct bucket *b = &buckets[s->bucket_count];
        float *at = setup->grads + b->offset;
        struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                     .send = at,
                                     .recv = at,
                                     .count = b->count,
                                     .dtype = DDP_F32,
                                     .op = DDP_SUM};
        DDP_TRY_GOTO(ddp_coll_plan_init(&b->plan, s->comm, NULL, &args, err), err_plans);
    }
    *out = s;
    return 0;

err_plans:
    destroy(s);
    return rc;
}

static int reduce(struct ddp_sync *s, struct bucket *b, struct ddp_err *err)
{
    uint64_t sent = s->comm->wire_bytes;
    int64_t start = ddp_now_ns();
    DDP_TRY(ddp_coll_run(s->comm, &b->plan, err));
    int64_t took = ddp_now_ns() - start;
    s->so_far.exchange_ns += took;
    s->so_far.exposed_ns += took; /* nothing computes meanwhile */
    sent = s->comm->wire_bytes - sent;
    double ranks = s->comm->size;
    if (sent > 0 || s->comm->size == 1) {
        s->so_far.wire_bytes += (double)sent;
    } else {
        s->so_far.wire_bytes += 2.0 * (ranks - 1.0) / ranks * (double)b->count * sizeof(float);
        s->so_far.wire_counted = false;
    }
    return 0;
}

static int on_grad_ready(struct ddp_sync *s, int param, struct ddp_err *err)
{
    if (s->next == s->bucket_count || s->buckets[s->next].first != param)
        return 0;
    return reduce(s, &s->buckets[s->next++], err);
}

static int finish_backward(struct ddp_sync *s, struct ddp_err *err)
{
    while (s->next < s->bucket_count)
        DDP_TRY(reduce(s, &s->buckets[s->next++], err));
    s->next = 0;
    return 0;
}

static int end_step(struct ddp_sync *s, struct ddp_err *err)
{
    return 0;
}

static void counters(const struct ddp_sync *s, struct ddp_sync_counters *out)
{
    *out = s->so_far;
}

extern const struct ddp_sync_class ddp_sync_dense;
const struct ddp_sync_class ddp_sync_dense = {
    .name = "dense",
    .summary = "every gradient, by all-reduce, averaged over the global batch",
    .replicas_equal = true,
    .create = create,
    .destroy = destroy,
    .on_grad_ready = on_grad_ready,
    .finish_backward = finish_backward,
    .end_step = end_step,
    .counters = counters,
};
