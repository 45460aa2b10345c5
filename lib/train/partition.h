/* Assigns training images to ranks and steps. The functions have no state, so every rank computes
 * the same assignment without communication.
 *
 * DDP_PARTITION_BATCH: all images are permuted once per seed and epoch. Each global batch is split
 * evenly over the ranks. By default a global batch has ranks * batch images. The last global batch
 * of an epoch may be smaller. In every step, P ranks with batch B therefore use the same images as
 * one rank with batch P*B.
 *
 * DDP_PARTITION_WEIGHTS: as DDP_PARTITION_BATCH, but each global batch is split in proportion to
 * one weight per rank. If the strategy averages the gradients over the global batch, each rank's
 * gradient is weighted by its number of images. The ranks together then train like one rank with
 * the same global batches.
 *
 * DDP_PARTITION_SHARD: the images are split over the ranks once per seed, and each rank permutes
 * its own shard every epoch (as in Apache SINGA and needle).
 *
 * With BATCH and SHARD, if images cannot be split evenly, the first ranks get one image more (as in
 * MXNet's split with even_split=False). With WEIGHTS, the boundaries between the ranks' images are
 * rounded down. Each epoch uses every image exactly once. */
#ifndef DDP_TRAIN_PARTITION_H
#define DDP_TRAIN_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_partition { DDP_PARTITION_BATCH, DDP_PARTITION_SHARD, DDP_PARTITION_WEIGHTS };
extern const char *const ddp_partition_names[]; /* "batch", "shard", "weights", NULL */

#define DDP_PARTITION_WEIGHTS_MAX 64
#define DDP_PARTITION_WEIGHT_MAX  1000000

/* How images are assigned to ranks, parsed from "batch", "shard" or "weights:3,1". */
struct ddp_partition_spec {
    enum ddp_partition kind;
    int count; /* number of weights, one per rank; 0 unless kind is DDP_PARTITION_WEIGHTS */
    int weight[DDP_PARTITION_WEIGHTS_MAX]; /* 1 to DDP_PARTITION_WEIGHT_MAX */
};

struct ddp_partition_plan {
    enum ddp_partition kind;
    size_t images;     /* size of the whole data set, below 2^32 */
    const int *weight; /* [ranks] for DDP_PARTITION_WEIGHTS; borrowed */
    int ranks;
    int batch; /* largest number of images that one rank takes per step */
    /* Images of all ranks per step, at most ranks * batch. 0 means ranks * batch.
     * DDP_PARTITION_SHARD ignores this member. */
    size_t global_batch;
    uint64_t seed;
};

/* Parses the option. Returns DDP_EUSAGE, with the reason, if the text is invalid. */
int ddp_partition_parse(const char *text, struct ddp_partition_spec *out,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Writes the text that ddp_partition_parse reads. */
void ddp_partition_text(const struct ddp_partition_spec *spec, char *out, size_t out_bytes);
/* For a global batch that is split in proportion to weight [ranks]: returns an upper bound for the
 * images of any rank, and sets *least to a lower bound for the images of any rank. */
size_t ddp_partition_largest(size_t global_batch, const int *weight, int ranks, size_t *least);
/* Splits `count` items over `ranks` ranks. Rank `rank` gets the items [*first, *first + *n). */
void ddp_partition_part(size_t count, int ranks, int rank, size_t *first, size_t *n);
/* Returns the number of steps in an epoch, which is equal on all ranks. For
 * DDP_PARTITION_SHARD it is the number of batches in the largest shard, otherwise the number of
 * global batches. */
int64_t ddp_partition_steps(const struct ddp_partition_plan *plan);
/* Sets order [*count] to the image indices of an epoch in training order. `epoch` counts from 1.
 * `order` must have memory for plan->images indices. For DDP_PARTITION_SHARD, it receives only the
 * images of `rank`. Otherwise it receives all images, in an order that is equal on all ranks. */
void ddp_partition_order(const struct ddp_partition_plan *plan, int epoch, int rank,
                         uint32_t *order, size_t *count);
/* Sets *first and *n: in this step the rank trains on order[*first, *first + *n). `step` counts
 * from 0. *n is at most plan->batch and may be 0. Sets *global to the number of images that all
 * ranks take in this step, which is at least 1. */
void ddp_partition_slice(const struct ddp_partition_plan *plan, int64_t step, int rank,
                         size_t *first, size_t *n, size_t *global);

#ifdef __cplusplus
}
#endif
#endif
