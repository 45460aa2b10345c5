/* Communication patterns of the algorithms that send messages. The functions compute which rank
 * communicates with which rank, and which chunk is sent. The results of all functions depend only
 * on their arguments. No function needs a communicator. The ranks of a group are 0..n-1, n >= 1. */
#ifndef DDP_COLL_PATTERN_H
#define DDP_COLL_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An array of `count` elements, cut into n consecutive chunks. */
struct ddp_chunks {
    size_t count;
    int n;
    /* NULL if the chunks are as equal as possible. The first count % n chunks are then longer by
     * one element. Otherwise the caller owns this array of n + 1 elements. Chunk i is then
     * [offset[i], offset[i + 1]), and count is offset[n]. */
    const size_t *offset;
};
size_t ddp_chunk_begin(const struct ddp_chunks *p, int i);
size_t ddp_chunk_count(const struct ddp_chunks *p, int i);

/* Returns (rank + distance) mod n, for rank + distance >= -n. */
static inline int ddp_rank_at(int rank, int distance, int n)
{
    return (rank + distance + n) % n;
}

/* Return the chunk that a rank sends in a step (0..n-2) of a ring. In the same step, the rank
 * receives the chunk that the rank before it sends. In the combining ring (_summed), chunk c starts
 * at rank c+1, passes through all ranks and ends at rank c. In the copying ring (_copied), chunk c
 * starts at rank c and ends at rank c-1. */
static inline int ddp_ring_chunk_summed(int rank, int step, int n)
{
    return ddp_rank_at(rank, -1 - step, n);
}
static inline int ddp_ring_chunk_copied(int rank, int step, int n)
{
    return ddp_rank_at(rank, -step, n);
}

/* Returns the partner of a rank in a step (0..n-1) of a pairwise exchange in which two partners
 * send data to each other. The partner satisfies rank + partner = step mod n, so two ranks are
 * partners in exactly one step. A rank that is its own partner is idle in that step. */
static inline int ddp_mirror_partner(int rank, int step, int n)
{
    return ddp_rank_at(step, -rank, n);
}

/* Returns the smallest k with 2^k >= n. This is the number of rounds of a dissemination barrier and
 * of a binomial tree. */
int ddp_rounds(int n);

/* A binomial tree over virtual ranks v = (rank - root) mod n, so the root has v = 0. The parent of
 * v is v without its lowest set bit. The subtree of v is the contiguous range [v, v + span), where
 * ddp_binomial_span returns span. The children of v are v + 1, v + 2, v + 4, ..., all below v +
 * span. ddp_binomial_children returns the number of children. */
static inline int ddp_virtual_rank(int rank, int root, int n)
{
    return ddp_rank_at(rank, -root, n);
}
static inline int ddp_real_rank(int virtual_rank, int root, int n)
{
    return ddp_rank_at(virtual_rank, root, n);
}
/* Returns the parent, or -1 for the root. */
int ddp_binomial_parent(int v);
int ddp_binomial_span(int v, int n);
int ddp_binomial_children(int v, int n);
/* The real ranks of v's subtree: `before` consecutive ranks from v's real rank on, and `after`
 * consecutive ranks from rank 0 on. */
struct ddp_wrap {
    int before, after;
};
struct ddp_wrap ddp_wrap_of(int v, int root, int n);

/* A binary tree over virtual ranks. The parent of v is (v - 1) / 2. The children of v are 2v + 1
 * and 2v + 2. */
static inline int ddp_binary_parent(int v)
{
    return v == 0 ? -1 : (v - 1) / 2;
}
/* Returns the number of children, 0, 1 or 2. The first child is 2v + 1. */
int ddp_binary_children(int v, int n);
/* Returns the number of edges between the root and the deepest of n ranks. */
int ddp_binary_depth(int n);

/* Reduces n ranks to pow2 ranks, where pow2 is the largest power of two up to n. The first 2 *
 * extra ranks form pairs, where extra = n - pow2. The even rank of each pair is *folded* into the
 * odd rank, which then holds the data of both. The ranks that are not folded keep their order and
 * get the new ranks 0..pow2-1. */
struct ddp_fold {
    int pow2, extra;
};
struct ddp_fold ddp_fold_of(int n);
/* Returns the new rank, or -1 if the rank is folded into rank + 1. */
int ddp_fold_rank(struct ddp_fold fold, int rank);
/* Returns the original rank of a new rank. */
int ddp_fold_real(struct ddp_fold fold, int new_rank);
/* True if another rank is folded into this rank. */
bool ddp_fold_holds(struct ddp_fold fold, int rank);

/* Splits a range for one level of recursive halving. A new rank and its partner at distance 2^level
 * both hold the range `whole`. If bit `level` of new_rank is 0, the rank keeps the first half and
 * gives the second half to its partner. Otherwise the rank keeps the second half and gives the
 * first half. */
struct ddp_range {
    size_t begin, end;
};
void ddp_halve(struct ddp_range whole, int new_rank, int level, struct ddp_range *keep,
               struct ddp_range *give);

#ifdef __cplusplus
}
#endif
#endif
