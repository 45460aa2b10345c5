/* Declarations shared by the files of sparse all-reduce "oktopk". sparse_oktopk.c describes the
 * algorithm. For lib/coll's sparse_oktopk*.c only. */
#ifndef DDP_COLL_SPARSE_SPARSE_OKTOPK_H
#define DDP_COLL_SPARSE_SPARSE_OKTOPK_H

#include <string.h>

#include "coll/sparse/sparse_p2p.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of calls that use the same regions, and largest number of calls that use the same
 * threshold (Ok-Topk, section 3). */
#define DDP_OKTOPK_REGION_STEPS    64
#define DDP_OKTOPK_THRESHOLD_STEPS 32

/* Number of bits of a magnitude that the exact selection handles per round. */
#define DDP_OKTOPK_DIGIT_BITS 4
#define DDP_OKTOPK_DIGITS     (1 << DDP_OKTOPK_DIGIT_BITS)

/* State that is kept between calls. It is zeroed before the first call. */
struct ddp_oktopk_state {
    uint64_t step;
    uint32_t threshold, hint; /* threshold: a magnitude (device/sparse.h); hint: for select_topk */
};

/* The numbers that every rank sends to all others after it has summed its region. */
struct ddp_oktopk_note {
    /* selected: sums that reach the threshold. sums: all sums. sent_words: words sent so far. */
    uint32_t selected, sums, sent_words;
};

/* The state of one call. Arrays with [P] have one element per rank or per region. The *sums* are
 * the summed values of this rank's region. `present` has one bit per index of the region, which is
 * set if there is a sum. args->result holds the value of the sum.
 *
 * A sum of magnitude m is kept if (m >> shift) > (threshold >> shift). Sums for which the two sides
 * are equal are *ties*. This rank keeps its first tie_quota ties, in index order. */
struct ddp_oktopk {
    struct ddp_comm *comm;
    const struct ddp_sparse_args *args;
    struct ddp_oktopk_state *state;
    size_t *region; /* [P + 1]: region r is [region[r], region[r + 1]) */
    size_t *split;  /* [P + 1]: this rank's entries of region r are split[r] .. split[r + 1] - 1 */
    size_t *region_kept;              /* [P]: number of sums of region r that are kept */
    size_t *offset;                   /* [P + 1]: positions of the kept sums of each rank */
    struct ddp_oktopk_note *note;     /* [P] */
    uint32_t *counts_out, *counts_in; /* [P] */
    uint32_t *digits, *digits_room;   /* [P * DDP_OKTOPK_DIGITS]: sums per digit, and scratch */
    uint32_t *above, *ties;           /* [P]: sums above the threshold, and ties */
    struct ddp_request *req;          /* [2P] */
    uint32_t *out, *in[2];            /* [2 most] words: messages; in[1] follows in[0] */
    uint32_t *room;                   /* [2 most]: the indices of one message */
    uint32_t *present;                /* [n / 32 + 1] */
    struct ddp_sparse own;            /* [2 most]: the kept sums of this rank's region */
    uint32_t *gathered;               /* [4 most] words: the kept sums of all ranks */
    uint32_t sent_words;
    uint32_t threshold;
    int shift;
    size_t tie_quota;
    size_t kept;   /* number of kept sums of all ranks */
    size_t cursor; /* number of entries of args->mine already known to be kept or rejected */
};

static inline struct ddp_sparse_span ddp_oktopk_region(const struct ddp_oktopk *x, int r)
{
    return (struct ddp_sparse_span){x->region[r], x->region[r + 1] - x->region[r]};
}

/* Iterates over the sums of this rank's region in index order. ddp_oktopk_iter_next sets *i to the
 * next index, or returns false at the end. */
struct ddp_oktopk_iter {
    const uint32_t *word;
    size_t base, words;
    uint32_t bits;
};
static inline void ddp_oktopk_iter_init(struct ddp_oktopk_iter *w, const struct ddp_oktopk *x)
{
    const size_t begin = x->region[x->comm->rank], end = x->region[x->comm->rank + 1];
    w->word = x->present;
    w->base = begin;
    w->words = (end - begin) / 32 + ((end - begin) % 32 != 0);
    w->bits = w->words != 0 ? *w->word : 0;
}
static inline bool ddp_oktopk_iter_next(struct ddp_oktopk_iter *w, size_t *i)
{
    while (w->bits == 0) {
        if (w->words <= 1)
            return false;
        w->words--;
        w->base += 32;
        w->bits = *++w->word;
    }
    *i = w->base + (size_t)__builtin_ctz(w->bits);
    w->bits &= w->bits - 1;
    return true;
}

static inline uint32_t ddp_magnitude(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & INT32_MAX;
}

/* Selects the sums that are kept. Sets region_kept, threshold, shift and kept, which are equal on
 * all ranks, and this rank's tie_quota. Collective. */
int ddp_oktopk_select(struct ddp_oktopk *x, struct ddp_err *err) DDP_MUST_CHECK;
/* Gathers the kept sums of all ranks into the result, and adds this rank's rejected contributions
 * to its residual. Collective. */
int ddp_oktopk_gather(struct ddp_oktopk *x, struct ddp_err *err) DDP_MUST_CHECK;
/* ddp_oktopk_keep stores kept sums in the result. Successive calls must pass sums in index order.
 * If an entry of args->mine does not belong to a kept sum, it is *rejected*, which means that it is
 * added to the residual. After the last call, ddp_oktopk_finish rejects the remaining entries. */
void ddp_oktopk_keep(struct ddp_oktopk *x, const struct ddp_sparse *list);
void ddp_oktopk_finish(struct ddp_oktopk *x);

/* True if a rank that has sent `sent` words may send `words` more. A rank may send 6k(P - 1)/P
 * words in total. */
static inline bool ddp_oktopk_within(const struct ddp_oktopk *x, uint64_t sent, uint64_t words)
{
    const uint64_t ranks = (uint64_t)x->comm->size;
    return ranks * (sent + words) <= 6 * (uint64_t)x->args->k * (ranks - 1);
}

#ifdef __cplusplus
}
#endif
#endif
