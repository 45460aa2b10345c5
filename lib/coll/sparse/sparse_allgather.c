/* Sparse all-reduce "allgather": every rank receives the lists of all ranks and sums them in rank
 * order.
 *
 * The ranks first exchange the numbers of entries, unless these are fixed. The lists then go around
 * a ring (coll_ring.h). They are coded for a span of all n indices (sparse_code.h). Every rank adds
 * the lists to a zeroed result, rank 0's list first. All ranks use the same order, so they get the
 * same bits.
 *
 * Cost for k entries per rank on P ranks: P - 1 steps. Let w(k) be the number of words for k
 * entries (sparse_code.h). Every rank sends 4 w(k) (P - 1) bytes in P - 1 messages. Below a density
 * of 1/32, this is 8k(P - 1) bytes. If the numbers of entries are not fixed, their exchange takes
 * ceil(log2 P) steps and 4(P - 1) bytes more. */
#include "coll/coll_ring.h"
#include "coll/sparse/sparse_p2p.h"

/* The arrays of one call, which lie in scratch. */
struct allgather {
    uint32_t *counts, *counts_room;
    size_t *offset;
    struct ddp_sparse *list;
    /* `room`: memory for the indices of one list that is coded without indices. `words`: the coded
     * lists of all ranks. */
    uint32_t *room, *words;
};

static size_t allgather_layout(struct allgather *x, int ranks, size_t n, size_t most, void *scratch)
{
    const size_t p = (size_t)ranks, bound = ddp_sparse_code_bound(most, n);
    size_t used = 0;
    x->counts = ddp_carve(scratch, &used, p * sizeof *x->counts);
    x->counts_room = ddp_carve(scratch, &used, p * sizeof *x->counts_room);
    x->offset = ddp_carve(scratch, &used, (p + 1) * sizeof *x->offset);
    x->list = ddp_carve(scratch, &used, p * sizeof *x->list);
    x->room = ddp_carve(scratch, &used, DDP_MIN(most, n) * sizeof *x->room);
    x->words = ddp_carve(scratch, &used, p * bound * sizeof *x->words);
    return used;
}

static size_t allgather_scratch_bytes(const struct ddp_comm *comm, size_t n, size_t most)
{
    struct allgather x;
    return allgather_layout(&x, comm->size, n, most, NULL);
}

static int allgather_counts(struct ddp_comm *comm, const struct ddp_sparse_args *args,
                            struct allgather *x, struct ddp_err *err)
{
    const uint32_t mine = (uint32_t)args->mine.count;

    for (int r = 0; r < comm->size; r++)
        x->counts[r] = (uint32_t)args->most;
    if (!args->fixed)
        DDP_TRY(ddp_words_gather(comm, &mine, 1, x->counts, x->counts_room, err));
    x->offset[0] = 0;
    for (int r = 0; r < comm->size; r++) {
        if (x->counts[r] > args->most)
            return ddp_fail(err, DDP_EDATA,
                            "rank %d reported %u entries, but at most %zu are allowed",
                            comm->world_rank[r], x->counts[r], args->most);
        x->offset[r + 1] = x->offset[r] + ddp_sparse_code_words(x->counts[r], args->n);
    }
    return 0;
}

/* True if all lists are coded with indices. No list then needs `room`, so all decoded lists exist
 * at the same time and can be summed in blocks (ddp_sparse_sum). */
static bool all_have_indices(const struct allgather *x, int ranks, size_t n)
{
    for (int r = 0; r < ranks; r++)
        if (x->counts[r] != 0 && ddp_sparse_code_needs_room(x->counts[r], n))
            return false;
    return true;
}

static int allgather_sum(struct ddp_comm *comm, const struct ddp_sparse_args *args,
                         struct allgather *x, struct ddp_err *err)
{
    const struct ddp_sparse_span span = {0, args->n};
    const bool at_once = all_have_indices(x, comm->size, args->n);

    if (!at_once)
        comm->device->fill(args->result, 0, args->n * sizeof *args->result);
    for (int r = 0; r < comm->size; r++) {
        DDP_TRY(ddp_sparse_decode(x->words + x->offset[r], x->counts[r], span, x->room, &x->list[r],
                                  err));
        if (!at_once)
            comm->device->grad->scatter_add(args->result, &x->list[r]);
    }
    if (at_once)
        ddp_sparse_sum(comm->device, x->list, comm->size, args->result, args->n);
    return 0;
}

static int allgather_run(struct ddp_comm *comm, const struct ddp_sparse_args *args, void *scratch,
                         struct ddp_err *err)
{
    struct allgather x;

    allgather_layout(&x, comm->size, args->n, args->most, scratch);
    DDP_TRY(allgather_counts(comm, args, &x, err));
    const struct ddp_chunks chunks = {x.offset[comm->size], comm->size, x.offset};
    ddp_sparse_encode(&args->mine, (struct ddp_sparse_span){0, args->n},
                      x.words + x.offset[comm->rank]);
    DDP_TRY(ddp_ring_copy(comm, &chunks, sizeof *x.words, x.words, comm->rank, err));
    return allgather_sum(comm, args, &x, err);
}

static void allgather_cost(int ranks, size_t n, size_t k, struct ddp_coll_cost *cost, bool *exact)
{
    const double bytes = 4.0 * (double)ddp_sparse_code_words(k, n), others = ranks - 1;
    *cost = (struct ddp_coll_cost){
        .steps = others,
        .messages = k != 0 ? others : 0,
        .sent_bytes = bytes * others,
        .memory_bytes = ranks * (DDP_COST_COPY * bytes + DDP_COST_MOVE * bytes * others +
                                 (4.0 * (double)n + bytes * ranks)),
        .modelled = true,
    };
    *exact = true;
}

const struct ddp_sparse_alg ddp_sparse_alg_allgather = {
    .name = "allgather",
    .summary = "a ring sends all lists to all ranks; at most 8k(P-1) bytes",
    .on_device = true,
    .needs = DDP_NEEDS_MESSAGES,
    .scratch_bytes = allgather_scratch_bytes,
    .run = allgather_run,
    .cost = allgather_cost,
};
