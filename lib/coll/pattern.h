/* Neighbour arithmetic: who talks to whom, and about which part, in the algorithms that send
 * messages. Pure functions of small integers: no communicator, no I/O, tested alone
 * (tests/unit/test_pattern.c). Ranks are 0..n-1 of a group; n >= 1. What it does not do: move data,
 * or know about types. */
#ifndef DDP_COLL_PATTERN_H
#define DDP_COLL_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `count` elements cut into `parts` consecutive parts. offset NULL: as equal as can be, the first
 * count % parts ones longer by one. Else part i is [offset[i], offset[i + 1]), offset[0..parts],
 * borrowed, and count is offset[parts]. */
struct ddp_parts {
    size_t count;
    int parts;
    const size_t *offset;
};
size_t ddp_parts_begin(const struct ddp_parts *p, int i);
size_t ddp_parts_count(const struct ddp_parts *p, int i);

/* (rank + distance) mod n, for any distance > -n. */
static inline int ddp_rank_at(int rank, int distance, int n)
{
    return (rank + distance + n) % n;
}

/* The part a rank of a ring sends in a step; what it receives is what the rank before it sends.
 * Combining ring, steps 0..n-2: part c starts at rank c+1, travels through all, and ends, combined,
 * at rank c. Copying ring, steps 0..n-2: part c starts at rank c and ends at rank c-1. */
static inline int ddp_ring_part_summed(int rank, int step, int n)
{
    return ddp_rank_at(rank, -1 - step, n);
}
static inline int ddp_ring_part_copied(int rank, int step, int n)
{
    return ddp_rank_at(rank, -step, n);
}

/* Pairwise exchange. Shift: in steps 1..n-1 a rank sends to the rank `step` after it and receives
 * from the one `step` before. Mirror: in steps 0..n-1 it does both with one partner, each pair in
 * exactly one step (rank + partner = step mod n); the partner may be the rank itself: idle. */
static inline int ddp_mirror_partner(int rank, int step, int n)
{
    return ddp_rank_at(step, -rank, n);
}

/* The smallest k with 2^k >= n: rounds of dissemination and of a binomial tree. */
int ddp_rounds(int n);

/* Binomial tree over virtual ranks, the root being 0: v = (rank - root) mod n. v's parent is v
 * without its lowest set bit; its subtree is [v, v + span), so it is contiguous; its children are
 * v + 1, v + 2, v + 4, ... < v + span, as many as ddp_binomial_children. */
static inline int ddp_virtual_rank(int rank, int root, int n)
{
    return ddp_rank_at(rank, -root, n);
}
static inline int ddp_real_rank(int virtual_rank, int root, int n)
{
    return ddp_rank_at(virtual_rank, root, n);
}
/* -1 for the root. */
int ddp_binomial_parent(int v);
int ddp_binomial_span(int v, int n);
int ddp_binomial_children(int v, int n);
/* The ranks of v's subtree: `before` of them from its real rank on, then `after` from rank 0 on. */
struct ddp_wrap {
    int before, after;
};
struct ddp_wrap ddp_wrap_of(int v, int root, int n);

/* Binary tree over virtual ranks: v's parent is (v - 1) / 2, its children 2v + 1 and 2v + 2. */
static inline int ddp_binary_parent(int v)
{
    return v == 0 ? -1 : (v - 1) / 2;
}
/* 0, 1 or 2; the first is 2v + 1. */
int ddp_binary_children(int v, int n);
/* Edges between the root and the deepest of n. */
int ddp_binary_depth(int n);

/* Any rank count as a power of two: the first 2 * extra ranks form pairs, of which the even one is
 * folded into the odd one. The others keep their order as new ranks 0..pow2-1. */
struct ddp_fold {
    int pow2, extra;
};
struct ddp_fold ddp_fold_of(int n);
/* The new rank; -1 when the rank is folded into rank + 1. */
int ddp_fold_rank(struct ddp_fold fold, int rank);
/* The rank of a new rank. */
int ddp_fold_real(struct ddp_fold fold, int new_rank);
/* Has this rank another one folded into it? */
bool ddp_fold_holds(struct ddp_fold fold, int rank);

/* One level of recursive halving, at distance 2^level: a new rank and its partner at that level
 * hold the same range; the one whose bit `level` is 0 keeps the first half and gives the second. */
struct ddp_range {
    size_t begin, end;
};
void ddp_halve(struct ddp_range whole, int new_rank, int level, struct ddp_range *keep,
               struct ddp_range *give);

#ifdef __cplusplus
}
#endif
#endif
