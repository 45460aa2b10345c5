/* Helpers of the direct algorithms. */
#include "coll/coll_direct.h"

/* Shortest chunk of which the root copies a part. Copying half a chunk of about this size takes as
 * long as a step. */
#define ROOT_COPIES_FROM_BYTES ((size_t)16 << 10)

int ddp_direct_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                        struct ddp_err *err)
{
    DDP_TRY(ddp_coll_needs_shm(comm, "direct", err));
    if (!shape->registered) {
        ddp_fail(err, DDP_EUNAVAIL, "algorithm 'direct' needs registered memory");
        ddp_hint(err, "use --memory registered, or --algorithm staged");
        return DDP_EUNAVAIL;
    }
    return 0;
}

/* Returns the number of arrays of args->count elements that a rank accesses on average. A root, or
 * a rank of a call in place, accesses slightly more or fewer. All-to-all in place does not use this
 * function. */
static size_t arrays_touched(const struct ddp_comm *comm, const struct ddp_coll_args *args)
{
    const size_t all = (size_t)comm->size;
    switch (args->coll) {
    case DDP_ALL_GATHER:
        return all + 1;
    case DDP_ALL_TO_ALL:
        return 2 * all;
    case DDP_BROADCAST:
        return 1;
    default:
        return 2;
    }
}

bool ddp_direct_outgrows_cache(const struct ddp_comm *comm, const struct ddp_coll_args *args)
{
    return ddp_coll_array_bytes(args) * arrays_touched(comm, args) > comm->cache_share;
}

size_t ddp_direct_root_begin(const struct ddp_comm *comm, size_t bytes)
{
    const size_t tail = bytes / (size_t)comm->size / DDP_CACHE_LINE * DDP_CACHE_LINE;
    return bytes < ROOT_COPIES_FROM_BYTES ? bytes : bytes - tail;
}

size_t ddp_direct_chunk_begin(const void *base, size_t bytes, size_t elem, int r, int ranks)
{
    const size_t to_line = -(uintptr_t)base & (DDP_CACHE_LINE - 1);
    const size_t lead = to_line % elem == 0 ? to_line : 0;
    if (r == 0 || bytes <= lead)
        return r == 0 ? 0 : bytes;
    const size_t lines = (bytes - lead + DDP_CACHE_LINE - 1) / DDP_CACHE_LINE;
    return DDP_MIN(bytes, lead + lines * (size_t)r / (size_t)ranks * DDP_CACHE_LINE);
}
