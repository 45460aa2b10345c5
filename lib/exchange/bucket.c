/* Cuts tensors into buckets and exchanges them (bucket.h). */
#include "exchange/bucket.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

struct bucket {
    const struct ddp_buckets *all;
    struct ddp_bucket part;
    void *state;                      /* Owned by the method. NULL until opened. */
    int64_t begin_ns, took_ns;        /* Begin and duration of the last exchange. */
    struct ddp_async_request request; /* With a progress thread. */
    /* With a progress thread on a device, or if the buckets are ordered: occurs when the gradients
     * of the bucket are computed. */
    struct ddp_event *full;
    struct ddp_event *begun, *ended; /* If ordered: begin and end of the exchange. */
};

struct ddp_buckets {
    struct ddp_buckets_setup setup;
    /* Stream on which buckets are exchanged. With a progress thread on a device, this is the
     * progress thread's own stream. If the buckets are ordered, it is the communicator's stream.
     * Otherwise it is setup.stream. */
    struct ddp_stream *exchange;
    struct ddp_event *computed;  /* If ordered: the end of the backward pass of a step. */
    struct ddp_event *exchanged; /* Recorded after the last exchange of a step. */
    bool unsettled;              /* If ordered: the exchanges of a step may not be complete. */
    struct bucket *buckets;      /* [planned], in the order in which they fill. */
    /* planned: number of buckets. count: buckets that are open. next: the bucket that is being
     * filled. */
    int planned, count, next;
    int64_t exchange_ns, exposed_ns;
};

int ddp_buckets_cut(const struct ddp_bucket_layout *layout, struct ddp_bucket *buckets)
{
    const size_t most = layout->most > 0 ? layout->most : SIZE_MAX;
    struct ddp_bucket b = {0};
    size_t at = 0;
    int n = 0;
    for (int p = 0; p < layout->n; p++)
        at += layout->counts[p];
    for (int p = layout->n - 1; p >= 0; p--) {
        for (size_t left = layout->counts[p], take; left > 0; left -= take) {
            const bool fits = b.count < most && (layout->split || left <= most - b.count);
            if (n == 0 || !fits) {
                n++;
                b = (struct ddp_bucket){.first = p + 1};
            }
            take = layout->split ? DDP_MIN(left, most - b.count) : left;
            at -= take;
            b.tensors += b.first - p;
            b.first = p;
            b.offset = at;
            b.count += take;
            if (buckets != NULL)
                buckets[n - 1] = b;
        }
    }
    return n;
}

/* Waits until the gradients of a bucket are computed, because the communicator does not wait for
 * streams. With a progress thread, the backward pass of the earlier layers continues meanwhile. */
static int await_gradients(const struct bucket *bucket, struct ddp_err *err)
{
    const struct ddp_buckets *b = bucket->all;
    if (b->setup.device == NULL)
        return 0;
    const struct ddp_stream_ops *streams = b->setup.device->streams;
    if (bucket->full != NULL) {
        DDP_TRY(streams->select(b->exchange, err));
        streams->event_await(b->exchange, bucket->full);
    }
    return streams->wait(b->exchange, err);
}

/* Exchanges one bucket. Runs in the caller's thread or in the progress thread. */
static int exchange_bucket(void *arg, struct ddp_err *err)
{
    struct bucket *bucket = arg;
    bucket->took_ns = 0;
    DDP_TRY(await_gradients(bucket, err));
    bucket->begin_ns = ddp_now_ns();
    DDP_TRY(bucket->all->setup.method->run(bucket->state, err));
    bucket->took_ns = ddp_now_ns() - bucket->begin_ns;
    return 0;
}

static int plan(struct ddp_buckets *b, struct ddp_err *err)
{
    const struct ddp_bucket_layout *layout = &b->setup.layout;
    const int count = ddp_buckets_cut(layout, NULL);
    struct ddp_bucket *parts;
    DDP_TRY(DDP_NEW(&b->buckets, (size_t)count, err));
    DDP_TRY(DDP_NEW(&parts, (size_t)count, err));
    b->planned = ddp_buckets_cut(layout, parts);
    for (int i = 0; i < b->planned; i++) {
        b->buckets[i].all = b;
        b->buckets[i].part = parts[i];
    }
    free(parts);
    return 0;
}

/* Creates the progress thread's stream, if there is such a thread, and the events. */
static int open_stream(struct ddp_buckets *b, struct ddp_err *err)
{
    const struct ddp_stream_ops *streams = b->setup.device->streams;
    struct ddp_stream *exchange = NULL;
    if (b->setup.ordered)
        exchange = ddp_comm_stream(b->setup.comm);
    else
        DDP_TRY(streams->create(&exchange, err));
    b->exchange = exchange;
    DDP_TRY(streams->event_create(&b->exchanged, err));
    if (b->setup.ordered)
        DDP_TRY(streams->event_create(&b->computed, err));
    for (int i = 0; i < b->planned; i++) {
        struct bucket *bucket = &b->buckets[i];
        DDP_TRY(streams->event_create(&bucket->full, err));
        if (!b->setup.ordered)
            continue;
        DDP_TRY(streams->event_create(&bucket->begun, err));
        DDP_TRY(streams->event_create(&bucket->ended, err));
    }
    return 0;
}

/* If the buckets are ordered, waits until the exchanges of a step are complete. */
static int await_exchanges(struct ddp_buckets *b, struct ddp_err *err)
{
    if (!b->unsettled)
        return 0;
    b->unsettled = false;
    const struct ddp_bucket *last = &b->buckets[0].part;
    const size_t bytes = (last->offset + last->count) * ddp_dtype_size(b->setup.dtype);
    return ddp_comm_wait_stream(b->setup.comm, DDP_ALLREDUCE, b->setup.dtype, bytes, err);
}

/* Waits for the compute stream first, because events must outlive the work that refers to them. */
static void close_stream(struct ddp_buckets *b)
{
    const struct ddp_stream_ops *streams = b->setup.device->streams;
    struct ddp_err ignored = DDP_ERR_INIT;
    (void)!streams->wait(b->setup.stream, &ignored);
    if (b->exchange != b->setup.stream && !b->setup.ordered)
        streams->destroy(b->exchange);
    for (int i = 0; i < b->planned; i++) {
        streams->event_destroy(b->buckets[i].full);
        streams->event_destroy(b->buckets[i].begun);
        streams->event_destroy(b->buckets[i].ended);
    }
    streams->event_destroy(b->computed);
    streams->event_destroy(b->exchanged);
}

static int open_buckets(struct ddp_buckets *b, struct ddp_err *err)
{
    const struct ddp_buckets_setup *s = &b->setup;
    struct ddp_comm *comm = s->async != NULL ? ddp_async_comm(s->async) : s->comm;
    for (; b->count < b->planned; b->count++) {
        struct bucket *bucket = &b->buckets[b->count];
        DDP_TRY(s->method->open(s->arg, comm, b->exchange, &bucket->part, &bucket->state, err));
        if (s->async != NULL)
            ddp_async_prepare_job(s->async, exchange_bucket, bucket, s->dtype,
                                  bucket->part.count * ddp_dtype_size(s->dtype), &bucket->request);
    }
    return 0;
}

static bool has_two_streams(const struct ddp_buckets *b)
{
    return b->setup.device != NULL && (b->setup.async != NULL || b->setup.ordered);
}

/* Creates everything that does not need other ranks. On failure, *out may be NULL or incomplete. */
static int create_local(const struct ddp_buckets_setup *setup, struct ddp_buckets **out,
                        struct ddp_err *err)
{
    struct ddp_buckets *b;
    DDP_TRY(DDP_NEW(out, 1, err));
    b = *out;
    b->setup = *setup;
    b->exchange = setup->stream;
    DDP_TRY(plan(b, err));
    return has_two_streams(b) ? open_stream(b, err) : 0;
}

int ddp_buckets_create(const struct ddp_buckets_setup *setup, struct ddp_buckets **out,
                       struct ddp_err *err)
{
    struct ddp_buckets *b;
    int rc = create_local(setup, &b, err);
    if (setup->device != NULL && (setup->async != NULL || setup->ordered))
        rc = ddp_comm_agree(setup->comm, rc, err);
    if (rc != 0)
        goto err_buckets;
    DDP_TRY_GOTO(open_buckets(b, err), err_buckets);
    *out = b;
    return 0;

err_buckets:
    ddp_buckets_destroy(b);
    return rc;
}

void ddp_buckets_destroy(struct ddp_buckets *b)
{
    if (b == NULL)
        return;
    /* First wait for the exchanges, then free the objects that they use. */
    struct ddp_err ignored = DDP_ERR_INIT;
    (void)!await_exchanges(b, &ignored);
    for (int i = 0; i < b->count; i++)
        ddp_async_release(&b->buckets[i].request);
    for (int i = 0; i < b->count; i++)
        b->setup.method->close(b->buckets[i].state);
    if (b->setup.device != NULL)
        close_stream(b);
    free(b->buckets);
    free(b);
}

/* Puts the exchange of a full bucket on the exchange stream, which first waits for the gradients.
 * The events must not be recorded again before the exchanges of the last step are complete. */
static int start_ordered(struct ddp_buckets *b, struct bucket *bucket, struct ddp_err *err)
{
    const struct ddp_stream_ops *streams = b->setup.device->streams;
    if (bucket == b->buckets)
        DDP_TRY(ddp_buckets_settle(b, err));
    b->unsettled = true;
    streams->event_record(bucket->full, b->setup.stream);
    streams->event_await(b->exchange, bucket->full);
    streams->event_record(bucket->begun, b->exchange);
    b->setup.comm->deferred = true;
    const int rc = b->setup.method->run(bucket->state, err);
    b->setup.comm->deferred = false;
    streams->event_record(bucket->ended, b->exchange);
    return rc;
}

/* Starts the exchange of a full bucket. If the buckets are not ordered and there is no progress
 * thread, the exchange is complete on return. */
static int start(struct ddp_buckets *b, struct bucket *bucket, struct ddp_err *err)
{
    if (b->setup.ordered)
        return start_ordered(b, bucket, err);
    if (b->setup.async != NULL) {
        if (b->setup.device != NULL)
            b->setup.device->streams->event_record(bucket->full, b->setup.stream);
        ddp_async_post(&bucket->request);
        return 0;
    }
    DDP_TRY(exchange_bucket(bucket, err));
    b->exchange_ns += bucket->took_ns;
    b->exposed_ns += bucket->took_ns; /* The caller waited. */
    return 0;
}

/* Makes the compute stream wait for the exchange stream, and reports errors of the exchange stream.
 */
static int join_streams(struct ddp_buckets *b, struct ddp_err *err)
{
    const struct ddp_stream_ops *streams = b->setup.device->streams;
    streams->event_record(b->exchanged, b->exchange);
    streams->event_await(b->setup.stream, b->exchanged);
    const int done = streams->query(b->exchange, err);
    return done < 0 ? done : 0;
}

int ddp_buckets_ready(struct ddp_buckets *b, int tensor, struct ddp_err *err)
{
    while (b->next < b->count && b->buckets[b->next].part.first >= tensor)
        DDP_TRY(start(b, &b->buckets[b->next++], err));
    return 0;
}

/* Adds the times of a step, whose exchanges are complete. The last bucket may be exchanged before
 * the backward pass ends, because later gradients may be empty. The negative time between the two
 * events then counts as 0. */
static int add_times(struct ddp_buckets *b, struct ddp_err *err)
{
    const struct ddp_stream_ops *streams = b->setup.device->streams;
    double ns;
    for (int i = 0; i < b->count; i++) {
        DDP_TRY(streams->event_elapsed(b->buckets[i].begun, b->buckets[i].ended, &ns, err));
        b->exchange_ns += (int64_t)ns;
    }
    DDP_TRY(streams->event_elapsed(b->computed, b->exchanged, &ns, err));
    b->exposed_ns += ns > 0 ? (int64_t)ns : 0;
    return 0;
}

int ddp_buckets_settle(struct ddp_buckets *b, struct ddp_err *err)
{
    if (!b->unsettled)
        return 0;
    DDP_TRY(await_exchanges(b, err));
    return add_times(b, err);
}

int ddp_buckets_finish(struct ddp_buckets *b, struct ddp_err *err)
{
    int rc = 0;
    while (b->next < b->count && rc == 0)
        rc = start(b, &b->buckets[b->next++], err);
    const int started = b->next;
    b->next = 0;
    if (rc == 0 && b->setup.ordered) {
        b->setup.device->streams->event_record(b->computed, b->setup.stream);
        return join_streams(b, err);
    }
    if (b->setup.async == NULL || rc != 0)
        return rc;
    /* The device still computes during this wait, so the wait does not count as exposed. */
    if (b->setup.device != NULL)
        rc = b->setup.device->streams->wait(b->setup.stream, err);
    const int64_t begin = ddp_now_ns();
    /* Wait for all requests even after an error, so that nothing accesses the gradients any more
     * when this function returns. */
    for (int i = 0; i < started; i++) {
        const int one = ddp_async_wait(&b->buckets[i].request, 0, rc == 0 ? err : NULL);
        rc = rc != 0 ? rc : one;
        b->exchange_ns += b->buckets[i].took_ns;
    }
    b->exposed_ns += ddp_now_ns() - begin;
    return rc == 0 && b->setup.device != NULL ? join_streams(b, err) : rc;
}

void ddp_buckets_times(const struct ddp_buckets *b, int64_t *exchange_ns, int64_t *exposed_ns)
{
    *exchange_ns = b->exchange_ns;
    *exposed_ns = b->exposed_ns;
}

bool ddp_buckets_exchanged(const struct ddp_buckets *b, int i, int64_t *begin_ns, int64_t *end_ns)
{
    *begin_ns = b->buckets[i].begin_ns;
    *end_ns = *begin_ns + b->buckets[i].took_ns;
    return !b->setup.ordered;
}

int ddp_buckets_count(const struct ddp_buckets *b)
{
    return b->count;
}

const void *ddp_buckets_state(const struct ddp_buckets *b, int i)
{
    return b->buckets[i].state;
}
