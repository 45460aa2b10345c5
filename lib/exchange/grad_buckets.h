/* Gradients exchanged in buckets, by the main thread as they fill, or beside it by the progress
 * thread: what all gradient strategies (sync_dense.c, sync_compressed.c) are made of.
 *
 * A *bucket* is a run of neighbouring tensors of the flat array, at most bucket_bytes together; a
 * larger tensor is a bucket alone; bucket_bytes 0: one bucket. Gradients come last layer first, so
 * buckets are filled from the end of the array, and each is exchanged as soon as its first tensor
 * in memory is final. A *method* says how one bucket is exchanged, in place. Buckets are exchanged
 * in the same order, by the same code, with overlap and without, so the bits are the same.
 * On a device a bucket is full when the stream has come so far: with overlap the progress thread
 * has a stream of its own, which waits for that, and on which methods put their work.
 * Unlike bucket.h, which cuts at elements and knows all-reduce only. */
#ifndef DDP_EXCHANGE_GRAD_BUCKETS_H
#define DDP_EXCHANGE_GRAD_BUCKETS_H

#include "exchange/sync.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tensors [first, first + tensors) of the setup: elements [offset, offset + count) of grads. */
struct ddp_grad_bucket {
    int first, tensors;
    size_t offset, count;
};

/* arg: as given to create; state: one a bucket. begin (may be NULL): once, before the first bucket;
 * collective over comm, on which run will be called (by another thread, with overlap). open:
 * collective, too. run: collective; no allocation. count: adds what it knows to *sum (wire_bytes,
 * wire_counted, values, encode, decode, overflows). close: NULL is fine. end (may be NULL): once,
 * after the last close, also when begin failed or was not called. */
struct ddp_bucket_method {
    int (*begin)(void *arg, const struct ddp_sync_setup *setup, struct ddp_comm *comm,
                 struct ddp_err *err);
    void (*end)(void *arg);
    int (*open)(void *arg, const struct ddp_sync_setup *setup, struct ddp_comm *comm,
                const struct ddp_grad_bucket *bucket, void **state, struct ddp_err *err);
    int (*run)(void *state, struct ddp_err *err);
    void (*count)(void *arg, const void *state, struct ddp_sync_counters *sum);
    void (*close)(void *state);
};

struct ddp_grad_buckets;

/* Collective. setup's arrays are borrowed for create alone, but for grads; method and arg until
 * destroy. With overlap and more than one rank a progress thread is started
 * (coll/async.h); setup->comm must have been opened for threads. What a method gets of setup has
 * the stream that it is to use. */
int ddp_grad_buckets_create(const struct ddp_sync_setup *setup,
                            const struct ddp_bucket_method *method, void *arg,
                            struct ddp_grad_buckets **out, struct ddp_err *err) DDP_MUST_CHECK;
/* NULL is fine. */
void ddp_grad_buckets_destroy(struct ddp_grad_buckets *b);
/* As ddp_sync_class's on_grad_ready and finish_backward. On a device finish waits for the stream of
 * the gradients with overlap; what it waits longer is exposed. */
int ddp_grad_buckets_ready(struct ddp_grad_buckets *b, int param, struct ddp_err *err);
int ddp_grad_buckets_finish(struct ddp_grad_buckets *b, struct ddp_err *err);
/* Between steps. */
void ddp_grad_buckets_counters(const struct ddp_grad_buckets *b, struct ddp_sync_counters *out);
int ddp_grad_buckets_count(const struct ddp_grad_buckets *b);
/* How setup's gradients are cut: buckets [param_count], in the order in which they fill. Returns
 * their number. */
int ddp_grad_buckets_cut(const struct ddp_sync_setup *setup, struct ddp_grad_bucket *buckets);

#ifdef __cplusplus
}
#endif
#endif
