/* Helpers of the sparse algorithms: exchange of small numbers between ranks, the sum of many lists,
 * and the layout of scratch. For lib/coll only. */
#ifndef DDP_COLL_SPARSE_P2P_H
#define DDP_COLL_SPARSE_P2P_H

#include "coll/coll_p2p.h"
#include "coll/sparse_code.h"
#include "coll/sparse_coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the next `bytes` bytes of scratch, aligned to a cache line, and adds them to *used. If
 * base is NULL, it only adds. */
static inline void *ddp_carve(void *base, size_t *used, size_t bytes)
{
    void *at = base != NULL ? (unsigned char *)base + *used : NULL;
    *used += ddp_round_to_line(bytes);
    return at;
}

/* Returns DDP_EUNAVAIL if the backend cannot send messages, DDP_EUSAGE from 2^32 elements on. */
int ddp_sparse_needs_p2p(const struct ddp_comm *comm, const char *name, size_t n,
                         struct ddp_err *err) DDP_MUST_CHECK;

/* All-gathers mine [words] of every rank into all [size * words], in rank order. room: as long as
 * all. Bruck's algorithm: ceil(log2 P) steps, in each of which a rank sends one message, 4 words (P
 * - 1) bytes in all. Source: J. Bruck et al., IEEE TPDS 8 (1997), section 3. */
int ddp_words_gather(struct ddp_comm *comm, const uint32_t *mine, size_t words, uint32_t *all,
                     uint32_t *room, struct ddp_err *err) DDP_MUST_CHECK;
/* Largest number of ranks for which each rank sends its words to all others at once. */
#define DDP_WORDS_AT_ONCE 16
/* Exchanges one word with each rank: sends out [size] and receives in [size]. room [3 * size], req
 * [2 * size]. Up to DDP_WORDS_AT_ONCE ranks send P - 1 messages at once. More ranks use Bruck's
 * all-to-all in ceil(log2 P) steps, in which a word is sent once for each set bit of its distance.
 * Source: the same paper, "index operation". */
int ddp_words_swap(struct ddp_comm *comm, const uint32_t *out, uint32_t *in, uint32_t *room,
                   struct ddp_request *req, struct ddp_err *err) DDP_MUST_CHECK;
/* Bytes that a rank sends in ddp_words_swap: 4(P - 1), or at most 2P log2 P. */
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

/* Computes result [n] as the sum of list[count], in their order. The list structs are advanced to
 * their end. Works on one block of the result at a time, which is zeroed and added to while it is
 * in the cache. Reads 8 bytes an entry and writes 4n. */
void ddp_sparse_sum(const struct ddp_device *device, struct ddp_sparse *list, int count,
                    float *result, size_t n);

#ifdef __cplusplus
}
#endif
#endif
