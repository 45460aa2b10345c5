/* Assigns training images to ranks and steps. All functions are pure arithmetic, so every rank
 * computes the same assignment without communication.
 *
 * batch: all images are permuted once per (seed, epoch). Each global batch, ranks * batch images by
 * default, is split evenly over the ranks, including the last, shorter one. P ranks with batch B
 * therefore see in every step the images that one rank with batch P*B sees.
 * shard: the images are split over the ranks once per seed, and each rank permutes its own shard
 * every epoch (as SINGA and needle do).
 * Uneven parts differ by at most one image, and the first ranks get the larger ones (MXNet's split
 * with even_split=False). Each epoch uses every image exactly once. */
#ifndef DDP_TRAIN_PARTITION_H
#define DDP_TRAIN_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_partition { DDP_PARTITION_BATCH, DDP_PARTITION_SHARD };
const char *ddp_partition_name(enum ddp_partition kind); /* "batch", "shard" */

struct ddp_partition_plan {
    enum ddp_partition kind;
    size_t images; /* size of the whole data set, below 2^32 */
    int ranks;
    int batch;           /* most images that one rank takes in a step */
    size_t global_batch; /* DDP_PARTITION_BATCH only: images of all ranks in a step, at most
                            ranks * batch. 0 means ranks * batch. */
    uint64_t seed;
};

/* Splits `count` items over `ranks` ranks; rank `rank` gets [*first, *first + *n). */
void ddp_partition_part(size_t count, int ranks, int rank, size_t *first, size_t *n);
/* Returns the number of steps in an epoch, which is the same on all ranks: the steps that the rank
 * with the most images needs. */
int64_t ddp_partition_steps(const struct ddp_partition_plan *plan);
/* Fills order [*count] with the image indices of an epoch (counted from 1) in training order. The
 * caller provides room for plan->images indices. With batch, order holds all images and is the same
 * on all ranks; with shard, it holds this rank's images. */
void ddp_partition_order(const struct ddp_partition_plan *plan, int epoch, int rank,
                         uint32_t *order, size_t *count);
/* Returns the part of `order` that a rank trains on in a step (counted from 0):
 * order[*first, *first + *n). *n is at most plan->batch and may be 0. *global is the number of
 * images that all ranks take in this step, at least 1. */
void ddp_partition_slice(const struct ddp_partition_plan *plan, int64_t step, int rank,
                         size_t *first, size_t *n, size_t *global);

#ifdef __cplusplus
}
#endif
#endif
