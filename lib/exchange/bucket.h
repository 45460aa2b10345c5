/* Buckets of gradients. A progress thread all-reduces each bucket while the backward pass fills the
 * next one. Gradients become ready last layer first. ddp_bucket.c, the public bucketer, uses this
 * file.
 *
 * The tensors form one sequence of elements in layer order. The sequence is cut from its end into
 * buckets of pack_elements. ddp_buckets_ready copies a tensor into the bucket memory while the
 * tensor is still in the cache. As soon as the lowest element of a bucket is ready, the progress
 * thread reduces the bucket and copies the sums back. If memory is NULL, the arrays are reduced in
 * place and nothing is copied. The caller makes sure that all ranks cut the same buckets. */
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
    /* Memory for all elements, borrowed. NULL: reduce in place. Then ddp_buckets_adjacent must be
     * true. */
    void *memory;
};

/* Returns true if the arrays follow each other in memory without a gap. Empty arrays are ignored.
 */
bool ddp_buckets_adjacent(const struct ddp_array *arrays, int n);

int ddp_buckets_create(const struct ddp_buckets_setup *setup, struct ddp_buckets **out,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Waits for pending buckets and frees b, which may be NULL. */
void ddp_buckets_destroy(struct ddp_buckets *b);
int ddp_buckets_count(const struct ddp_buckets *b);
/* See ddp_bucketer_ready and ddp_bucketer_finish (ddp.h). */
int ddp_buckets_ready(struct ddp_buckets *b, int index, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_buckets_finish(struct ddp_buckets *b, int64_t *exposed_ns,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the time in ns that the progress thread spent in collectives and in copying sums back,
 * over all finished steps. */
int64_t ddp_buckets_exchange_ns(const struct ddp_buckets *b);

#ifdef __cplusplus
}
#endif
#endif
