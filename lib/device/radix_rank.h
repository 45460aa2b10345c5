/* Finds the rank-th largest magnitude by radix passes. This is the logic of device cuda's top-K
 * kernels without the cooperation of threads, so that a CPU can run it
 * (tests/unit/test_radix_rank.c).
 *
 * A magnitude has 31 bits, which are three *digits* of 11, 10 and 10 bits, the highest first. The
 * digits found so far are the *prefix*. A *pass* takes the values that begin with the prefix and
 * counts how often each value of the next digit occurs. The digit that contains the wanted rank is
 * appended to the prefix. The rank becomes the rank among the values with the new prefix. After the
 * last pass the prefix is the wanted magnitude. If the search began with rank R, the remaining rank
 * says how many of the R largest values equal this magnitude. */
#ifndef DDP_DEVICE_RADIX_RANK_H
#define DDP_DEVICE_RADIX_RANK_H

#include "device/element_ops.h"

#define DDP_RADIX_PASSES 3
#define DDP_RADIX_BINS   2048
/* Bins are searched in two steps: first by groups of this many bins, then within one group. */
#define DDP_RADIX_GROUP 32

struct ddp_radix {
    uint32_t prefix, rank;
};

DDP_BOTH int ddp_radix_shift(int pass)
{
    return pass == 0 ? 20 : pass == 1 ? 10 : 0;
}

DDP_BOTH int ddp_radix_bits(int pass)
{
    return pass == 0 ? 11 : 10;
}

/* Returns the digit of a magnitude in a pass, or -1 if the magnitude does not begin with the
 * prefix. */
DDP_BOTH int ddp_radix_digit(int32_t magnitude, int pass, uint32_t prefix)
{
    const uint32_t m = (uint32_t)magnitude >> ddp_radix_shift(pass);
    if (pass > 0 && m >> ddp_radix_bits(pass) != prefix)
        return -1;
    return (int)(m & ((1u << ddp_radix_bits(pass)) - 1));
}

/* Returns the sum of a group of bins. */
DDP_BOTH uint32_t ddp_radix_group(const uint32_t *bins, int group)
{
    uint32_t sum = 0;
    for (int i = 0; i < DDP_RADIX_GROUP; i++)
        sum += bins[group * DDP_RADIX_GROUP + i];
    return sum;
}

/* Returns the state after a pass. groups [BINS / GROUP] holds the sums of the groups of bins
 * [BINS]. r.rank is at least 1 and at most the number of values counted. */
DDP_BOTH struct ddp_radix ddp_radix_step(struct ddp_radix r, int pass, const uint32_t *bins,
                                         const uint32_t *groups)
{
    int group = DDP_RADIX_BINS / DDP_RADIX_GROUP - 1;
    while (group > 0 && groups[group] < r.rank)
        r.rank -= groups[group--];
    int bin = group * DDP_RADIX_GROUP + DDP_RADIX_GROUP - 1;
    while (bin > group * DDP_RADIX_GROUP && bins[bin] < r.rank)
        r.rank -= bins[bin--];
    r.prefix = r.prefix << ddp_radix_bits(pass) | (uint32_t)bin;
    return r;
}

/* A sample of the array suggests a *floor*, a magnitude that slightly more than k of n elements
 * reach. The sample consists of lines of 32 neighbours. The array is divided into ranges of equal
 * length, and one line is taken at a random position of each range. */
#define DDP_SAMPLE      65536
#define DDP_SAMPLE_LINE 32

/* How top-K uses a sample. */
struct ddp_sample_plan {
    /* Rank of the floor in the sample; 0: do not sample. It is k scaled to the size of the sample,
     * plus a margin. The margin is 1/16, because neighbours are alike, plus 4 standard deviations
     * of a binomial count. */
    uint32_t rank;
    /* Room for the *candidates*, the elements that reach the floor, with a further margin. If the
     * candidates do not fit, the whole array is read again. */
    uint32_t capacity;
};

static inline struct ddp_sample_plan ddp_sample_plan_of(uint32_t n, uint32_t k)
{
    struct ddp_sample_plan plan = {0, 0};
    const double share = (double)k / n, expected = share * DDP_SAMPLE;
    const double rank = expected * 17 / 16 + 4 * sqrt(expected * (1 - share)) + 1;
    /* For arrays smaller than 16 samples, or if many values are sent, reading the whole array again
     * is faster. */
    if (n < 16u * DDP_SAMPLE || share > 0.125)
        return plan;
    plan.rank = (uint32_t)rank;
    plan.capacity = (uint32_t)((rank * 17 / 16 + 6 * sqrt(rank) + 32) / DDP_SAMPLE * n);
    return plan;
}

/* Returns the index of the first element of line `line` of the sample. n >= DDP_SAMPLE. */
DDP_BOTH uint32_t ddp_sample_at(uint32_t n, uint32_t line)
{
    const uint32_t lines = n / DDP_SAMPLE_LINE, taken = DDP_SAMPLE / DDP_SAMPLE_LINE;
    const uint64_t random = (line + 1) * 0x9e3779b97f4a7c15u; /* Fibonacci hashing: Knuth 3, 6.4 */
    const uint32_t begin = (uint32_t)((uint64_t)line * lines / taken);
    return (begin + (uint32_t)((random >> 32) * (lines / taken) >> 32)) * DDP_SAMPLE_LINE;
}

#endif
