/* The strategy `zero1`: the optimiser state is sharded over the ranks, as in stage 1 of ZeRO. Each
 * rank receives only its shard of the summed gradients, updates its shard of the parameters, and
 * sends it to the other ranks. The ranks exchange as many bytes as with `dense`.
 *
 *   backward pass   reduce-scatter of each bucket of gradients
 *   optimiser       updates the shard
 *   end_step        all-gather of each bucket of parameters
 *
 * A unit is one cache line for each rank, and every bucket is a whole number of units. A bucket
 * consists of P chunks of equal size, and rank r owns chunk r of every bucket. Both collectives
 * therefore work in place and need no memory. The tail is the remainder at the end of the array,
 * which is less than a unit. An all-reduce sums the gradients of the tail, and every rank updates
 * the parameters of the tail.
 *
 * On shared memory, reduce-scatter and all-reduce add in the order of the ranks. The bits are then
 * those of `dense`. With two ranks, every algorithm gives these bits. With more ranks, other
 * algorithms may add in another order.
 *
 * Source: S. Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter
 * Models (SC 2020), section 5.1. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "exchange/sync.h"

#define LINE_ELEMENTS (DDP_CACHE_LINE / sizeof(float))

struct ddp_sync {
    const struct ddp_sync_setup *setup; /* valid during create only */
    struct ddp_async *async;            /* NULL without overlap */
    struct ddp_buckets *buckets;
    struct ddp_aggregation *tail;     /* all-reduce of the gradients of the tail */
    struct ddp_aggregation **gathers; /* [gather_count], one per bucket */
    int gather_count;
    /* Time in which the main thread waits for the tail's all-reduce and the gathers. */
    int64_t wait_ns;
};

/* Returns the number of elements before the tail. */
static size_t body_of(size_t total, int ranks)
{
    const size_t unit = ranks > 1 ? (size_t)ranks * LINE_ELEMENTS : 1;
    return total / unit * unit;
}

/* Returns the largest number of elements of a bucket. */
static size_t bucket_most(const struct ddp_sync_setup *setup, int ranks)
{
    const size_t unit = (size_t)ranks * LINE_ELEMENTS;
    const size_t most = setup->bucket_bytes / sizeof(float) / unit * unit;
    return setup->bucket_bytes > 0 ? DDP_MAX(most, unit) : SIZE_MAX;
}

static size_t shard(const struct ddp_sync_setup *setup, int ranks, int rank,
                    struct ddp_range *parts, int *count)
{
    const size_t body = body_of(setup->total, ranks), tail = setup->total - body;
    const size_t most = bucket_most(setup, ranks);
    int n = 0;
    /* Buckets are cut from the end. */
    for (size_t end = body; end > 0; n++) {
        const size_t bucket = DDP_MIN(end, most), chunk = bucket / (size_t)ranks;
        end -= bucket;
        const size_t begin = end + (size_t)rank * chunk;
        if (parts != NULL)
            parts[n] = (struct ddp_range){begin, begin + chunk};
    }
    if (tail > 0 && parts != NULL)
        parts[n] = (struct ddp_range){body, setup->total};
    *count = n + (tail > 0);
    return body / (size_t)ranks + tail;
}

static void destroy(struct ddp_sync *s)
{
    if (s == NULL)
        return;
    ddp_buckets_destroy(s->buckets);
    ddp_async_destroy(s->async);
    ddp_aggregation_destroy(s->tail);
    for (int i = 0; i < s->gather_count; i++)
        ddp_aggregation_destroy(s->gathers[i]);
    free(s->gathers);
    free(s);
}

/* Plans the all-gather of the parameters of a bucket, and the reduce-scatter of its gradients. */
static int open_bucket(void *arg, struct ddp_comm *comm, struct ddp_stream *stream,
                       const struct ddp_bucket *bucket, void **state, struct ddp_err *err)
{
    struct ddp_sync *s = arg;
    const struct ddp_sync_setup *setup = s->setup;
    struct ddp_aggregation *scatter = NULL;
    struct ddp_aggregate_setup inner = {.comm = setup->comm,
                                        .data = setup->params + bucket->offset,
                                        .n = bucket->count,
                                        .algorithm = setup->algorithm};
    (void)stream;
    DDP_TRY(
        ddp_aggregation_create(&ddp_aggregate_gather, &inner, &s->gathers[s->gather_count], err));
    s->gather_count++;
    inner.comm = comm;
    inner.data = setup->grads + bucket->offset;
    DDP_TRY(ddp_aggregation_create(&ddp_aggregate_scatter, &inner, &scatter, err));
    *state = scatter;
    return 0;
}

static int run_bucket(void *state, struct ddp_err *err)
{
    return ddp_aggregation_run(state, err);
}

static void close_bucket(void *state)
{
    ddp_aggregation_destroy(state);
}

/* Opens the buckets. Sets counts [param_count] to the sizes of the tensors without the tail. */
static int open_buckets(struct ddp_sync *s, size_t *counts, struct ddp_err *err)
{
    static const struct ddp_bucket_method method = {
        .open = open_bucket, .run = run_bucket, .close = close_bucket};
    const struct ddp_sync_setup *setup = s->setup;
    const int ranks = setup->comm->size;
    size_t left = body_of(setup->total, ranks);
    for (int i = 0; i < setup->param_count; i++) {
        counts[i] = DDP_MIN(setup->counts[i], left);
        left -= counts[i];
    }
    const struct ddp_buckets_setup buckets = {
        .comm = setup->comm,
        .async = s->async,
        .layout = {.counts = counts,
                   .n = setup->param_count,
                   .most = bucket_most(setup, ranks),
                   .split = true},
        .dtype = DDP_F32,
        .method = &method,
        .arg = s,
    };
    const int most = ddp_buckets_cut(&buckets.layout, NULL);
    DDP_TRY(DDP_NEW(&s->gathers, (size_t)most, err));
    return ddp_buckets_create(&buckets, &s->buckets, err);
}

static int create(const struct ddp_sync_setup *setup, struct ddp_sync **out, struct ddp_err *err)
{
    const size_t body = body_of(setup->total, setup->comm->size);
    const struct ddp_aggregate_setup tail = {.comm = setup->comm,
                                             .data = setup->grads + body,
                                             .n = setup->total - body,
                                             .algorithm = setup->algorithm};
    struct ddp_sync *s;
    size_t *counts = NULL;
    int rc;
    if (setup->device != NULL)
        return ddp_fail(err, DDP_EUNAVAIL, "device '%s' does not have the strategy zero1",
                        setup->device->name);
    DDP_TRY(DDP_NEW(&s, 1, err));
    s->setup = setup;
    if (setup->overlap && setup->comm->size > 1)
        DDP_TRY_GOTO(ddp_async_create(setup->comm, &s->async, err), err_sync);
    DDP_TRY_GOTO(ddp_aggregation_create(ddp_aggregates()[0], &tail, &s->tail, err), err_sync);
    DDP_TRY_GOTO(DDP_NEW(&counts, (size_t)setup->param_count, err), err_sync);
    DDP_TRY_GOTO(open_buckets(s, counts, err), err_sync);
    free(counts);
    *out = s;
    return 0;

err_sync:
    free(counts);
    destroy(s);
    return rc;
}

static int on_grad_ready(struct ddp_sync *s, int param, struct ddp_err *err)
{
    return ddp_buckets_ready(s->buckets, param, err);
}

static int finish_backward(struct ddp_sync *s, struct ddp_err *err)
{
    const int64_t begin = ddp_now_ns();
    DDP_TRY(ddp_aggregation_run(s->tail, err));
    s->wait_ns += ddp_now_ns() - begin;
    return ddp_buckets_finish(s->buckets, err);
}

static int end_step(struct ddp_sync *s, struct ddp_err *err)
{
    const int64_t begin = ddp_now_ns();
    for (int i = 0; i < s->gather_count; i++)
        DDP_TRY(ddp_aggregation_run(s->gathers[i], err));
    s->wait_ns += ddp_now_ns() - begin;
    return 0;
}

static void count_bytes(const struct ddp_aggregation *a, struct ddp_sync_counters *out)
{
    bool counted;
    out->wire_bytes += ddp_aggregation_wire_bytes(a, &counted);
    out->wire_counted &= counted;
}

static void counters(const struct ddp_sync *s, struct ddp_sync_counters *out)
{
    *out = (struct ddp_sync_counters){.wire_counted = true, .overflow_count = -1};
    ddp_buckets_times(s->buckets, &out->exchange_ns, &out->exposed_ns);
    out->exchange_ns += s->wait_ns;
    out->exposed_ns += s->wait_ns;
    count_bytes(s->tail, out);
    for (int i = 0; i < s->gather_count; i++) {
        count_bytes(s->gathers[i], out);
        count_bytes(ddp_buckets_state(s->buckets, i), out);
    }
}

const struct ddp_sync_class ddp_sync_zero1 = {
    .name = "zero1",
    .summary = "as dense, but the optimiser state is sharded: each rank updates its part of the "
               "parameters and sends it to the others",
    .replicas_equal = true,
    .buckets = true,
    .scale = DDP_SCALE_SUM,
    .shard = shard,
    .create = create,
    .destroy = destroy,
    .on_grad_ready = on_grad_ready,
    .finish_backward = finish_backward,
    .end_step = end_step,
    .counters = counters,
};
