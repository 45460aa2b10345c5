/* Neighbour arithmetic of the algorithms that send messages: which rank communicates with which,
 * and about which chunk. All functions are pure functions of small integers. They need no
 * communicator, do no I/O, move no data and know no types; tests/unit/test_pattern.c tests them
 * alone. Ranks are 0..n-1 of a group, n >= 1. */
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
    /* NULL: the chunks are as equal as possible, and the first count % n are longer by one.
     * Else [n + 1], borrowed: chunk i is [offset[i], offset[i + 1]) and count is offset[n].
     */
    const size_t *offset;
};
size_t ddp_chunk_begin(const struct ddp_chunks *p, int i);
size_t ddp_chunk_count(const struct ddp_chunks *p, int i);

/* Returns (rank + distance) mod n, for any distance > -n. */
static inline int ddp_rank_at(int rank, int distance, int n)
{
    return (rank + distance + n) % n;
}

/* Return the chunk that a rank of a ring sends in a step. It receives the chunk that the rank
 * before it sends. Combining ring, steps 0..n-2: chunk c starts at rank c+1, passes through all
 * ranks and ends, combined, at rank c. Copying ring, steps 0..n-2: chunk c starts at rank c and
 * ends at rank c-1. */
static inline int ddp_ring_chunk_summed(int rank, int step, int n)
{
    return ddp_rank_at(rank, -1 - step, n);
}
static inline int ddp_ring_chunk_copied(int rank, int step, int n)
{
    return ddp_rank_at(rank, -step, n);
}

/* Pairwise exchange has two forms. Shift: in steps 1..n-1 a rank sends to the rank `step` after it
 * and receives from the rank `step` before it. Mirror: in steps 0..n-1 a rank sends to and receives
 * from one partner, with rank + partner = step mod n. Each pair meets in exactly one step. If the
 * partner is the rank itself, the rank is idle in that step. */
static inline int ddp_mirror_partner(int rank, int step, int n)
{
    return ddp_rank_at(step, -rank, n);
}

/* Returns the smallest k with 2^k >= n: the number of rounds of dissemination and of a binomial
 * tree. */
int ddp_rounds(int n);

/* Binomial tree over virtual ranks v = (rank - root) mod n, so the root has v = 0. v's parent is v
 * without its lowest set bit. v's subtree is [v, v + span), so it is contiguous. v's children are v
 * + 1, v + 2, v + 4, ... below v + span; ddp_binomial_children returns their number. */
static inline int ddp_virtual_rank(int rank, int root, int n)
{
    return ddp_rank_at(rank, -root, n);
}
static inline int ddp_real_rank(int virtual_rank, int root, int n)
{
    return ddp_rank_at(virtual_rank, root, n);
}
/* Returns -1 for the root. */
int ddp_binomial_parent(int v);
int ddp_binomial_span(int v, int n);
int ddp_binomial_children(int v, int n);
/* The real ranks of v's subtree: first `before` ranks that begin with v's real rank, then `after`
 * ranks that begin with rank 0. */
struct ddp_wrap {
    int before, after;
};
struct ddp_wrap ddp_wrap_of(int v, int root, int n);

/* Binary tree over virtual ranks: v's parent is (v - 1) / 2, its children are 2v + 1 and 2v + 2. */
static inline int ddp_binary_parent(int v)
{
    return v == 0 ? -1 : (v - 1) / 2;
}
/* Returns the number of children, 0, 1 or 2. The first child is 2v + 1. */
int ddp_binary_children(int v, int n);
/* Returns the number of edges between the root and the deepest of n ranks. */
int ddp_binary_depth(int n);

/* Reduces n ranks to a power of two. The first 2 * extra ranks form pairs, and the even rank of
 * each pair is folded into the odd one. The remaining ranks keep their order as new ranks
 * 0..pow2-1. */
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

/* One level of recursive halving, at distance 2^level. A new rank and its partner at that level
 * hold the same range. The rank whose bit `level` is 0 keeps the first half and gives the second
 * half away; its partner does the reverse. */
struct ddp_range {
    size_t begin, end;
};
void ddp_halve(struct ddp_range whole, int new_rank, int level, struct ddp_range *keep,
               struct ddp_range *give);

#ifdef __cplusplus
}
#endif
#endif
