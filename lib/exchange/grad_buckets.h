/* Exchange of gradients in buckets. Without overlap the main thread exchanges them. With overlap a
 * progress thread does so during the backward pass. All gradient strategies (sync_dense.c,
 * sync_compressed.c) use this file.
 *
 * A *bucket* is a sequence of neighbouring tensors of the flat array with at most bucket_bytes in
 * total. A larger tensor is a bucket of its own. bucket_bytes 0 gives a single bucket. Gradients
 * become ready last layer first, so buckets fill from the end of the array. A bucket is exchanged
 * as soon as its first tensor in memory is final. A *method* defines how one bucket is exchanged in
 * place. With overlap the same code exchanges the same buckets in the same order, so the results
 * are bit-identical to those without overlap.
 *
 * On a device a gradient is final when the compute stream has computed it. With overlap the
 * progress thread has a stream of its own, on which the methods put their work. This stream waits
 * until the compute stream has computed the bucket. bucket.h, in contrast, may cut inside a tensor
 * and supports all-reduce only. */
#ifndef DDP_EXCHANGE_GRAD_BUCKETS_H
#define DDP_EXCHANGE_GRAD_BUCKETS_H

#include "exchange/sync.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One bucket: tensors [first, first + tensors), which are elements [offset, offset + count) of
 * grads. */
struct ddp_grad_bucket {
    int first, tensors;
    size_t offset, count;
};

/* How one bucket is exchanged. arg is the value passed to ddp_grad_buckets_create. state belongs to
 * one bucket. */
struct ddp_bucket_method {
    /* Optional. Called once, before the first open. Collective over comm, which is the communicator
     * that `run` will use. With overlap `run` uses comm in another thread. */
    int (*begin)(void *arg, const struct ddp_sync_setup *setup, struct ddp_comm *comm,
                 struct ddp_err *err);
    /* Optional. Called once, after the last close, even if begin failed or was not called. */
    void (*end)(void *arg);
    /* Creates the state of one bucket. Collective. */
    int (*open)(void *arg, const struct ddp_sync_setup *setup, struct ddp_comm *comm,
                const struct ddp_grad_bucket *bucket, void **state, struct ddp_err *err);
    /* Exchanges the bucket. Collective. Must not allocate. */
    int (*run)(void *state, struct ddp_err *err);
    /* Adds the bucket's counters to *sum: wire_bytes, wire_counted, values, encode, decode,
     * overflows. */
    void (*count)(void *arg, const void *state, struct ddp_sync_counters *sum);
    /* Frees the state, which may be NULL. */
    void (*close)(void *state);
};

struct ddp_grad_buckets;

/* Cuts the gradients and opens all buckets. Collective. setup->grads, method and arg are borrowed
 * until destroy. The other arrays of setup are borrowed only during the call. With overlap and more
 * than one rank, a progress thread is started (coll/async.h). setup->comm must then have been
 * opened with ddp_comm_options.threads. Methods receive a copy of setup and must use its stream. */
int ddp_grad_buckets_create(const struct ddp_sync_setup *setup,
                            const struct ddp_bucket_method *method, void *arg,
                            struct ddp_grad_buckets **out, struct ddp_err *err) DDP_MUST_CHECK;
/* b may be NULL. */
void ddp_grad_buckets_destroy(struct ddp_grad_buckets *b);
/* Implement on_grad_ready and finish_backward of ddp_sync_class. On a device with overlap, finish
 * first waits for the compute stream. Only the time that it waits afterwards counts as exposed. */
int ddp_grad_buckets_ready(struct ddp_grad_buckets *b, int param, struct ddp_err *err);
int ddp_grad_buckets_finish(struct ddp_grad_buckets *b, struct ddp_err *err);
/* Sums the counters of all buckets. Call it between steps only. */
void ddp_grad_buckets_counters(const struct ddp_grad_buckets *b, struct ddp_sync_counters *out);
int ddp_grad_buckets_count(const struct ddp_grad_buckets *b);
/* Cuts setup's gradients into buckets [param_count], in the order in which they fill. Returns the
 * number of buckets. */
int ddp_grad_buckets_cut(const struct ddp_sync_setup *setup, struct ddp_grad_bucket *buckets);

#ifdef __cplusplus
}
#endif
#endif
