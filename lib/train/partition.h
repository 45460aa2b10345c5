/* Who trains on which image when: pure arithmetic, the same on every rank.
 *
 * batch: one permutation of all images per (seed, epoch); each global batch, of ranks * batch
 * images unless said otherwise, is cut evenly over the ranks, the last, uneven one too, so P ranks
 * of B see in every step the images that one rank of P*B sees. shard: the images are split over the
 * ranks first, once per seed, and each rank permutes its own part per epoch (as SINGA and needle
 * do). Uneven parts differ by at most one image; the first ranks have the larger ones (MXNet's
 * split with even_split=False). Nothing is dropped or seen twice. */
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
    size_t images; /* of the whole data set; below 2^32 */
    int ranks;
    int batch;           /* batch: most images a rank and step */
    size_t global_batch; /* of kind batch: images of all ranks a step, at most ranks * batch; 0: as
                            many */
    uint64_t seed;
};

/* Part `rank` of `count` things over `ranks`: [*first, *first + *n). */
void ddp_partition_part(size_t count, int ranks, int rank, size_t *first, size_t *n);
/* Steps of an epoch, equal on all ranks: until the largest part is used up. */
int64_t ddp_partition_steps(const struct ddp_partition_plan *plan);
/* Indices of the images in the order of an epoch (1-based): order [*count], room for plan->images.
 * batch: all images, equal on all ranks; shard: this rank's. */
void ddp_partition_order(const struct ddp_partition_plan *plan, int epoch, int rank,
                         uint32_t *order, size_t *count);
/* What the rank does in a step (0-based): order[*first, *first + *n), n at most plan->batch, maybe
 * 0. *global: images of all ranks in this step, at least 1. */
void ddp_partition_slice(const struct ddp_partition_plan *plan, int64_t step, int rank,
                         size_t *first, size_t *n, size_t *global);

#ifdef __cplusplus
}
#endif
#endif
