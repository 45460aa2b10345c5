/* Sparse all-reduce "direct": each rank reads the lists of all ranks directly in registered memory.
 *
 * First, every rank stores the position of its list beside its flag, and posts the flag to announce
 * that the list is ready. Each rank then adds all lists to its own result, one block of the result
 * at a time, rank 0's entries first. All ranks use the same order, so they get the same bits. Last,
 * every rank announces that it no longer reads any list.
 *
 * In dense "direct" each rank sums one chunk and stores it to all ranks. Chunks would not save time
 * here: a rank would sum n/P of the n elements and store them to P ranks. It would still store 4n
 * bytes, most of them in cache lines that other cores hold.
 *
 * Cost for k entries per rank on P ranks: 2 steps. Every rank reads 8kP bytes and writes 4n bytes.
 * No messages are sent. */
#include <string.h>

#include "coll/coll_shm.h"
#include "coll/sparse/sparse_p2p.h"

/* The position of a rank's list. `index` and `value` are offsets in the shared segment. */
struct direct_place {
    uint64_t index, value, count;
};

/* The scratch, which keeps its contents between calls (sparse_coll.h). */
struct direct {
    /* the arrays that were last checked to lie in registered memory */
    const void *checked_index, *checked_value;
    struct ddp_sparse list[DDP_SHM_RANKS_MAX]; /* one per rank */
};

static size_t direct_scratch_bytes(const struct ddp_comm *comm, size_t n, size_t most)
{
    (void)comm;
    (void)n;
    (void)most;
    return sizeof(struct direct);
}

static void direct_enter(struct ddp_comm *comm, const struct ddp_sparse *mine)
{
    const uintptr_t base = (uintptr_t)comm->rank_info.segment;
    const struct direct_place place = {
        .index = (uintptr_t)mine->index - base,
        .value = (uintptr_t)mine->value - base,
        .count = mine->count,
    };
    memcpy(ddp_shm_flag_slot_of(comm->shm, comm->rank, DDP_FLAGS_DIRECT)->inline_data, &place,
           sizeof place);
    ddp_shm_post(comm, DDP_FLAGS_DIRECT, ++comm->shm->sequence[DDP_FLAGS_DIRECT]);
}

/* Sets *list to the list of a rank that has entered. */
static void find_list(const struct ddp_comm *comm, int rank, struct ddp_sparse *list)
{
    struct direct_place place;
    unsigned char *base = comm->rank_info.segment;
    memcpy(&place, ddp_shm_flag_slot_of(comm->shm, rank, DDP_FLAGS_DIRECT)->inline_data,
           sizeof place);
    *list = (struct ddp_sparse){
        .index = (uint32_t *)(void *)(base + place.index),
        .value = (float *)(void *)(base + place.value),
        .count = place.count,
    };
}

static int direct_run(struct ddp_comm *comm, const struct ddp_sparse_args *args, void *scratch,
                      struct ddp_err *err)
{
    struct direct *x = scratch;

    if (x->checked_index != args->mine.index || x->checked_value != args->mine.value) {
        if (ddp_comm_map(comm, comm->rank, args->mine.index) == NULL ||
            ddp_comm_map(comm, comm->rank, args->mine.value) == NULL)
            return ddp_fail(err, DDP_EINTERNAL, "a list of 'direct' is not in registered memory");
        x->checked_index = args->mine.index;
        x->checked_value = args->mine.value;
    }
    direct_enter(comm, &args->mine);
    uint64_t *sequence = &comm->shm->sequence[DDP_FLAGS_DIRECT];
    DDP_TRY(ddp_shm_wait_all(comm, DDP_FLAGS_DIRECT, *sequence, err));
    for (int r = 0; r < comm->size; r++)
        find_list(comm, r, &x->list[r]);
    ddp_sparse_sum(comm->device, x->list, comm->size, args->result, args->n);
    ddp_shm_post(comm, DDP_FLAGS_DIRECT, ++*sequence);
    return ddp_shm_wait_all(comm, DDP_FLAGS_DIRECT, *sequence, err);
}

static void direct_cost(int ranks, size_t n, size_t k, struct ddp_coll_cost *cost, bool *exact)
{
    *cost = (struct ddp_coll_cost){
        .steps = 2,
        .memory_bytes = ranks * (8.0 * (double)k * ranks + 4.0 * (double)n),
        .modelled = true,
    };
    *exact = true;
}

const struct ddp_sparse_alg ddp_sparse_alg_direct = {
    .name = "direct",
    .summary = "registered memory: each rank reads all lists in place and sums them, zero-copy",
    .needs = DDP_NEEDS_SHARED,
    .scratch_bytes = direct_scratch_bytes,
    .run = direct_run,
    .cost = direct_cost,
};
