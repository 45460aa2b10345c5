/* Cuts gradients into buckets and exchanges them (grad_buckets.h). */
#include "exchange/grad_buckets.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/async.h"
#include "device/stream.h"

struct bucket {
    const struct ddp_grad_buckets *all;
    struct ddp_grad_bucket part;
    void *state;                      /* Owned by the method. NULL until opened. */
    int64_t took_ns;                  /* Duration of the last exchange. */
    struct ddp_async_request request; /* With overlap. */
    /* With overlap on a device: recorded when all gradients of the bucket are computed. */
    struct ddp_event *full;
};

struct ddp_grad_buckets {
    const struct ddp_bucket_method *method;
    void *arg;
    struct ddp_async *async;         /* NULL without overlap. */
    const struct ddp_device *device; /* Device that holds the gradients. NULL: host memory. */
    /* Streams of the device: `compute` computes the gradients, `exchange` exchanges buckets.
     * Without overlap they are the same stream. With overlap `exchange` belongs to the progress
     * thread. */
    struct ddp_stream *compute, *exchange;
    struct ddp_event *exchanged; /* With overlap: recorded after the last exchange of a step. */
    struct bucket *buckets;      /* [planned], in the order in which they fill. */
    /* planned: number of buckets. count: buckets that are open. next: the bucket that is being
     * filled. */
    int planned, count, next;
    int64_t exchange_ns, exposed_ns;
};

int ddp_grad_buckets_cut(const struct ddp_sync_setup *setup, struct ddp_grad_bucket *buckets)
{
    int n = 0;
    const size_t most =
        setup->bucket_bytes > 0 ? setup->bucket_bytes / sizeof(float) : setup->total;
    for (int p = setup->param_count - 1; p >= 0; p--) {
        struct ddp_grad_bucket *b = n > 0 ? &buckets[n - 1] : NULL;
        if (b == NULL || b->count + setup->counts[p] > most) {
            b = &buckets[n++];
            *b = (struct ddp_grad_bucket){0};
        }
        b->first = p;
        b->tensors++;
        b->offset = setup->offsets[p];
        b->count += setup->counts[p];
    }
    return n;
}

/* Waits until the gradients of a bucket are computed, because the communicator does not wait for
 * streams. With overlap the rest of the backward pass continues meanwhile. */
static int await_gradients(const struct bucket *bucket, struct ddp_err *err)
{
    const struct ddp_grad_buckets *b = bucket->all;
    if (b->device == NULL)
        return 0;
    const struct ddp_stream_ops *streams = b->device->streams;
    if (bucket->full != NULL) {
        DDP_TRY(streams->select(b->exchange, err));
        streams->event_await(b->exchange, bucket->full);
    }
    return streams->wait(b->exchange, err);
}

/* Exchanges one bucket. Runs in the main thread or, with overlap, in the progress thread. */
static int exchange_bucket(void *arg, struct ddp_err *err)
{
    struct bucket *bucket = arg;
    bucket->took_ns = 0;
    DDP_TRY(await_gradients(bucket, err));
    const int64_t begin = ddp_now_ns();
    DDP_TRY(bucket->all->method->run(bucket->state, err));
    bucket->took_ns = ddp_now_ns() - begin;
    return 0;
}

static int plan(struct ddp_grad_buckets *b, const struct ddp_sync_setup *setup, struct ddp_err *err)
{
    const size_t most = (size_t)setup->param_count;
    struct ddp_grad_bucket *parts = ddp_calloc(most, sizeof *parts);
    b->buckets = ddp_calloc(most, sizeof *b->buckets);
    if (parts == NULL || b->buckets == NULL) {
        free(parts);
        return ddp_fail(err, DDP_ENOMEM, "no memory for the buckets of %zu tensors", most);
    }
    b->planned = ddp_grad_buckets_cut(setup, parts);
    for (int i = 0; i < b->planned; i++) {
        b->buckets[i].all = b;
        b->buckets[i].part = parts[i];
    }
    free(parts);
    return 0;
}

/* Creates the progress thread's stream and the events. */
static int open_stream(struct ddp_grad_buckets *b, struct ddp_err *err)
{
    const struct ddp_stream_ops *streams = b->device->streams;
    struct ddp_stream *exchange = NULL;
    DDP_TRY(streams->create(&exchange, err));
    b->exchange = exchange;
    DDP_TRY(streams->event_create(&b->exchanged, err));
    for (int i = 0; i < b->planned; i++)
        DDP_TRY(streams->event_create(&b->buckets[i].full, err));
    return 0;
}

/* Waits for the compute stream first, because events must outlive the work that refers to them. */
static void close_stream(struct ddp_grad_buckets *b)
{
    const struct ddp_stream_ops *streams = b->device->streams;
    struct ddp_err ignored = DDP_ERR_INIT;
    (void)!streams->wait(b->compute, &ignored);
    if (b->exchange != b->compute)
        streams->destroy(b->exchange);
    for (int i = 0; i < b->planned; i++)
        streams->event_destroy(b->buckets[i].full);
    streams->event_destroy(b->exchanged);
}

static int open_buckets(struct ddp_grad_buckets *b, const struct ddp_sync_setup *setup,
                        struct ddp_err *err)
{
    struct ddp_comm *comm = b->async != NULL ? ddp_async_comm(b->async) : setup->comm;
    const struct ddp_bucket_method *method = b->method;
    struct ddp_sync_setup inner = *setup;
    inner.stream = b->exchange;
    if (method->begin != NULL)
        DDP_TRY(method->begin(b->arg, &inner, comm, err));
    for (; b->count < b->planned; b->count++) {
        struct bucket *bucket = &b->buckets[b->count];
        DDP_TRY(method->open(b->arg, &inner, comm, &bucket->part, &bucket->state, err));
        if (b->async != NULL)
            ddp_async_prepare_job(b->async, exchange_bucket, bucket,
                                  bucket->part.count * sizeof(float), &bucket->request);
    }
    return 0;
}

int ddp_grad_buckets_create(const struct ddp_sync_setup *setup,
                            const struct ddp_bucket_method *method, void *arg,
                            struct ddp_grad_buckets **out, struct ddp_err *err)
{
    int rc;
    struct ddp_grad_buckets *b = ddp_calloc(1, sizeof *b);
    if (b == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for buckets of gradients");
    b->method = method;
    b->arg = arg;
    b->device = setup->comm->size > 1 ? setup->device : NULL; /* A single rank exchanges nothing. */
    b->compute = b->exchange = setup->stream;
    DDP_TRY_GOTO(plan(b, setup, err), err_buckets);
    if (setup->overlap && setup->comm->size > 1)
        DDP_TRY_GOTO(ddp_async_create(setup->comm, &b->async, err), err_buckets);
    if (b->async != NULL && b->device != NULL)
        DDP_TRY_GOTO(ddp_comm_agree(setup->comm, open_stream(b, err), err), err_buckets);
    DDP_TRY_GOTO(open_buckets(b, setup, err), err_buckets);
    *out = b;
    return 0;

err_buckets:
    ddp_grad_buckets_destroy(b);
    return rc;
}

void ddp_grad_buckets_destroy(struct ddp_grad_buckets *b)
{
    if (b == NULL)
        return;
    /* First wait for the progress thread, then free the objects that it uses. */
    for (int i = 0; i < b->count; i++)
        ddp_async_release(&b->buckets[i].request);
    for (int i = 0; i < b->count; i++)
        b->method->close(b->buckets[i].state);
    if (b->method->end != NULL)
        b->method->end(b->arg);
    if (b->device != NULL)
        close_stream(b);
    ddp_async_destroy(b->async);
    free(b->buckets);
    free(b);
}

/* Starts the exchange of a full bucket. Without overlap the exchange is complete on return. */
static int start(struct ddp_grad_buckets *b, struct bucket *bucket, struct ddp_err *err)
{
    if (b->async != NULL) {
        if (b->device != NULL)
            b->device->streams->event_record(bucket->full, b->compute);
        ddp_async_post(&bucket->request);
        return 0;
    }
    DDP_TRY(exchange_bucket(bucket, err));
    b->exchange_ns += bucket->took_ns;
    b->exposed_ns += bucket->took_ns; /* The main thread waited. */
    return 0;
}

/* Makes the compute stream wait for the exchange stream, and reports errors of the exchange stream.
 */
static int join_streams(struct ddp_grad_buckets *b, struct ddp_err *err)
{
    const struct ddp_stream_ops *streams = b->device->streams;
    streams->event_record(b->exchanged, b->exchange);
    streams->event_await(b->compute, b->exchanged);
    const int done = streams->query(b->exchange, err);
    return done < 0 ? done : 0;
}

int ddp_grad_buckets_ready(struct ddp_grad_buckets *b, int param, struct ddp_err *err)
{
    if (b->next == b->count || b->buckets[b->next].part.first != param)
        return 0;
    return start(b, &b->buckets[b->next++], err);
}

int ddp_grad_buckets_finish(struct ddp_grad_buckets *b, struct ddp_err *err)
{
    int rc = 0;
    while (b->next < b->count && rc == 0)
        rc = start(b, &b->buckets[b->next++], err);
    const int started = b->next;
    b->next = 0;
    if (b->async == NULL || rc != 0)
        return rc;
    /* The device still computes during this wait, so the wait does not count as exposed. */
    if (b->device != NULL)
        rc = b->device->streams->wait(b->compute, err);
    const int64_t begin = ddp_now_ns();
    /* Wait for all requests even after an error, so that nothing accesses the gradients any more
     * when this function returns. */
    for (int i = 0; i < started; i++) {
        const int one = ddp_async_wait(&b->buckets[i].request, 0, rc == 0 ? err : NULL);
        rc = rc != 0 ? rc : one;
        b->exchange_ns += b->buckets[i].took_ns;
    }
    b->exposed_ns += ddp_now_ns() - begin;
    return rc == 0 && b->device != NULL ? join_streams(b, err) : rc;
}

void ddp_grad_buckets_counters(const struct ddp_grad_buckets *b, struct ddp_sync_counters *out)
{
    *out = (struct ddp_sync_counters){.wire_counted = true,
                                      .exchange_ns = b->exchange_ns,
                                      .exposed_ns = b->exposed_ns,
                                      .overflow_count = -1};
    for (int i = 0; i < b->count; i++)
        b->method->count(b->arg, b->buckets[i].state, out);
}

int ddp_grad_buckets_count(const struct ddp_grad_buckets *b)
{
    return b->count;
}
