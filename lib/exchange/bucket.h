/* Buckets of gradients: a progress thread all-reduces each bucket while the backward pass fills the
 * next one. Gradients become ready last layer first.
 *
 * Used by ddp_bucket.c (the public bucketer). The tensors form one sequence of elements in layer
 * order, which is cut from its end into buckets of pack_elements. *Pack*: ready() copies a tensor
 * into the bucket memory, in the caller's thread, while its values are in the cache. *Reduce*: the
 * progress thread reduces a bucket as soon as its lowest element is ready. *Unpack*: the progress
 * thread copies the result back right after the reduction. Three buckets can thus be in progress at
 * a time. In place (memory NULL) there is nothing to pack or unpack. The caller (ddp_bucket.c)
 * makes sure that all ranks cut alike. */
#ifndef DDP_EXCHANGE_BUCKET_H
#define DDP_EXCHANGE_BUCKET_H

#include "coll/async.h"
#include "exchange/ddp.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_buckets;

/* Arguments of ddp_buckets_create. async, memory and the data of the arrays must outlive the
 * buckets. */
struct ddp_buckets_setup {
    struct ddp_async *async;
    /* Tensors in layer order, [n], all of one dtype. The structs are copied, the data is borrowed.
     */
    const struct ddp_array *arrays;
    int n;
    /* Elements per bucket. 0: a single bucket. */
    size_t pack_elements;
    enum ddp_op op;
    /* Memory for all elements, borrowed. NULL: reduce in place, which requires
     * ddp_buckets_adjacent. */
    void *memory;
};

/* True if the arrays follow each other in memory without a gap. Empty arrays are ignored. */
bool ddp_buckets_adjacent(const struct ddp_array *arrays, int n);

int ddp_buckets_create(const struct ddp_buckets_setup *setup, struct ddp_buckets **out,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Waits for pending buckets. b may be NULL. */
void ddp_buckets_destroy(struct ddp_buckets *b);
int ddp_buckets_count(const struct ddp_buckets *b);
/* See ddp_bucketer_ready and ddp_bucketer_finish (ddp.h). */
int ddp_buckets_ready(struct ddp_buckets *b, int index, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_buckets_finish(struct ddp_buckets *b, int64_t *exposed_ns,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Time that the progress thread spent in collectives and unpacking, over all finished steps. */
int64_t ddp_buckets_exchange_ns(const struct ddp_buckets *b);

#ifdef __cplusplus
}
#endif
#endif
