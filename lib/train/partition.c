/* Assigns training images to ranks and steps. */
#include "train/partition.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/unit.h"

/* Numbers of random streams. Model initialisation uses the small numbers, one per tensor. The
 * permutation of an epoch uses STREAM_EPOCH + epoch, plus rank * 2^33 for a rank's shard. The split
 * into shards uses STREAM_SHARDS. */
#define STREAM_EPOCH  ((uint64_t)1 << 32)
#define STREAM_SHARDS ((uint64_t)1 << 63)

const char *const ddp_partition_names[] = {"batch", "shard", "weights", NULL};

/* Parses "3,1". */
static int parse_weights(const char *list, struct ddp_partition_spec *out, struct ddp_err *err)
{
    for (const char *at = list;; at++) {
        char number[16] = "";
        int64_t value;
        const size_t n = strcspn(at, ",");
        if (out->count == DDP_PARTITION_WEIGHTS_MAX)
            return ddp_fail(err, DDP_EUSAGE, "--partition weights has more than %d weights",
                            DDP_PARTITION_WEIGHTS_MAX);
        if (n < sizeof number)
            memcpy(number, at, n);
        if (n >= sizeof number ||
            ddp_parse_int(number, 1, DDP_PARTITION_WEIGHT_MAX, &value, NULL) != 0)
            return ddp_fail(
                err, DDP_EUSAGE,
                "--partition weights:%.40s: each weight must be a whole number from 1 to %d", list,
                DDP_PARTITION_WEIGHT_MAX);
        out->weight[out->count++] = (int)value;
        at += n;
        if (*at == '\0')
            return 0;
    }
}

int ddp_partition_parse(const char *text, struct ddp_partition_spec *out, struct ddp_err *err)
{
    const char *weights = ddp_partition_names[DDP_PARTITION_WEIGHTS];
    const size_t n = strlen(weights);
    *out = (struct ddp_partition_spec){.kind = DDP_PARTITION_WEIGHTS};
    if (strncmp(text, weights, n) == 0 && text[n] == ':')
        return parse_weights(text + n + 1, out, err);
    for (int kind = 0; kind < DDP_PARTITION_WEIGHTS; kind++) {
        out->kind = (enum ddp_partition)kind;
        if (strcmp(text, ddp_partition_names[kind]) == 0)
            return 0;
    }
    ddp_fail(err, DDP_EUSAGE, "--partition: unknown value '%.40s'", text);
    return ddp_hint(err, "use batch, shard, or weights:W,W,... with one weight per rank");
}

void ddp_partition_text(const struct ddp_partition_spec *spec, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s", ddp_partition_names[spec->kind]);
    for (int i = 0; i < spec->count; i++)
        ddp_text_append(out, out_bytes, "%c%d", i == 0 ? ':' : ',', spec->weight[i]);
}

static uint64_t sum_of(const int *weight, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += (uint64_t)weight[i];
    return sum;
}

/* A rounded split may give a rank up to one image more than its exact share. */
size_t ddp_partition_largest(size_t global_batch, const int *weight, int ranks, size_t *least)
{
    const uint64_t sum = sum_of(weight, ranks);
    int smallest = weight[0], largest = weight[0];
    for (int r = 1; r < ranks; r++) {
        smallest = DDP_MIN(smallest, weight[r]);
        largest = DDP_MAX(largest, weight[r]);
    }
    *least = (size_t)(global_batch * (uint64_t)smallest / sum);
    return (size_t)((global_batch * (uint64_t)largest + sum - 1) / sum);
}

/* Splits `count` items in proportion to the weights. The part of a rank begins where the part of
 * the previous rank ends. The boundaries are rounded down. Every item therefore belongs to one
 * rank. */
static void weighted_part(const struct ddp_partition_plan *plan, size_t count, int rank,
                          size_t *first, size_t *n)
{
    const uint64_t sum = sum_of(plan->weight, plan->ranks);
    const uint64_t before = sum_of(plan->weight, rank);
    *first = (size_t)(count * before / sum);
    *n = (size_t)(count * (before + (uint64_t)plan->weight[rank]) / sum) - *first;
}

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
    if (plan->kind != DDP_PARTITION_SHARD)
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
    if (plan->kind != DDP_PARTITION_SHARD) {
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
    if (plan->kind != DDP_PARTITION_SHARD) {
        size_t start = (size_t)step * global_batch(plan);
        *global = DDP_MIN(plan->images - start, global_batch(plan));
        if (plan->kind == DDP_PARTITION_WEIGHTS)
            weighted_part(plan, *global, rank, first, n);
        else
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
