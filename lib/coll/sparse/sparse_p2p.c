/* Exchanges of a few 32-bit words between all ranks, and the sum of many sparse lists. See
 * sparse_p2p.h. */
#include "coll/sparse/sparse_p2p.h"

#include <string.h>

/* Before each step, `room` holds the words of `have` ranks: this rank and the have - 1 ranks after
 * it. */
int ddp_words_gather(struct ddp_comm *comm, const uint32_t *mine, size_t words, uint32_t *all,
                     uint32_t *room, struct ddp_err *err)
{
    const int n = comm->size;
    const size_t bytes = words * sizeof *mine;

    memcpy(room, mine, bytes);
    for (int have = 1; have < n; have *= 2) {
        const size_t blocks = (size_t)DDP_MIN(have, n - have);
        const struct ddp_p2p_move move = {
            .dst = ddp_rank_at(comm->rank, -have, n),
            .out = room,
            .out_bytes = blocks * bytes,
            .src = ddp_rank_at(comm->rank, have, n),
            .in = room + (size_t)have * words,
            .in_bytes = blocks * bytes,
        };
        DDP_TRY(ddp_p2p_exchange(comm, &move, err));
    }
    for (int i = 0; i < n; i++)
        memcpy(all + (size_t)ddp_rank_at(comm->rank, i, n) * words, room + (size_t)i * words,
               bytes);
    return 0;
}

/* req[i] is the receive from the rank i ranks before this rank, and req[n + i - 1] is the send to
 * the rank i ranks after this rank (modulo n). */
static int swap_at_once(struct ddp_comm *comm, const uint32_t *out, uint32_t *in,
                        struct ddp_request *req, struct ddp_err *err)
{
    const int n = comm->size;

    in[comm->rank] = out[comm->rank];
    for (int i = 1; i < n; i++) {
        const int src = ddp_rank_at(comm->rank, -i, n), dst = ddp_rank_at(comm->rank, i, n);
        DDP_TRY(ddp_comm_irecv(comm, src, DDP_COLL_TAG, &in[src], sizeof *in, &req[i], err));
        DDP_TRY(
            ddp_comm_isend(comm, dst, DDP_COLL_TAG, &out[dst], sizeof *out, &req[n + i - 1], err));
    }
    return n == 1 ? 0 : ddp_comm_wait(comm, req + 1, 2 * (n - 1), err);
}

/* room[i] holds a word whose target rank is i ranks after its source rank. Before the step of
 * `bit`, the word has moved (i mod bit) ranks. */
static int swap_by_bits(struct ddp_comm *comm, const uint32_t *out, uint32_t *in, uint32_t *room,
                        struct ddp_err *err)
{
    const int n = comm->size;
    uint32_t *going = room + n, *coming = going + n;

    for (int i = 0; i < n; i++)
        room[i] = out[ddp_rank_at(comm->rank, i, n)];
    for (int bit = 1; bit < n; bit *= 2) {
        size_t words = 0;
        for (int i = bit; i < n; i = (i + 1) | bit)
            going[words++] = room[i];
        const struct ddp_p2p_move move = {
            .dst = ddp_rank_at(comm->rank, bit, n),
            .out = going,
            .out_bytes = words * sizeof *going,
            .src = ddp_rank_at(comm->rank, -bit, n),
            .in = coming,
            .in_bytes = words * sizeof *coming,
        };
        DDP_TRY(ddp_p2p_exchange(comm, &move, err));
        words = 0;
        for (int i = bit; i < n; i = (i + 1) | bit)
            room[i] = coming[words++];
    }
    for (int i = 0; i < n; i++)
        in[ddp_rank_at(comm->rank, -i, n)] = room[i];
    return 0;
}

int ddp_words_swap(struct ddp_comm *comm, const uint32_t *out, uint32_t *in, uint32_t *room,
                   struct ddp_request *req, struct ddp_err *err)
{
    return comm->size <= DDP_WORDS_AT_ONCE ? swap_at_once(comm, out, in, req, err)
                                           : swap_by_bits(comm, out, in, room, err);
}

/* Number of elements of a block (64 KiB). Without blocks, ddp_sparse_sum would zero the whole
 * result before it adds the lists. This takes longer if the result does not fit the cache
 * (results/notes/collectives.md). */
#define BLOCK ((size_t)16 << 10)

void ddp_sparse_sum(const struct ddp_device *device, struct ddp_sparse *list, int count,
                    float *result, size_t n)
{
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t end = DDP_MIN(begin + BLOCK, n);
        device->fill(result + begin, 0, (end - begin) * sizeof *result);
        for (int r = 0; r < count; r++) {
            /* Indices ascend, so a list has at most end - begin entries in this block. */
            struct ddp_sparse in_block = list[r];
            in_block.count =
                ddp_sparse_lower_bound(in_block.index, DDP_MIN(in_block.count, end - begin), end);
            device->grad->scatter_add(result, &in_block);
            list[r].index += in_block.count;
            list[r].value += in_block.count;
            list[r].count -= in_block.count;
        }
    }
}
