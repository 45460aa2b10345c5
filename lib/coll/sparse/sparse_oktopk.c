/* Sparse all-reduce "oktopk": sums the top-k lists of all ranks and keeps about the k largest sums.
 * Source: S. Li, T. Hoefler, Near-optimal sparse allreduce for distributed deep learning (Ok-Topk),
 * PPoPP 2022.
 *
 * The index range is split into one *region* per rank, so that every rank has about k/P entries in
 * each region. The rank is the *owner* of its region. A call has three parts. *Split and reduce*:
 * each rank sends its entries of a region to the owner, which sums them. *Selection*: all ranks
 * agree on a threshold that about k sums reach (sparse_oktopk_select.c). *Balanced gather*: the
 * kept sums are sent to all ranks (sparse_oktopk_gather.c). If a sum is not kept, the entries of a
 * rank that contributed to it go to the residual of that rank. The result plus all residuals is
 * therefore the sum of the inputs, apart from rounding and the scale.
 *
 * The regions are estimated every 64 calls. Each rank finds the indices that split its own list
 * into P equal parts. Rank r computes the average of the r-th index of all ranks. Owner r adds its
 * own entries first, and then those of ranks r-1, r-2, ... Only the owner computes a sum, so all
 * ranks get the same bits.
 *
 * With two ranks, each rank sends its whole list to the other, and both compute the result alone.
 * This takes at most 8k bytes.
 *
 * Cost for k entries per rank on P >= 3 ranks: a rank sends at most 24k(P - 1)/P bytes (6k words)
 * of entries. The split and reduce takes at most 8k bytes and usually 8k(P - 1)/P. A gather of k
 * sums in equal chunks takes 8k(P - 1)/P bytes.
 *
 * The following numbers are sent in addition, each in at most ceil(log2 P) steps. The numbers of
 * entries take 4(P - 1) bytes (at most 2P log2 P from 17 ranks on). The notes (struct
 * ddp_oktopk_note), from which all ranks make the same decisions, take 12(P - 1) bytes. Every 64
 * calls, the regions take as many bytes as the numbers of entries, and 4(P - 1) bytes more. Every
 * 32 calls, or if the old threshold cannot be used, there is an exact selection. It takes at most
 * 512(P - 1) bytes in up to 8 rounds of log2 P steps. */
#include "coll/sparse/sparse_oktopk.h"

static size_t oktopk_layout(struct ddp_oktopk *x, int ranks, size_t n, size_t most, void *scratch)
{
    const size_t p = (size_t)ranks, word = sizeof(uint32_t);
    size_t used = 0;
    x->state = ddp_carve(scratch, &used, sizeof *x->state);
    x->region = ddp_carve(scratch, &used, (p + 1) * sizeof *x->region);
    x->split = ddp_carve(scratch, &used, (p + 1) * sizeof *x->split);
    x->region_kept = ddp_carve(scratch, &used, p * sizeof *x->region_kept);
    x->offset = ddp_carve(scratch, &used, (p + 1) * sizeof *x->offset);
    x->note = ddp_carve(scratch, &used, p * sizeof *x->note);
    x->counts_out = ddp_carve(scratch, &used, p * word);
    x->counts_in = ddp_carve(scratch, &used, p * word);
    x->digits = ddp_carve(scratch, &used, p * DDP_OKTOPK_DIGITS * word);
    x->digits_room = ddp_carve(scratch, &used, p * DDP_OKTOPK_DIGITS * word);
    x->above = ddp_carve(scratch, &used, p * word);
    x->ties = ddp_carve(scratch, &used, p * word);
    x->req = ddp_carve(scratch, &used, 2 * p * sizeof *x->req);
    x->out = ddp_carve(scratch, &used, 2 * most * word);
    x->in[0] = ddp_carve(scratch, &used, 4 * most * word);
    x->in[1] = scratch != NULL ? x->in[0] + 2 * most : NULL;
    x->room = ddp_carve(scratch, &used, 2 * most * word);
    x->present = ddp_carve(scratch, &used, (n / 32 + 1) * word);
    x->own.index = ddp_carve(scratch, &used, 2 * most * word);
    x->own.value = ddp_carve(scratch, &used, 2 * most * word);
    x->gathered = ddp_carve(scratch, &used, 4 * most * word);
    return used;
}

static int oktopk_supports(const struct ddp_comm *comm, size_t n, size_t most, struct ddp_err *err)
{
    (void)most;
    return ddp_sparse_needs_p2p(comm, "oktopk", n, err);
}

static size_t oktopk_scratch_bytes(const struct ddp_comm *comm, size_t n, size_t most)
{
    struct ddp_oktopk x;
    return oktopk_layout(&x, comm->size, n, most, NULL);
}

/* Estimates the regions. Region r begins at the average index below which a rank has r/P of its
 * entries. */
static int estimate_regions(struct ddp_oktopk *x, struct ddp_err *err)
{
    const int ranks = x->comm->size;
    const struct ddp_sparse *mine = &x->args->mine;
    const struct ddp_chunks even = {x->args->n, ranks, NULL};
    const struct ddp_chunks entries = {mine->count, ranks, NULL};
    uint64_t sum = 0;

    for (int r = 0; r < ranks; r++)
        x->counts_out[r] =
            (uint32_t)(mine->count != 0
                           ? mine->index[DDP_MIN(ddp_chunk_begin(&entries, r), mine->count - 1)]
                           : ddp_chunk_begin(&even, r));
    DDP_TRY(ddp_words_swap(x->comm, x->counts_out, x->counts_in, x->digits_room, x->req, err));
    for (int r = 0; r < ranks; r++)
        sum += x->counts_in[r];
    const uint32_t average = (uint32_t)(sum / (uint64_t)ranks);
    DDP_TRY(ddp_words_gather(x->comm, &average, 1, x->counts_in, x->digits_room, err));
    x->region[0] = 0;
    x->region[ranks] = x->args->n;
    for (int r = 1; r < ranks; r++)
        x->region[r] = x->counts_in[r];
    for (int r = 0; r < ranks; r++)
        if (x->region[r] > x->region[r + 1])
            return ddp_fail(err, DDP_EDATA, "rank %d reported an invalid region that begins at %zu",
                            x->comm->world_rank[r], x->region[r]);
    return 0;
}

/* Returns this rank's entries of region r. */
static struct ddp_sparse entries_of(const struct ddp_oktopk *x, int r)
{
    const struct ddp_sparse *mine = &x->args->mine;
    return (struct ddp_sparse){.index = mine->index + x->split[r],
                               .value = mine->value + x->split[r],
                               .count = x->split[r + 1] - x->split[r]};
}

static int split(struct ddp_oktopk *x, struct ddp_err *err)
{
    const int ranks = x->comm->size;
    const struct ddp_sparse *mine = &x->args->mine;

    x->split[0] = 0;
    for (int r = 0; r < ranks; r++) {
        x->split[r + 1] = ddp_sparse_lower_bound(mine->index, mine->count, x->region[r + 1]);
        x->counts_out[r] = (uint32_t)(x->split[r + 1] - x->split[r]);
    }
    DDP_TRY(ddp_words_swap(x->comm, x->counts_out, x->counts_in, x->digits_room, x->req, err));
    const size_t length = ddp_oktopk_region(x, x->comm->rank).length;
    for (int r = 0; r < ranks; r++)
        if (x->counts_in[r] > DDP_MIN(length, x->args->most))
            return ddp_fail(err, DDP_EDATA, "rank %d reported %u entries for %zu indices",
                            x->comm->world_rank[r], x->counts_in[r], length);
    return 0;
}

static void add_entries(struct ddp_oktopk *x, const struct ddp_sparse *list)
{
    const size_t begin = x->region[x->comm->rank];
    x->comm->device->grad->scatter_add(x->args->result, list);
    for (size_t i = 0; i < list->count; i++) {
        const size_t bit = list->index[i] - begin;
        x->present[bit / 32] |= UINT32_C(1) << bit % 32;
    }
}

static int post_entries(struct ddp_oktopk *x, int distance, struct ddp_err *err)
{
    const int src = ddp_rank_at(x->comm->rank, -distance, x->comm->size);
    const size_t length = ddp_oktopk_region(x, x->comm->rank).length;
    const size_t words = ddp_sparse_code_words(x->counts_in[src], length);
    if (words == 0)
        return 0;
    return ddp_comm_irecv(x->comm, src, DDP_COLL_TAG, x->in[distance % 2], words * sizeof *x->in[0],
                          &x->req[distance % 2], err);
}

/* Sends the entries of one region to their owner. All messages lie one after the other in x->out
 * and take at most 2 words per entry. */
static int send_entries(struct ddp_oktopk *x, int distance, struct ddp_err *err)
{
    const int dst = ddp_rank_at(x->comm->rank, distance, x->comm->size);
    const struct ddp_sparse list = entries_of(x, dst);
    const size_t words = ddp_sparse_code_words(list.count, ddp_oktopk_region(x, dst).length);
    uint32_t *at = x->out + x->sent_words;
    if (words == 0)
        return 0;
    ddp_sparse_encode(&list, ddp_oktopk_region(x, dst), at);
    x->sent_words += (uint32_t)words;
    return ddp_comm_isend(x->comm, dst, DDP_COLL_TAG, at, words * sizeof *at, &x->req[1 + distance],
                          err);
}

static int take_entries(struct ddp_oktopk *x, int distance, struct ddp_err *err)
{
    const int src = ddp_rank_at(x->comm->rank, -distance, x->comm->size);
    struct ddp_sparse list;
    if (x->counts_in[src] == 0)
        return 0;
    DDP_TRY(ddp_comm_wait(x->comm, &x->req[distance % 2], 1, err));
    DDP_TRY(ddp_sparse_decode(x->in[distance % 2], x->counts_in[src],
                              ddp_oktopk_region(x, x->comm->rank), x->room, &list, err));
    add_entries(x, &list);
    return 0;
}

/* Largest number of sends in transit. It limits the number of pending messages on many ranks. */
#define SEND_WINDOW 16

/* Sends this rank's entries to their owners, and sums the entries of this rank's region. Rank r
 * sends to r+1, r+2, ... and receives from r-1, r-2, ..., so that not all ranks send to the same
 * rank at once. While one message is added, the next one is in transit. req[0..1] are receives,
 * req[1 + distance] are sends.
 *
 * This cannot deadlock. Consider the waiting ranks with the smallest distance. All their partners
 * are at this distance or a larger one. If such a rank waits for an earlier send, the target has
 * already posted the receive. If no such rank waits for a send, the messages that they wait for
 * have been sent. */
static int reduce(struct ddp_oktopk *x, struct ddp_err *err)
{
    const int ranks = x->comm->size;
    const struct ddp_sparse_span own = ddp_oktopk_region(x, x->comm->rank);
    const struct ddp_sparse mine = entries_of(x, x->comm->rank);

    memset(x->req, 0, 2 * (size_t)ranks * sizeof *x->req);
    x->comm->device->fill(x->args->result + own.begin, 0, own.length * sizeof(float));
    memset(x->present, 0, (own.length / 32 + 1) * sizeof *x->present);
    DDP_TRY(post_entries(x, 1, err));
    add_entries(x, &mine);
    for (int distance = 1; distance < ranks; distance++) {
        if (distance > SEND_WINDOW)
            DDP_TRY(ddp_comm_wait(x->comm, &x->req[1 + distance - SEND_WINDOW], 1, err));
        DDP_TRY(send_entries(x, distance, err));
        if (distance + 1 < ranks)
            DDP_TRY(post_entries(x, distance + 1, err));
        DDP_TRY(take_entries(x, distance, err));
    }
    return ddp_comm_wait(x->comm, x->req + 2, ranks - 1, err);
}

/* Finishes the call on one or two ranks from the lists of all ranks. Every rank selects among the
 * same sums. x->own holds the sums, x->gathered is scratch of the selection, and x->out and x->room
 * hold the kept sums. */
static int run_alone(struct ddp_oktopk *x, const struct ddp_sparse *first,
                     const struct ddp_sparse *second)
{
    const struct ddp_grad_kernels *grad = x->comm->device->grad;
    struct ddp_sparse kept = {.index = x->room, .value = (float *)(void *)x->out};

    grad->merge(&x->own, first, second);
    struct ddp_select select = {.in = x->own.value, .n = x->own.count, .out = kept};
    grad->select_topk(&select, x->args->k, &x->state->hint, x->gathered);
    kept.count = select.out.count;
    for (size_t i = 0; i < kept.count; i++) {
        kept.index[i] = x->own.index[kept.index[i]];
        kept.value[i] *= x->args->scale;
    }
    x->comm->device->fill(x->args->result, 0, x->args->n * sizeof(float));
    ddp_oktopk_keep(x, &kept);
    ddp_oktopk_finish(x);
    return 0;
}

static int run_pair(struct ddp_oktopk *x, struct ddp_err *err)
{
    const int other = !x->comm->rank;
    const struct ddp_sparse_span span = {0, x->args->n};
    const struct ddp_sparse *mine = &x->args->mine;
    struct ddp_sparse theirs;

    x->counts_in[other] = (uint32_t)x->args->most;
    x->counts_out[other] = (uint32_t)mine->count;
    if (!x->args->fixed)
        DDP_TRY(ddp_words_swap(x->comm, x->counts_out, x->counts_in, x->digits_room, x->req, err));
    const size_t count = x->counts_in[other];
    if (count > DDP_MIN(x->args->most, x->args->n))
        return ddp_fail(err, DDP_EDATA, "rank %d reported %zu entries, but at most %zu are allowed",
                        x->comm->world_rank[other], count, x->args->most);
    ddp_sparse_encode(mine, span, x->out);
    const struct ddp_p2p_move move = {
        .dst = other,
        .out = x->out,
        .out_bytes = ddp_sparse_code_words(mine->count, span.length) * sizeof *x->out,
        .src = other,
        .in = x->in[0],
        .in_bytes = ddp_sparse_code_words(count, span.length) * sizeof *x->in[0],
    };
    DDP_TRY(ddp_p2p_exchange(x->comm, &move, err));
    DDP_TRY(ddp_sparse_decode(x->in[0], count, span, x->in[1], &theirs, err));
    return x->comm->rank == 0 ? run_alone(x, mine, &theirs) : run_alone(x, &theirs, mine);
}

static int oktopk_run(struct ddp_comm *comm, const struct ddp_sparse_args *args, void *scratch,
                      struct ddp_err *err)
{
    struct ddp_oktopk x = {.comm = comm, .args = args};
    static const struct ddp_sparse nothing = {.count = 0};

    oktopk_layout(&x, comm->size, args->n, args->most, scratch);
    if (comm->size == 1)
        return run_alone(&x, &args->mine, &nothing);
    if (comm->size == 2)
        return run_pair(&x, err);
    if (x.state->step % DDP_OKTOPK_REGION_STEPS == 0)
        DDP_TRY(estimate_regions(&x, err));
    DDP_TRY(split(&x, err));
    DDP_TRY(reduce(&x, err));
    DDP_TRY(ddp_oktopk_select(&x, err));
    DDP_TRY(ddp_oktopk_gather(&x, err));
    x.state->step++;
    return 0;
}

/* Largest number of rounds of the selection. A magnitude has 31 bits, and a round handles one digit
 * of 4 bits. */
#define ROUNDS 8

static void oktopk_cost(int ranks, size_t n, size_t k, struct ddp_coll_cost *cost, bool *exact)
{
    const double others = ranks - 1, entries = 24.0 * (double)k * others / ranks;
    const double logs = ddp_rounds(ranks);
    *exact = ranks <= 2;
    *cost = (struct ddp_coll_cost){
        .steps = others,
        .messages = k != 0 ? others : 0,
        .sent_bytes = 4.0 * (double)ddp_sparse_code_words(k, n) * others,
        .memory_bytes = ranks * (8.0 * (double)n + 6 * entries),
        .modelled = true,
    };
    if (ranks <= 2)
        return;
    cost->steps = 3 * others + (4 + ROUNDS) * logs;
    cost->messages = 3 * others + (2 + ROUNDS) * logs + 2 * ddp_words_swap_messages(ranks);
    cost->sent_bytes = entries + 2 * ddp_words_swap_bytes(ranks) +
                       others * (12 + 4 + ROUNDS * DDP_OKTOPK_DIGITS * sizeof(uint32_t));
}

extern const struct ddp_sparse_alg ddp_sparse_alg_oktopk;
const struct ddp_sparse_alg ddp_sparse_alg_oktopk = {
    .name = "oktopk",
    .summary = "each rank sums one region, the k largest sums are kept: at most 24k(P-1)/P bytes",
    .selects = true,
    .supports = oktopk_supports,
    .scratch_bytes = oktopk_scratch_bytes,
    .run = oktopk_run,
    .cost = oktopk_cost,
};
