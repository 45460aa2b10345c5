#include "exchange/grad_buckets.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/async.h"
#include "device/stream.h"

/* state: the method's; NULL until opened. took_ns: its last exchange. With overlap: request, and,
 * on a device, full: happens when all its gradients are there. */
struct bucket {
    const struct ddp_grad_buckets *all;
    struct ddp_grad_bucket part;
    void *state;
    int64_t took_ns;
    struct ddp_async_request request;
    struct ddp_event *full;
};

/* async: NULL without overlap. planned: buckets; count: those that are open. next: the one that
 * fills now. */
struct ddp_grad_buckets {
    const struct ddp_bucket_method *method;
    void *arg;
    struct ddp_async *async;
    const struct ddp_device *device; /* gradients lie there; NULL: on the processor */
    /* Of the device: where gradients are made, and where buckets are exchanged: the same one
     * without overlap, else the progress thread's. */
    struct ddp_stream *made, *exchange;
    struct ddp_event *exchanged; /* when exchange's work of a step is done; with overlap */
    struct bucket *buckets;      /* [planned], in the order in which they fill */
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

/* The gradients must be there, for the communicator knows no stream; with overlap the rest of the
 * backward pass goes on meanwhile. */
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

/* By the main thread, or, with overlap, by the progress thread. */
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

/* What the progress thread needs on the device beside the main thread. */
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

/* Events last as long as a stream may come to them. */
static void close_stream(struct ddp_grad_buckets *b)
{
    const struct ddp_stream_ops *streams = b->device->streams;
    struct ddp_err ignored = DDP_ERR_INIT;
    (void)!streams->wait(b->made, &ignored);
    if (b->exchange != b->made)
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
    b->device = setup->comm->size > 1 ? setup->device : NULL; /* one rank moves nothing */
    b->made = b->exchange = setup->stream;
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
    /* First what the thread still works on, then what it works with. */
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

/* Starts the exchange of a bucket that is full; without overlap it is over when this returns. */
static int start(struct ddp_grad_buckets *b, struct bucket *bucket, struct ddp_err *err)
{
    if (b->async != NULL) {
        if (b->device != NULL)
            b->device->streams->event_record(bucket->full, b->made);
        ddp_async_post(&bucket->request);
        return 0;
    }
    DDP_TRY(exchange_bucket(bucket, err));
    b->exchange_ns += bucket->took_ns;
    b->exposed_ns += bucket->took_ns; /* nothing computes meanwhile */
    return 0;
}

/* The gradients' user comes after what the exchange has put on its stream, which is the main
 * thread's for now. What failed there is told here. */
static int join_streams(struct ddp_grad_buckets *b, struct ddp_err *err)
{
    const struct ddp_stream_ops *streams = b->device->streams;
    streams->event_record(b->exchanged, b->exchange);
    streams->event_await(b->made, b->exchanged);
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
    /* Until then the device computes, and nothing of the exchange is exposed. */
    if (b->device != NULL)
        rc = b->device->streams->wait(b->made, err);
    const int64_t begin = ddp_now_ns();
    /* All of them, so that no gradient is touched any more when this returns. */
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
