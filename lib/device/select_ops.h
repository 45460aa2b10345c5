/* This header has the code of device cuda's selection kernels in which the threads of a block do
 * not communicate. A CPU can run this code, too, one block after the other
 * (tests/unit/test_select_tile.c, test_radix_rank.c). The sections are: selection in index order,
 * the search for the rank-th largest magnitude, and the positions of a sample. */
#ifndef DDP_DEVICE_SELECT_OPS_H
#define DDP_DEVICE_SELECT_OPS_H

#include "device/element_ops.h"

/* This section selects values in index order, with independent blocks of threads.
 *
 * An array is divided into *tiles*. A block of threads takes one tile at a time and processes it in
 * three steps:
 *
 * 1. ddp_tile_look computes the values, stores the new residual and marks each thread's selected
 * values.
 *
 * 2. Each thread needs the number of selected values before its own. A scan over the threads of the
 * block gives the number within the tile. *Decoupled look-back* (Merrill & Garland 2016) gives the
 * number in all earlier tiles. Each tile publishes a *word*, first with its own counts, later with
 * the total of all tiles up to and including itself. A tile adds the words of the tiles before it,
 * backwards, until it finds a word with a total.
 *
 * 3. ddp_tile_take writes the selected values to their positions.
 *
 * The output is sorted by index and does not depend on the order in which the blocks run. Tiles are
 * handed out in order, so that a tile never waits for a tile that has not begun.
 *
 * The *cut* defines the selection: all magnitudes above the cut, and the first `ties` values equal
 * to the cut. */
#define DDP_TILE_THREADS 256
/* A tile consists of ROWS rows, one after the other. In each row a thread processes 4 consecutive
 * values. */
#define DDP_TILE_ROWS   4
#define DDP_TILE_VALUES (4 * DDP_TILE_ROWS)
#define DDP_TILE        (DDP_TILE_THREADS * DDP_TILE_VALUES)
#define DDP_TILE_ROW    (4 * DDP_TILE_THREADS)

struct ddp_cut {
    int32_t magnitude; /* -1: all values are selected */
    uint32_t ties;
};

/* Flags that say what a selection reads and stores. The flags of a kernel are a compile-time
 * constant. */
enum ddp_tile_mode {
    DDP_TILE_IN = 1,       /* values come from `in` */
    DDP_TILE_RESIDUAL = 2, /* the residual is an input, too, and keeps the values not selected */
    DDP_TILE_KEEP = 4,     /* the residual also keeps the selected values */
    DDP_TILE_TIES = 8,     /* the cut has ties; not with RESIDUAL */
    DDP_TILE_LIST = 16     /* `in` holds the values of a list, in_index its indices */
};

/* The arguments of a selection. Selected values beyond the capacity stay in the residual if there
 * is one. */
struct ddp_tile_args {
    const float *in;          /* [n] */
    float *residual;          /* [n] */
    const uint32_t *in_index; /* [n], or NULL */
    /* Array that is set to 0 at the indices stored in out_index, or NULL. It may be `in`. */
    float *zero;
    uint32_t *out_index; /* [capacity] */
    float *out_value;    /* [capacity] */
    uint32_t n, capacity;
    struct ddp_cut cut;
    int vectors; /* nonzero: in and residual are aligned to 16 bytes */
};

/* The values of one thread in one tile, with bit masks of the values above the cut and of the
 * values equal to the cut. */
struct ddp_tile_thread {
    float value[DDP_TILE_VALUES];
    uint32_t above, equal;
};

/* Returns the number of tiles of n elements. */
DDP_BOTH uint32_t ddp_tiles(uint32_t n)
{
    return n / DDP_TILE + (n % DDP_TILE != 0);
}

DDP_BOTH uint32_t ddp_tile_index(uint32_t tile, int thread, int j)
{
    return tile * DDP_TILE + (uint32_t)(j / 4 * DDP_TILE_ROW + thread * 4 + j % 4);
}

/* Returns how many of the four elements at i exist. */
DDP_BOTH int ddp_tile_present(uint32_t i, uint32_t n)
{
    return i >= n ? 0 : n - i < 4 ? (int)(n - i) : 4;
}

/* Step 1 for one thread of a tile. All loads come before the first use of a value, so that they
 * overlap. */
DDP_BOTH void ddp_tile_look(const struct ddp_tile_args *a, const int mode, uint32_t tile,
                            int thread, struct ddp_tile_thread *me)
{
    float in[DDP_TILE_VALUES], residual[DDP_TILE_VALUES];
    DDP_UNROLL
    for (int row = 0; row < DDP_TILE_ROWS; row++) {
        const uint32_t i = ddp_tile_index(tile, thread, 4 * row);
        const int present = ddp_tile_present(i, a->n);
        if (mode & (DDP_TILE_IN | DDP_TILE_LIST))
            ddp_load4(in + 4 * row, a->in, i, present, a->vectors);
        if (mode & DDP_TILE_RESIDUAL)
            ddp_load4(residual + 4 * row, a->residual, i, present, a->vectors);
    }
    me->above = me->equal = 0;
    DDP_UNROLL
    for (int row = 0; row < DDP_TILE_ROWS; row++) {
        const uint32_t i = ddp_tile_index(tile, thread, 4 * row);
        const int present = ddp_tile_present(i, a->n);
        float stays[4];
        DDP_UNROLL
        for (int lane = 0; lane < 4; lane++) {
            const int j = 4 * row + lane;
            const float value =
                ddp_add_residual(mode & (DDP_TILE_IN | DDP_TILE_LIST) ? in[j] : 0.0f,
                                 mode & DDP_TILE_RESIDUAL ? residual[j] : 0.0f,
                                 mode & (DDP_TILE_IN | DDP_TILE_LIST), mode & DDP_TILE_RESIDUAL);
            const int32_t magnitude = ddp_f32_magnitude(value);
            const int above = lane < present && magnitude > a->cut.magnitude;
            const int equal =
                (mode & DDP_TILE_TIES) && lane < present && magnitude == a->cut.magnitude;
            me->value[j] = value;
            me->above |= (uint32_t)above << j;
            me->equal |= (uint32_t)equal << j;
            stays[lane] = above && !(mode & DDP_TILE_KEEP) ? 0.0f : value;
        }
        if (mode & DDP_TILE_RESIDUAL)
            ddp_store4(a->residual, stays, i, present, a->vectors);
    }
}

/* Returns the number of set bits of each row, packed into 16 bits per row, row 0 lowest. The scan
 * adds these numbers. */
DDP_BOTH uint64_t ddp_tile_counts(uint32_t bits)
{
    uint64_t counts = 0;
    for (int row = 0; row < DDP_TILE_ROWS; row++)
        counts |= (uint64_t)ddp_count_bits((bits >> (4 * row)) & 15u) << (16 * row);
    return counts;
}

/* Returns the sum of the counts of all rows. */
DDP_BOTH uint32_t ddp_tile_total(uint64_t counts)
{
    uint32_t total = 0;
    for (int row = 0; row < DDP_TILE_ROWS; row++)
        total += (uint32_t)(counts >> (16 * row)) & 0xffffu;
    return total;
}

/* A tile's word has its state in the two highest bits. Then follow 31 bits for the number of values
 * above the cut, and 31 bits for the number of values equal to the cut. */
#define DDP_WORD_ABSENT 0u
#define DDP_WORD_OWN    1u /* counts of this tile alone */
#define DDP_WORD_PREFIX 2u /* counts of this tile and all before it */

DDP_BOTH uint64_t ddp_word(unsigned state, uint32_t above, uint32_t equal)
{
    return (uint64_t)state << 62 | (uint64_t)above << 31 | equal;
}

DDP_BOTH unsigned ddp_word_state(uint64_t word)
{
    return (unsigned)(word >> 62);
}

/* Returns both counts of a word as one integer. Such integers can be added, because every sum of
 * counts is below 2^31. */
DDP_BOTH uint64_t ddp_word_counts(uint64_t word)
{
    return word & 0x3fffffffffffffffu;
}

DDP_BOTH uint32_t ddp_counts_above(uint64_t counts)
{
    return (uint32_t)(counts >> 31) & 0x7fffffffu;
}

DDP_BOTH uint32_t ddp_counts_equal(uint64_t counts)
{
    return (uint32_t)counts & 0x7fffffffu;
}

/* Evaluates a window of the look-back: the words of 32 tiles. `absent` and `prefix` are masks of
 * the words in state ABSENT and PREFIX. Bit 0 of a mask belongs to the nearest tile before the tile
 * that looks back. Positions before tile 0 count as PREFIX. Returns how many words, from bit 0 on,
 * can be added now. If this number is 0, the caller reads the words again. Sets *last to whether
 * the look-back ends in this window. */
DDP_BOTH int ddp_window_take(uint32_t absent, uint32_t prefix, int *last)
{
    const int usable = absent ? ddp_lowest_bit(absent) : 32;
    const int end = prefix ? ddp_lowest_bit(prefix) : 32;
    *last = end < usable;
    return *last ? end + 1 : usable;
}

/* The numbers that determine the output positions of one thread's values. */
struct ddp_tile_position {
    /* Counts of all tiles before this tile. */
    uint32_t above, equal;
    /* Counts per row of the threads before this thread (_before) and of all threads of the tile
     * (_all). */
    uint64_t above_before, above_all, equal_before, equal_all;
};

/* Step 3 for one thread: writes its selected values to their output positions. */
DDP_BOTH void ddp_tile_take(const struct ddp_tile_args *a, const int mode, uint32_t tile,
                            int thread, const struct ddp_tile_thread *me,
                            const struct ddp_tile_position *position)
{
    uint32_t above_row = position->above, equal_row = position->equal;
    if ((me->above | me->equal) == 0)
        return;
    DDP_UNROLL
    for (int row = 0; row < DDP_TILE_ROWS; row++) {
        uint32_t above = above_row + ((uint32_t)(position->above_before >> (16 * row)) & 0xffffu);
        uint32_t equal = equal_row + ((uint32_t)(position->equal_before >> (16 * row)) & 0xffffu);
        above_row += (uint32_t)(position->above_all >> (16 * row)) & 0xffffu;
        equal_row += (uint32_t)(position->equal_all >> (16 * row)) & 0xffffu;
        DDP_UNROLL
        for (int lane = 0; lane < 4; lane++) {
            const int j = 4 * row + lane;
            const int is_above = (int)(me->above >> j) & 1, is_equal = (int)(me->equal >> j) & 1;
            const uint32_t ties =
                (mode & DDP_TILE_TIES) ? (equal < a->cut.ties ? equal : a->cut.ties) : 0u;
            const uint32_t at = above + ties;
            const int goes = is_above || (is_equal && equal < a->cut.ties);
            above += (uint32_t)is_above;
            equal += (uint32_t)is_equal;
            if (!goes)
                continue;
            const uint32_t i = ddp_tile_index(tile, thread, j);
            const uint32_t index = (mode & DDP_TILE_LIST) ? a->in_index[i] : i;
            if (at < a->capacity) {
                a->out_index[at] = index;
                a->out_value[at] = me->value[j];
                if (a->zero)
                    a->zero[index] = 0.0f;
            } else if ((mode & DDP_TILE_RESIDUAL) && !(mode & DDP_TILE_KEEP)) {
                a->residual[i] = me->value[j]; /* overwrites the 0 that step 1 stored */
            }
        }
    }
}

/* Returns the number of selected values. counts is the sum over all tiles. */
DDP_BOTH uint32_t ddp_cut_total(struct ddp_cut cut, uint64_t counts)
{
    const uint32_t equal = ddp_counts_equal(counts);
    return ddp_counts_above(counts) + (equal < cut.ties ? equal : cut.ties);
}

/* This section finds the rank-th largest magnitude by radix passes.
 *
 * A magnitude has 31 bits, which are three *digits* of 11, 10 and 10 bits, the highest first. The
 * digits found so far are the *prefix*. A *pass* takes the values that begin with the prefix and
 * counts how often each value of the next digit occurs. The digit that contains the wanted rank is
 * appended to the prefix. The rank becomes the rank among the values with the new prefix. After the
 * last pass the prefix is the wanted magnitude. If the search began with rank R, the remaining rank
 * says how many of the R largest values equal this magnitude. */
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

/* Returns the state after a pass. bins [DDP_RADIX_BINS] holds the counts of the pass. groups
 * [DDP_RADIX_BINS / DDP_RADIX_GROUP] holds the sum of each group of bins. r.rank is at least 1 and
 * at most the number of values counted. */
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

/* A sample of the array suggests a *floor*, a magnitude that slightly more than k of the n elements
 * reach. The sample consists of lines of 32 neighbours. The array is divided into ranges of about
 * equal length. From each range, the sample takes one line at a random position. */
#define DDP_SAMPLE      65536
#define DDP_SAMPLE_LINE 32

/* How top-K uses a sample. */
struct ddp_sample_plan {
    /* Rank of the floor in the sample; 0: do not sample. The rank is k scaled to the size of the
     * sample, plus a margin. The margin is 1/16 of the scaled k, plus 4 standard deviations of a
     * binomial count, plus 1. The 1/16 is needed because the elements of a line are often alike, so
     * the sample varies more than a binomial count. */
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
    /* Without a sample, top-K is faster for arrays of less than 16 times the sample, or if more
     * than an eighth of the values are sent. */
    if (n < 16u * DDP_SAMPLE || share > 0.125)
        return plan;
    plan.rank = (uint32_t)rank;
    plan.capacity = (uint32_t)((rank * 17 / 16 + 6 * sqrt(rank) + 32) / DDP_SAMPLE * n);
    return plan;
}

/* Returns the index in the array [n] of the first element of the sample's line `line`. n >=
 * DDP_SAMPLE. */
DDP_BOTH uint32_t ddp_sample_at(uint32_t n, uint32_t line)
{
    const uint32_t lines = n / DDP_SAMPLE_LINE, taken = DDP_SAMPLE / DDP_SAMPLE_LINE;
    const uint64_t random = (line + 1) * 0x9e3779b97f4a7c15u; /* Fibonacci hashing: Knuth 3, 6.4 */
    const uint32_t begin = (uint32_t)((uint64_t)line * lines / taken);
    return (begin + (uint32_t)((random >> 32) * (lines / taken) >> 32)) * DDP_SAMPLE_LINE;
}

#endif
