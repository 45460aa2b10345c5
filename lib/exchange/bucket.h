/* Buckets of gradients. A bucket is exchanged while the backward pass computes the gradients of the
 * next bucket. libddp's bucketer (ddp_bucket.c) and the gradient strategies of the trainer
 * (sync_buckets.c) use these functions.
 *
 * The tensors form one sequence of elements in layer order. Gradients become ready last layer
 * first, so the sequence is cut into buckets from its end. A *method* defines how one bucket is
 * exchanged in place. A progress thread (coll/async.h) exchanges a bucket as soon as all tensors of
 * the bucket are ready, while the caller continues. Without a progress thread, ddp_buckets_ready
 * exchanges the bucket. The buckets and their order are the same in both cases, so the results are
 * bit-identical. The caller makes sure that all ranks cut the same buckets.
 *
 * On a device, the caller may report a gradient as ready as soon as it has put the work that
 * computes the gradient on the compute stream. The work need not be finished. With a progress
 * thread, the methods put their work on a second stream, which waits until the compute stream has
 * computed the bucket.
 *
 * With the member `ordered` of the setup, the host does not wait for single buckets and needs no
 * progress thread. The second stream is then the communicator's stream (ddp_comm_stream). For each
 * bucket this stream waits for an event that the compute stream records after the gradients of the
 * bucket. The host waits once per step. */
#ifndef DDP_EXCHANGE_BUCKET_H
#define DDP_EXCHANGE_BUCKET_H

#include "coll/async.h"
#include "device/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One bucket: elements [offset, offset + count) of the sequence. These elements lie in `tensors`
 * consecutive tensors, from tensor `first` on. */
struct ddp_bucket {
    int first, tensors;
    size_t offset, count;
};

/* How the sequence is cut. Tensors without elements are ignored. */
struct ddp_bucket_layout {
    const size_t *counts; /* Elements of each tensor, [n]. */
    int n;
    size_t most; /* Elements per bucket. 0: a single bucket. */
    /* True: every bucket except the one that fills last has `most` elements, and a tensor may span
     * several buckets. False: buckets are cut between tensors only, and a tensor of more than
     * `most` elements is a bucket of its own. */
    bool split;
};
/* Stores the buckets in the order in which they fill. buckets may be NULL. Returns their number. */
int ddp_buckets_cut(const struct ddp_bucket_layout *layout, struct ddp_bucket *buckets);

/* How one bucket is exchanged. `state` belongs to one bucket. */
struct ddp_bucket_method {
    /* Creates the state of a bucket. May be collective. arg: member `arg` of the setup. comm: the
     * communicator for `run`. stream: the stream for the work of `run` on a device. */
    int (*open)(void *arg, struct ddp_comm *comm, struct ddp_stream *stream,
                const struct ddp_bucket *bucket, void **state, struct ddp_err *err);
    /* Exchanges the bucket. Collective. Must not allocate. The progress thread calls this function
     * if there is one. */
    int (*run)(void *state, struct ddp_err *err);
    /* Frees the state, which may be NULL. */
    void (*close)(void *state);
};

/* Arguments of ddp_buckets_create. Everything except layout.counts is borrowed until destroy. */
struct ddp_buckets_setup {
    struct ddp_comm *comm;
    struct ddp_async *async; /* The progress thread. NULL: exchange in the caller's thread. */
    /* Device that holds the gradients, and the stream that computes them. NULL: host memory. */
    const struct ddp_device *device;
    struct ddp_stream *stream;
    /* On a device without `async`: the exchanges are ordered by streams and events. The method only
     * puts its work on the stream that `open` got, and calls collectives of `comm`, which must have
     * a stream. */
    bool ordered;
    struct ddp_bucket_layout layout;
    enum ddp_dtype dtype; /* Type of the elements, for the flight recorder. */
    const struct ddp_bucket_method *method;
    void *arg;
};

struct ddp_buckets;

/* Cuts the sequence and opens all buckets. Collective if method->open is collective, or if there is
 * a device and also a progress thread or `ordered`. */
int ddp_buckets_create(const struct ddp_buckets_setup *setup, struct ddp_buckets **out,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Waits for pending buckets and frees b, which may be NULL. */
void ddp_buckets_destroy(struct ddp_buckets *b);
/* Reports that this tensor and all tensors after it in layer order are ready. */
int ddp_buckets_ready(struct ddp_buckets *b, int tensor, struct ddp_err *err) DDP_MUST_CHECK;
/* Exchanges the buckets that were not reported ready, and waits until all are exchanged. On a
 * device with a progress thread, the function first waits for the compute stream. Only its later
 * wait for the exchanges counts as exposed. With `ordered`, the compute stream waits instead of the
 * caller. */
int ddp_buckets_finish(struct ddp_buckets *b, struct ddp_err *err) DDP_MUST_CHECK;
/* With `ordered`, waits until the exchanges of the last step are complete. Fails at the deadline of
 * the communicator. The start of the first bucket of a step also calls this function. Without
 * `ordered` there is nothing to wait for. Call this function before a wait for the compute stream,
 * because that wait has no deadline. */
int ddp_buckets_settle(struct ddp_buckets *b, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns sums since create. exchange_ns: duration of the exchanges. exposed_ns: time that the
 * caller waited for the exchanges. With `ordered`, both are times by the device's clock, and
 * exposed_ns is the time between the end of the backward pass and the end of the last exchange.
 * Call this function between steps only, and after ddp_buckets_settle. */
void ddp_buckets_times(const struct ddp_buckets *b, int64_t *exchange_ns, int64_t *exposed_ns);
/* Sets *begin_ns and *end_ns to the times of this rank at which the last exchange of the i-th
 * bucket began and ended. On a device, the begin is the time at which the gradients were computed.
 * Returns false if the buckets are `ordered`, because the host does not know the times. */
bool ddp_buckets_exchanged(const struct ddp_buckets *b, int i, int64_t *begin_ns, int64_t *end_ns);
int ddp_buckets_count(const struct ddp_buckets *b);
/* Returns the state of the i-th bucket. */
const void *ddp_buckets_state(const struct ddp_buckets *b, int i);

#ifdef __cplusplus
}
#endif
#endif
