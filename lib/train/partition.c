/* Assigns training images to ranks and steps. */
#include "train/partition.h"

#include "base/mem.h"
#include "base/rng.h"

/* Numbers of random streams. Model initialisation uses the small numbers, one per tensor. The
 * permutation of an epoch uses STREAM_EPOCH + epoch, plus rank * 2^33 for a rank's shard. The split
 * into shards uses STREAM_SHARDS. */
#define STREAM_EPOCH  ((uint64_t)1 << 32)
#define STREAM_SHARDS ((uint64_t)1 << 63)

const char *const ddp_partition_names[] = {"batch", "shard", NULL};

void ddp_partition_part(size_t count, int ranks, int rank, size_t *first, size_t *n)
{
    size_t each = count / (size_t)ranks, larger = count % (size_t)ranks, r = (size_t)rank;
    *first = r * each + DDP_MIN(r, larger);
    *n = each + (r < larger);
}

static size_t divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* Returns the number of images that all ranks together take in a full step. */
static size_t global_batch(const struct ddp_partition_plan *plan)
{
    return plan->global_batch ? plan->global_batch : (size_t)plan->ranks * (size_t)plan->batch;
}

int64_t ddp_partition_steps(const struct ddp_partition_plan *plan)
{
    if (plan->kind == DDP_PARTITION_BATCH)
        return (int64_t)divide_up(plan->images, global_batch(plan));
    size_t largest = divide_up(plan->images, (size_t)plan->ranks);
    return (int64_t)divide_up(largest, (size_t)plan->batch);
}

void ddp_partition_order(const struct ddp_partition_plan *plan, int epoch, int rank,
                         uint32_t *order, size_t *count)
{
    struct ddp_rng rng;
    for (size_t i = 0; i < plan->images; i++)
        order[i] = (uint32_t)i;
    if (plan->kind == DDP_PARTITION_BATCH) {
        ddp_rng_init(&rng, plan->seed, STREAM_EPOCH + (uint64_t)epoch);
        ddp_rng_shuffle(&rng, order, plan->images);
        *count = plan->images;
        return;
    }
    size_t first, n;
    ddp_rng_init(&rng, plan->seed, STREAM_SHARDS);
    ddp_rng_shuffle(&rng, order, plan->images);
    ddp_partition_part(plan->images, plan->ranks, rank, &first, &n);
    for (size_t i = 0; i < n; i++) /* first + i >= i: each index is read before it is overwritten */
        order[i] = order[first + i];
    ddp_rng_init(&rng, plan->seed, STREAM_EPOCH + (uint64_t)epoch + ((uint64_t)rank << 33));
    ddp_rng_shuffle(&rng, order, n);
    *count = n;
}

/* Returns how many images of its shard a rank takes in this step, at most plan->batch. */
static size_t shard_batch(const struct ddp_partition_plan *plan, int64_t step, int rank)
{
    size_t first, n, used = (size_t)step * (size_t)plan->batch;
    ddp_partition_part(plan->images, plan->ranks, rank, &first, &n);
    return used < n ? DDP_MIN(n - used, (size_t)plan->batch) : 0;
}

void ddp_partition_slice(const struct ddp_partition_plan *plan, int64_t step, int rank,
                         size_t *first, size_t *n, size_t *global)
{
    if (plan->kind == DDP_PARTITION_BATCH) {
        size_t start = (size_t)step * global_batch(plan);
        *global = DDP_MIN(plan->images - start, global_batch(plan));
        ddp_partition_part(*global, plan->ranks, rank, first, n);
        *first += start;
        return;
    }
    *first = (size_t)step * (size_t)plan->batch;
    *n = shard_batch(plan, step, rank);
    *global = 0;
    for (int r = 0; r < plan->ranks; r++)
        *global += shard_batch(plan, step, r);
}
