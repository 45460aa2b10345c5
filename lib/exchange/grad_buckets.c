#include "exchange/grad_buckets.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/async.h"
#include "device/stream.h"

/* state: the method's; NULL until opened. request: with overlap. */
struct bucket {
    const struct ddp_bucket_method *method;
    struct ddp_grad_bucket part;
    void *state;
    struct ddp_async_request request;
};

/* async: NULL without overlap. next: the bucket that fills now. */
struct ddp_grad_buckets {
    const struct ddp_bucket_method *method;
    void *arg;
    struct ddp_async *async;
    const struct ddp_device *device; /* gradients lie there; NULL: on the processor */
    struct ddp_stream *stream;
    struct bucket *buckets; /* [count], in the order in which they fill */
    int count, next;
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

static int run_method(void *arg, struct ddp_err *err)
{
    const struct bucket *b = arg;
    return b->method->run(b->state, err);
}

/* Lays the buckets out; *parts [param_count] is scratch. */
static int open_buckets(struct ddp_grad_buckets *b, const struct ddp_sync_setup *setup,
                        struct ddp_grad_bucket *parts, struct ddp_err *err)
{
    struct ddp_comm *comm = b->async != NULL ? ddp_async_comm(b->async) : setup->comm;
    const struct ddp_bucket_method *method = b->method;
    const int n = ddp_grad_buckets_cut(setup, parts);
    if (method->begin != NULL)
        DDP_TRY(method->begin(b->arg, setup, comm, err));
    for (; b->count < n; b->count++) {
        struct bucket *bucket = &b->buckets[b->count];
        bucket->method = method;
        bucket->part = parts[b->count];
        DDP_TRY(method->open(b->arg, setup, comm, &bucket->part, &bucket->state, err));
        if (b->async != NULL)
            ddp_async_prepare_job(b->async, run_method, bucket, bucket->part.count * sizeof(float),
                                  &bucket->request);
    }
    return 0;
}

int ddp_grad_buckets_create(const struct ddp_sync_setup *setup,
                            const struct ddp_bucket_method *method, void *arg,
                            struct ddp_grad_buckets **out, struct ddp_err *err)
{
    int rc = 0;
    const size_t most = (size_t)setup->param_count;
    struct ddp_grad_bucket *parts = ddp_calloc(most, sizeof *parts);
    struct ddp_grad_buckets *b = ddp_calloc(1, sizeof *b);
    if (b != NULL) {
        b->method = method;
        b->arg = arg;
        b->device = setup->comm->size > 1 ? setup->device : NULL; /* one rank moves nothing */
        b->stream = setup->stream;
        b->buckets = ddp_calloc(most, sizeof *b->buckets);
    }
    if (parts == NULL || b == NULL || b->buckets == NULL)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for the buckets of %zu tensors", most);
    if (rc == 0 && setup->overlap && setup->comm->size > 1)
        rc = ddp_async_create(setup->comm, &b->async, err);
    if (rc == 0)
        rc = open_buckets(b, setup, parts, err);
    free(parts);
    if (rc != 0)
        ddp_grad_buckets_destroy(b);
    else
        *out = b;
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
    ddp_async_destroy(b->async);
    free(b->buckets);
    free(b);
}

/* Starts the exchange of a bucket that is full; without overlap it is over when this returns. */
static int start(struct ddp_grad_buckets *b, struct bucket *bucket, struct ddp_err *err)
{
    if (b->async != NULL) {
        ddp_async_post(&bucket->request);
        return 0;
    }
    /* The communicator does not know the stream on which gradients are made. */
    if (b->device != NULL)
        DDP_TRY(b->device->streams->wait(b->stream, err));
    const int64_t begin = ddp_now_ns();
    DDP_TRY(run_method(bucket, err));
    const int64_t took = ddp_now_ns() - begin;
    b->exchange_ns += took;
    b->exposed_ns += took; /* nothing computes meanwhile */
    return 0;
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
    const int64_t begin = ddp_now_ns();
    /* All of them, so that no gradient is touched any more when this returns. */
    for (int i = 0; i < started; i++) {
        struct ddp_async_request *request = &b->buckets[i].request;
        const int one = ddp_async_wait(request, 0, rc == 0 ? err : NULL);
        rc = rc != 0 ? rc : one;
        b->exchange_ns += request->finished_ns - request->started_ns;
    }
    b->exposed_ns += ddp_now_ns() - begin;
    return rc;
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
