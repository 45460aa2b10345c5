/* Helpers of the sparse algorithms. They exchange a few 32-bit words between all ranks, sum lists,
 * and lay out scratch. Only coll/sparse uses this header. */
#ifndef DDP_COLL_SPARSE_SPARSE_P2P_H
#define DDP_COLL_SPARSE_SPARSE_P2P_H

#include "coll/coll_p2p.h"
#include "coll/sparse/sparse_code.h"
#include "coll/sparse/sparse_coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns base + *used, the address of the next `bytes` bytes of scratch. Adds `bytes`, rounded up
 * to whole cache lines, to *used. If base is NULL, returns NULL, and still adds to *used. */
static inline void *ddp_carve(void *base, size_t *used, size_t bytes)
{
    void *at = base != NULL ? (unsigned char *)base + *used : NULL;
    *used += ddp_round_to_line(bytes);
    return at;
}

/* All-gathers the array `mine` [words] of every rank into `all` [size * words], in rank order.
 * `room` is scratch that is as long as `all`. Uses Bruck's algorithm, which takes ceil(log2 P)
 * steps for P ranks. A rank sends one message per step, and 4 * words * (P - 1) bytes in total.
 * Source: J. Bruck et al., IEEE TPDS 8 (1997), section 3. */
int ddp_words_gather(struct ddp_comm *comm, const uint32_t *mine, size_t words, uint32_t *all,
                     uint32_t *room, struct ddp_err *err) DDP_MUST_CHECK;
/* Largest number of ranks for which ddp_words_swap sends all words at once. */
#define DDP_WORDS_AT_ONCE 16
/* Exchanges one word with each rank (an all-to-all). Sends the words `out` [size] and receives the
 * words `in` [size]. Scratch: `room` [3 * size] and `req` [2 * size]. If there are at most
 * DDP_WORDS_AT_ONCE ranks, each rank sends P - 1 messages at once. Otherwise the ranks use Bruck's
 * all-to-all in ceil(log2 P) steps. Each word is then sent once per set bit of the distance to its
 * target rank. Source: the "index operation" of the paper that the comment of ddp_words_gather
 * names. */
int ddp_words_swap(struct ddp_comm *comm, const uint32_t *out, uint32_t *in, uint32_t *room,
                   struct ddp_request *req, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the bytes that a rank sends in ddp_words_swap. */
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

/* Computes `result` [n] as the sum of the lists list[0] to list[count - 1], added in this order.
 * Afterwards the count of each list is 0 and its pointers are behind its last entry. Processes the
 * result in blocks. The function zeroes a block and adds all lists to it while the block is in the
 * cache. */
void ddp_sparse_sum(const struct ddp_device *device, struct ddp_sparse *list, int count,
                    float *result, size_t n);

#ifdef __cplusplus
}
#endif
#endif
