/* Sends the kept sums to all ranks, and adds the rejected contributions to the residual.
 *
 * Normally the kept sums of each owner are one chunk of a ring that copies (coll_ring.h), coded for
 * the owner's region (sparse_code.h).
 *
 * If an owner has more than twice its share, the sums are *balanced* first, so that no step of the
 * ring waits for a long chunk. The kept sums in index order are cut into equal chunks, one per
 * rank, and the owners send each sum to the rank of its chunk. Balanced sums are sent as pairs of
 * an index and a value, because the index range of a chunk is not known. Balancing is skipped if a
 * rank would exceed the bound of words that it may send (ddp_oktopk_within). The notes tell all
 * ranks how many words each rank has sent, so all make the same decision. */
#include "coll/coll_ring.h"
#include "coll/sparse/sparse_oktopk.h"

/* A kept sum in a balanced message. */
struct pair {
    uint32_t index;
    float value;
};

static void collect(struct ddp_oktopk *x)
{
    const uint32_t digits = x->threshold >> x->shift;
    struct ddp_oktopk_iter iter;
    size_t i, count = 0, quota = x->tie_quota;

    ddp_oktopk_iter_init(&iter, x);
    while (ddp_oktopk_iter_next(&iter, &i)) {
        const uint32_t these = ddp_magnitude(x->args->result[i]) >> x->shift;
        if (these < digits || (these == digits && quota == 0))
            continue;
        quota -= these == digits;
        x->own.index[count] = (uint32_t)i;
        x->own.value[count++] = x->args->result[i] * x->args->scale;
    }
    x->own.count = count;
}

void ddp_oktopk_keep(struct ddp_oktopk *x, const struct ddp_sparse *list)
{
    const struct ddp_sparse *mine = &x->args->mine;

    x->comm->device->grad->scatter(x->args->result, list);
    for (size_t i = 0; i < list->count; i++) {
        for (; x->cursor < mine->count && mine->index[x->cursor] < list->index[i]; x->cursor++)
            if (x->args->rejected != NULL)
                x->args->rejected[mine->index[x->cursor]] += mine->value[x->cursor];
        if (x->cursor < mine->count && mine->index[x->cursor] == list->index[i])
            x->cursor++;
    }
}

void ddp_oktopk_finish(struct ddp_oktopk *x)
{
    const struct ddp_sparse *mine = &x->args->mine;
    for (; x->cursor < mine->count; x->cursor++)
        if (x->args->rejected != NULL)
            x->args->rejected[mine->index[x->cursor]] += mine->value[x->cursor];
}

/* Returns the range of kept sums that are both in owner r's region and in balanced chunk q. */
static struct ddp_range overlap(const struct ddp_oktopk *x, const struct ddp_chunks *even, int r,
                                int q)
{
    const struct ddp_range common = {
        .begin = DDP_MAX(x->offset[r], ddp_chunk_begin(even, q)),
        .end = DDP_MIN(x->offset[r + 1], ddp_chunk_begin(even, q + 1)),
    };
    return common.begin < common.end ? common : (struct ddp_range){0, 0};
}

/* True if the sums should be balanced. x->offset[r] is the position of owner r's first sum among
 * all kept sums. */
static bool worth_balancing(const struct ddp_oktopk *x, const struct ddp_chunks *even)
{
    const int ranks = x->comm->size;
    size_t longest = 0;

    for (int r = 0; r < ranks; r++)
        longest = DDP_MAX(longest, x->region_kept[r]);
    if (longest * (size_t)ranks <= 2 * x->kept || longest <= 1)
        return false;
    for (int r = 0; r < ranks; r++) {
        const struct ddp_range stays = overlap(x, even, r, r);
        const size_t moves = x->region_kept[r] - (stays.end - stays.begin);
        const size_t others = x->kept - ddp_chunk_count(even, ddp_rank_at(r, 1, ranks));
        if (!ddp_oktopk_within(x, x->note[r].sent_words, 2 * (moves + others)))
            return false;
    }
    return true;
}

/* Sends this rank's kept sums to the ranks of their balanced chunks, and receives the sums of this
 * rank's chunk. */
static int move_to_places(struct ddp_oktopk *x, const struct ddp_chunks *even,
                          const struct pair *own, struct pair *all, struct ddp_err *err)
{
    const int ranks = x->comm->size, rank = x->comm->rank;
    struct ddp_range at = overlap(x, even, rank, rank);

    memset(x->req, 0, 2 * (size_t)ranks * sizeof *x->req);
    memcpy(all + at.begin, own + (at.begin != at.end ? at.begin - x->offset[rank] : 0),
           (at.end - at.begin) * sizeof *all);
    for (int i = 1; i < ranks; i++) {
        const int src = ddp_rank_at(rank, -i, ranks);
        at = overlap(x, even, src, rank);
        if (at.begin != at.end)
            DDP_TRY(ddp_comm_irecv(x->comm, src, DDP_COLL_TAG, all + at.begin,
                                   (at.end - at.begin) * sizeof *all, &x->req[i], err));
    }
    for (int i = 1; i < ranks; i++) {
        const int dst = ddp_rank_at(rank, i, ranks);
        at = overlap(x, even, rank, dst);
        if (at.begin != at.end)
            DDP_TRY(ddp_comm_isend(x->comm, dst, DDP_COLL_TAG, own + (at.begin - x->offset[rank]),
                                   (at.end - at.begin) * sizeof *all, &x->req[ranks + i - 1], err));
    }
    return ddp_comm_wait(x->comm, x->req + 1, 2 * (ranks - 1), err);
}

static int gather_balanced(struct ddp_oktopk *x, const struct ddp_chunks *even, struct ddp_err *err)
{
    struct pair *own = (struct pair *)(void *)x->in[0]; /* uses in[0] and in[1], 4 most words */
    struct pair *all = (struct pair *)(void *)x->gathered;

    for (size_t i = 0; i < x->own.count; i++)
        own[i] = (struct pair){x->own.index[i], x->own.value[i]};
    DDP_TRY(move_to_places(x, even, own, all, err));
    DDP_TRY(ddp_ring_copy(x->comm, even, sizeof *all, all, x->comm->rank, err));
    struct ddp_sparse list = x->own;
    for (size_t i = 0; i < x->kept; i++) {
        list.index[i] = all[i].index;
        list.value[i] = all[i].value;
    }
    list.count = x->kept;
    if (!ddp_sparse_ascends(list.index, list.count, 0, x->args->n))
        return ddp_fail(err, DDP_EDATA, "the kept sums of all ranks must be in index order");
    ddp_oktopk_keep(x, &list);
    return 0;
}

static int gather_regions(struct ddp_oktopk *x, struct ddp_err *err)
{
    const int ranks = x->comm->size;

    x->offset[0] = 0;
    for (int r = 0; r < ranks; r++) {
        const size_t length = ddp_oktopk_region(x, r).length;
        if (x->region_kept[r] > length)
            return ddp_fail(err, DDP_EDATA, "rank %d reported %zu sums for %zu indices",
                            x->comm->world_rank[r], x->region_kept[r], length);
        x->offset[r + 1] = x->offset[r] + ddp_sparse_code_words(x->region_kept[r], length);
    }
    const struct ddp_chunks chunks = {x->offset[ranks], ranks, x->offset};
    ddp_sparse_encode(&x->own, ddp_oktopk_region(x, x->comm->rank),
                      x->gathered + x->offset[x->comm->rank]);
    DDP_TRY(ddp_ring_copy(x->comm, &chunks, sizeof *x->gathered, x->gathered, x->comm->rank, err));
    for (int r = 0; r < ranks; r++) {
        struct ddp_sparse list;
        DDP_TRY(ddp_sparse_decode(x->gathered + x->offset[r], x->region_kept[r],
                                  ddp_oktopk_region(x, r), x->room, &list, err));
        ddp_oktopk_keep(x, &list);
    }
    return 0;
}

int ddp_oktopk_gather(struct ddp_oktopk *x, struct ddp_err *err)
{
    const int ranks = x->comm->size;
    const struct ddp_chunks even = {x->kept, ranks, NULL};

    collect(x);
    x->comm->device->fill(x->args->result, 0, x->args->n * sizeof(float));
    x->offset[0] = 0;
    for (int r = 0; r < ranks; r++)
        x->offset[r + 1] = x->offset[r] + x->region_kept[r];
    if (worth_balancing(x, &even))
        DDP_TRY(gather_balanced(x, &even, err));
    else
        DDP_TRY(gather_regions(x, err));
    ddp_oktopk_finish(x);
    return 0;
}
