/* What the sparse algorithms have in common: small numbers exchanged between ranks, the sum of many
 * lists, and how scratch is cut up. For lib/coll only. */
#ifndef DDP_COLL_SPARSE_P2P_H
#define DDP_COLL_SPARSE_P2P_H

#include "coll/coll_p2p.h"
#include "coll/sparse_code.h"
#include "coll/sparse_coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The next `bytes` bytes of scratch, on a cache line; base NULL: only counts. */
static inline void *ddp_carve(void *base, size_t *used, size_t bytes)
{
    void *at = base != NULL ? (unsigned char *)base + *used : NULL;
    *used += ddp_round_to_line(bytes);
    return at;
}

/* DDP_EUNAVAIL without messages, DDP_EUSAGE from 2^32 elements up. */
int ddp_sparse_needs_p2p(const struct ddp_comm *comm, const char *name, size_t n,
                         struct ddp_err *err) DDP_MUST_CHECK;

/* All-gather of `words` words a rank, mine [words], into all [size * words] in rank order; room as
 * all. Bruck's: ceil(log2 P) steps, 4 words (P - 1) bytes sent by every rank, as
 * ddp_sparse_rounds messages. Source: J. Bruck et al., IEEE TPDS 8 (1997), section 3. */
int ddp_words_gather(struct ddp_comm *comm, const uint32_t *mine, size_t words, uint32_t *all,
                     uint32_t *room, struct ddp_err *err) DDP_MUST_CHECK;
/* Ranks up to which each sends its words to all others at once. */
#define DDP_WORDS_AT_ONCE 16
/* One word for each rank: out [size] to them, in [size] from them; room [3 * size], req [2 * size].
 * Up to DDP_WORDS_AT_ONCE ranks in P - 1 messages at once; beyond by Bruck's all-to-all in
 * ceil(log2 P), in which every word travels once a bit of its distance. Source: the same, "index
 * operation". */
int ddp_words_swap(struct ddp_comm *comm, const uint32_t *out, uint32_t *in, uint32_t *room,
                   struct ddp_request *req, struct ddp_err *err) DDP_MUST_CHECK;
/* What a rank sends for it: 4(P - 1) bytes, or at most 2P log2 P. */
static inline double ddp_words_swap_bytes(int ranks)
{
    double bytes = 0;
    for (int i = 1; i < ranks; i++)
        bytes += 4 * (ranks <= DDP_WORDS_AT_ONCE ? 1 : __builtin_popcount((unsigned)i));
    return bytes;
}
static inline int ddp_words_swap_messages(int ranks)
{
    return ranks <= DDP_WORDS_AT_ONCE ? ranks - 1 : ddp_rounds(ranks);
}

/* result [n] = sum of list[count], in their order; the entries of list are used up. One block of
 * the result at a time: it is zeroed and added to while it is in the cache. Reads 8 bytes an entry,
 * writes 4n. */
void ddp_sparse_sum(const struct ddp_device *device, struct ddp_sparse *list, int count,
                    float *result, size_t n);

#ifdef __cplusplus
}
#endif
#endif
