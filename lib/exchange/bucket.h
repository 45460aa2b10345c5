/* Buckets: gradients that become ready last layer first, all-reduced piece by piece by the progress
 * thread while backward goes on.
 *
 * For ddp_bucket.c (the public bucketer) and for sync strategies that overlap. The tensors make one
 * sequence of elements, in layer order; it is cut from its end into buckets of pack_elements.
 * *Pack*: ready() copies a tensor into the bucket memory, by the caller's thread, while its values
 * are in cache. *Reduce*: by the progress thread, a bucket as soon as its lowest element is there.
 * *Unpack*: by the progress thread, right after. So three buckets are in work at a time. In place
 * (memory NULL) there is nothing to pack or unpack.
 * What this does not do: agree with the other ranks that they cut alike (ddp_bucket.c does). */
#ifndef DDP_EXCHANGE_BUCKET_H
#define DDP_EXCHANGE_BUCKET_H

#include "coll/async.h"
#include "exchange/ddp.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_buckets;

/* arrays [n]: tensors in layer order, of one dtype; copied, the data is borrowed. pack_elements 0:
 * one bucket. memory: [all elements], borrowed; NULL: in place, which needs ddp_buckets_adjacent.
 * async, and arrays and memory, outlive the buckets. */
struct ddp_buckets_setup {
    struct ddp_async *async;
    const struct ddp_array *arrays;
    int n;
    size_t pack_elements;
    enum ddp_op op;
    void *memory;
};

/* Do the arrays follow each other in memory, without a gap? Empty ones do not count. */
bool ddp_buckets_adjacent(const struct ddp_array *arrays, int n);

int ddp_buckets_create(const struct ddp_buckets_setup *setup, struct ddp_buckets **out,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Waits for what is under way. NULL is fine. */
void ddp_buckets_destroy(struct ddp_buckets *b);
int ddp_buckets_count(const struct ddp_buckets *b);
/* As ddp_bucketer_ready and ddp_bucketer_finish (ddp.h). */
int ddp_buckets_ready(struct ddp_buckets *b, int index, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_buckets_finish(struct ddp_buckets *b, int64_t *exposed_ns,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* How long the progress thread was in collectives and unpacking, since create; of finished steps.
 */
int64_t ddp_buckets_exchange_ns(const struct ddp_buckets *b);

#ifdef __cplusplus
}
#endif
#endif
