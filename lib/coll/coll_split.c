#include "coll/coll_split.h"

#include "base/mem.h"
#include "base/rng.h"

void ddp_split_array_bytes(const struct ddp_coll_args *args, int ranks, int rank, size_t *send,
                           size_t *recv)
{
    const size_t elem = ddp_dtype_size(args->dtype);

    *send = ddp_split_send_at(args, ranks, rank, ranks) * elem;
    *recv = ddp_coll_reduces(args->coll) ? ddp_split_part(args, ranks, rank, rank) * elem : 0;
    for (int r = 0; r < ranks && !ddp_coll_reduces(args->coll); r++)
        *recv += ddp_split_part(args, ranks, r, rank) * elem;
}

/* Adds table[0], table[stride], ... (n entries), and sets *most to the sum if the sum is larger.
 * Returns false if the sum exceeds SIZE_MAX. */
static bool most_of(const size_t *table, size_t n, size_t stride, size_t *most)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(sum, table[i * stride], &sum))
            return false;
    *most = DDP_MAX(*most, sum);
    return true;
}

bool ddp_split_chunk(const struct ddp_coll_args *args, int ranks, size_t *out)
{
    const size_t n = (size_t)ranks;
    const size_t rows = ddp_coll_split_is_row(args->coll) ? 1 : n;
    size_t most = 0;

    for (size_t i = 0; i < rows; i++)
        if (!most_of(args->split + i * n, n, 1, &most) ||
            (rows > 1 && !most_of(args->split + i, n, n, &most)))
            return false;
    *out = most / n + (most % n != 0);
    return true;
}

struct ddp_coll_args ddp_split_args(const struct ddp_coll_shape *shape)
{
    return (struct ddp_coll_args){
        .coll = shape->coll, .count = shape->count, .dtype = shape->dtype, .split = shape->split};
}

uint64_t ddp_split_hash(const struct ddp_coll_args *args, int ranks)
{
    const size_t n = (size_t)ranks;
    const size_t entries = ddp_coll_split_is_row(args->coll) ? n : n * n;
    return args->split != NULL ? ddp_fnv1a(DDP_FNV_INIT, args->split, entries * sizeof *args->split)
                               : 0;
}

void ddp_split_sum(const struct ddp_coll_shape *shape, int ranks, double *all, double *own)
{
    const struct ddp_coll_args args = ddp_split_args(shape);

    *all = *own = 0;
    for (int from = 0; from < ranks; from++) {
        *own += (double)ddp_split_part(&args, ranks, from, from);
        for (int to = 0; to < ranks; to++)
            *all += (double)ddp_split_part(&args, ranks, from, to);
    }
}

size_t ddp_split_send_at(const struct ddp_coll_args *args, int ranks, int from, int to)
{
    size_t at = 0;
    if (args->coll == DDP_ALL_GATHER_V)
        return to == ranks ? ddp_split_part(args, ranks, from, from) : 0;
    if (args->split == NULL)
        return (size_t)to * args->count;
    for (int r = 0; r < to; r++)
        at += ddp_split_part(args, ranks, from, r);
    return at;
}

size_t ddp_split_map_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    (void)shape;
    return sizeof(struct ddp_split_map) + (size_t)comm->size * sizeof(struct ddp_split_peer);
}

static void make_map(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                     struct ddp_split_map *map)
{
    const size_t elem = ddp_dtype_size(args->dtype);
    const int n = comm->size, me = comm->rank;
    const bool reduces = ddp_coll_reduces(args->coll);
    size_t received = 0;

    map->sent = ddp_split_send_at(args, n, me, n) * elem;
    for (int r = 0; r < n; r++) {
        struct ddp_split_peer *peer = &map->peer[r];
        for (int to = 0; to < n; to++)
            if (to != r)
                map->most_part = DDP_MAX(map->most_part, ddp_split_part(args, n, r, to) * elem);
        map->most_sent = DDP_MAX(map->most_sent, ddp_split_send_at(args, n, r, n) * elem);
        peer->remote_at = ddp_split_send_at(args, n, r, me) * elem;
        peer->send_at = ddp_split_send_at(args, n, me, r) * elem;
        peer->send_bytes = ddp_split_part(args, n, me, r) * elem;
        peer->recv_at = reduces ? 0 : received;
        peer->recv_bytes = ddp_split_part(args, n, r, me) * elem;
        received = peer->recv_at + peer->recv_bytes;
    }
    map->touched = map->sent + received;
    map->made = true;
}

const struct ddp_split_map *ddp_split_map_in(const struct ddp_comm *comm,
                                             const struct ddp_coll_args *args, void *scratch)
{
    struct ddp_split_map *map = scratch;
    if (!map->made)
        make_map(comm, args, map);
    return map;
}
