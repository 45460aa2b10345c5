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
/* One word for each rank: out [size] to them, in [size] from them, several at once. 4 (P - 1) bytes
 * in P - 1 messages. req [2 * size]. */
int ddp_words_swap(struct ddp_comm *comm, const uint32_t *out, uint32_t *in,
                   struct ddp_request *req, struct ddp_err *err) DDP_MUST_CHECK;

/* result [n] = sum of list[count], in their order; the entries of list are used up. One block of
 * the result at a time: it is zeroed and added to while it is in the cache. Reads 8 bytes an entry,
 * writes 4n. */
void ddp_sparse_sum(const struct ddp_device *device, struct ddp_sparse *list, int count,
                    float *result, size_t n);

#ifdef __cplusplus
}
#endif
#endif
