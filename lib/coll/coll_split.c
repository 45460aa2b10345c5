#include "coll/coll_split.h"

#include "base/mem.h"

void ddp_split_array_bytes(const struct ddp_coll_args *args, int ranks, int rank, size_t *send,
                           size_t *recv)
{
    const size_t elem = ddp_dtype_size(args->dtype);

    *send = *recv = 0;
    for (int r = 0; r < ranks; r++) {
        *send += ddp_split_part(args, ranks, rank, r) * elem;
        *recv += ddp_split_part(args, ranks, r, rank) * elem;
    }
}

bool ddp_split_chunk(const size_t *split, int ranks, size_t *out)
{
    const size_t n = (size_t)ranks;
    size_t most = 0;

    for (size_t i = 0; i < n; i++) {
        size_t sent = 0, received = 0;
        for (size_t j = 0; j < n; j++)
            if (__builtin_add_overflow(sent, split[i * n + j], &sent) ||
                __builtin_add_overflow(received, split[j * n + i], &received))
                return false;
        most = DDP_MAX(most, DDP_MAX(sent, received));
    }
    *out = most / n + (most % n != 0);
    return true;
}

void ddp_split_sum(const size_t *split, int ranks, double *all, double *own)
{
    const size_t n = (size_t)ranks;

    *all = *own = 0;
    for (size_t i = 0; i < n * n; i++) {
        *all += (double)split[i];
        *own += i / n == i % n ? (double)split[i] : 0;
    }
}

size_t ddp_split_send_at(const struct ddp_coll_args *args, int ranks, int from, int to)
{
    size_t at = 0;
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
    size_t received = 0;

    for (int r = 0; r < n; r++) {
        struct ddp_split_peer *peer = &map->peer[r];
        size_t sent = 0;
        for (int to = 0; to < n; to++) {
            const size_t part = ddp_split_part(args, n, r, to) * elem;
            if (to == me)
                peer->remote_at = sent;
            if (to != r)
                map->most_part = DDP_MAX(map->most_part, part);
            sent += part;
        }
        map->most_sent = DDP_MAX(map->most_sent, sent);
        peer->send_at = map->sent;
        peer->send_bytes = ddp_split_part(args, n, me, r) * elem;
        map->sent += peer->send_bytes;
        peer->recv_at = received;
        peer->recv_bytes = ddp_split_part(args, n, r, me) * elem;
        received += peer->recv_bytes;
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
