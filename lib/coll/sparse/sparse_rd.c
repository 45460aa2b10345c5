/* Sparse all-reduce "rd": recursive doubling of sorted lists, as in SparCML.
 *
 * The algorithm works for any number of ranks P. The largest power of two up to P, pow2, is the
 * number of ranks that run the rounds. The first P - pow2 pairs of ranks are *folded* (pattern.h).
 * The even rank of a pair sends its list to the odd rank at the start, runs no round, and receives
 * the sum at the end. The ranks that run the rounds have the *new ranks* 0 to pow2 - 1. In round i
 * = 0, 1, ... the new ranks r and r xor 2^i exchange their *partial sums*. Both ranks add the two
 * partial sums by merging the index-sorted lists. The number of entries (count) is sent before each
 * list. If the shortest coding of a list is not shorter than n values, the partial sum becomes
 * dense and stays dense. Source: C. Renggli et al., SparCML: high-performance sparse communication
 * for machine learning, SC 2019, section 5.3.
 *
 * All ranks get the same bits. Before round i, all ranks of a block of 2^i new ranks hold equal
 * partial sums. Both partners add the same two partial sums, and the sum of two floats does not
 * depend on their order (every NaN is stored with the same bits). Both partners also get the same
 * indices for the sum, and decide equally whether it becomes dense.
 *
 * Cost for k entries per rank on P ranks: let w(c) <= n be the number of words for c entries. If P
 * is a power of two, there are at most 2 log2(P) steps, and in round i a rank sends at most 4 w(2^i
 * k) bytes, and 4 bytes for the count. If k/n is below 1/(32P), every list is coded with indices,
 * and a rank sends at most 8k(P - 1) bytes of lists. The even rank of a folded pair sends only its
 * list and a count. The odd rank also sends the whole sum. If all ranks have the same, fixed number
 * of entries, the first lists are sent without a count: the lists of the even ranks of folded pairs
 * and, if P is a power of two, the lists of round 0. */
#include "coll/coll_ring.h"
#include "coll/sparse/sparse_p2p.h"

/* A partial sum. A dense partial sum has all n elements, and args->result holds their values. */
struct partial {
    struct ddp_sparse list;
    bool dense;
};

/* The state of one call on this rank. */
struct rd {
    struct ddp_comm *comm;
    const struct ddp_sparse_args *args;
    struct ddp_fold fold;
    struct partial mine;
    struct ddp_sparse merged[2]; /* merges write to these two lists in turn */
    int turn;
    /* `room`: memory for the indices of a list that was coded without indices. `in`, `out` [words]:
     * the received and the sent message. */
    uint32_t *room, *in, *out;
    size_t capacity, words; /* capacity: largest number of entries of a list */
};

static size_t capacity_of(int ranks, size_t n, size_t most)
{
    return DDP_MIN((size_t)ranks * most, n);
}

static size_t rd_layout(struct rd *x, int ranks, size_t n, size_t most, void *scratch)
{
    const size_t capacity = capacity_of(ranks, n, most);
    const size_t words = DDP_MIN(ddp_sparse_code_bound(capacity, n), n);
    size_t used = 0;
    for (int i = 0; i < 2; i++) { /* merge needs memory for all entries of both lists */
        x->merged[i].index = ddp_carve(scratch, &used, 2 * capacity * sizeof(uint32_t));
        x->merged[i].value = ddp_carve(scratch, &used, 2 * capacity * sizeof(float));
    }
    x->room = ddp_carve(scratch, &used, capacity * sizeof *x->room);
    x->in = ddp_carve(scratch, &used, words * sizeof *x->in);
    x->out = ddp_carve(scratch, &used, words * sizeof *x->out);
    x->capacity = capacity;
    x->words = words;
    return used;
}

static size_t rd_scratch_bytes(const struct ddp_comm *comm, size_t n, size_t most)
{
    struct rd x;
    return rd_layout(&x, comm->size, n, most, NULL);
}

/* True if the coding of `count` entries is not shorter than n values. */
static bool is_dense(size_t count, size_t n)
{
    return count != 0 && ddp_sparse_code_words(count, n) >= n;
}

static void make_dense(struct rd *x)
{
    if (x->mine.dense || !is_dense(x->mine.list.count, x->args->n))
        return;
    x->comm->device->fill(x->args->result, 0, x->args->n * sizeof(float));
    x->comm->device->grad->scatter(x->args->result, &x->mine.list);
    x->mine.dense = true;
}

static size_t partial_count(const struct rd *x)
{
    return x->mine.dense ? x->args->n : x->mine.list.count;
}

static size_t partial_bytes(const struct rd *x, size_t count)
{
    return ddp_sparse_code_words(count, x->args->n) * sizeof(uint32_t);
}

/* Returns this rank's partial sum as the words of a message. */
static const void *partial_words(struct rd *x)
{
    if (x->mine.dense)
        return x->args->result;
    ddp_sparse_encode(&x->mine.list, (struct ddp_sparse_span){0, x->args->n}, x->out);
    return x->out;
}

/* True if a peer may send `count` entries. A list has at most `capacity` entries, and its coding is
 * shorter than n values. A dense partial sum has n entries. */
static bool is_possible(const struct rd *x, size_t count)
{
    if (is_dense(count, x->args->n))
        return count == x->args->n && x->words == count;
    return count <= x->capacity;
}

/* Sends the count of this rank's partial sum to dst, and receives the count of src. dst or src may
 * be -1, which stands for no rank. Returns DDP_EDATA if the received count is impossible. */
static int swap_counts(struct rd *x, int dst, int src, size_t *count, struct ddp_err *err)
{
    const uint32_t out = (uint32_t)partial_count(x);
    uint32_t in = 0;
    const struct ddp_p2p_move move = {
        .dst = dst,
        .out = &out,
        .out_bytes = dst >= 0 ? sizeof out : 0,
        .src = src,
        .in = &in,
        .in_bytes = src >= 0 ? sizeof in : 0,
    };
    DDP_TRY(ddp_p2p_exchange(x->comm, &move, err));
    if (!is_possible(x, in))
        return ddp_fail(err, DDP_EDATA,
                        "rank %d announced a list of %u entries, but a list has at most %zu",
                        x->comm->world_rank[src], in, x->capacity);
    *count = in;
    return 0;
}

/* Adds the n values in x->in to this rank's partial sum. */
static void add_dense(struct rd *x)
{
    const struct ddp_device *device = x->comm->device;
    float *result = x->args->result;

    if (!x->mine.dense) {
        ddp_coll_copy(x->comm, result, x->in, x->args->n * sizeof *result, false);
        device->grad->scatter_add(result, &x->mine.list);
        x->mine.dense = true;
        return;
    }
    const struct ddp_reduce reduce = {
        .dst = (void *[]){result},
        .dst_count = 1,
        .src = (const void *[]){result, x->in},
        .src_count = 2,
        .count = x->args->n,
        .dtype = DDP_F32,
        .op = DDP_SUM,
        .divisor = 1,
    };
    device->reduce(&reduce);
}

/* Adds the received partial sum, which has `count` entries in x->in, to this rank's partial sum. */
static int add_partial(struct rd *x, size_t count, struct ddp_err *err)
{
    struct ddp_sparse list;

    if (is_dense(count, x->args->n)) {
        add_dense(x);
        return 0;
    }
    DDP_TRY(ddp_sparse_decode(x->in, count, (struct ddp_sparse_span){0, x->args->n}, x->room, &list,
                              err));
    if (x->mine.dense) {
        x->comm->device->grad->scatter_add(x->args->result, &list);
        return 0;
    }
    struct ddp_sparse *merged = &x->merged[x->turn];
    x->comm->device->grad->merge(merged, &x->mine.list, &list);
    if (merged->count > x->capacity)
        return ddp_fail(err, DDP_EDATA,
                        "received %zu entries from other ranks, but at most %zu are allowed",
                        merged->count, x->capacity);
    x->mine.list = *merged;
    x->turn = !x->turn;
    make_dense(x);
    return 0;
}

/* Sends this rank's partial sum to dst, and receives the partial sum of src in x->in. A rank of -1
 * stands for no rank. If `known` is true, both partial sums have the same count, so the function
 * exchanges no counts. */
static int swap_partials(struct rd *x, int dst, int src, bool known, size_t *count,
                         struct ddp_err *err)
{
    *count = src >= 0 ? partial_count(x) : 0;
    if (!known)
        DDP_TRY(swap_counts(x, dst, src, count, err));
    const struct ddp_p2p_move move = {
        .dst = dst,
        .out = dst >= 0 ? partial_words(x) : NULL,
        .out_bytes = dst >= 0 ? partial_bytes(x, partial_count(x)) : 0,
        .src = src,
        .in = x->in,
        .in_bytes = partial_bytes(x, *count),
    };
    return ddp_p2p_exchange(x->comm, &move, err);
}

static int fold_in(struct rd *x, struct ddp_err *err)
{
    const int rank = x->comm->rank;
    size_t count;

    if (ddp_fold_rank(x->fold, rank) < 0)
        return swap_partials(x, rank + 1, -1, x->args->fixed, &count, err);
    if (!ddp_fold_holds(x->fold, rank))
        return 0;
    DDP_TRY(swap_partials(x, -1, rank - 1, x->args->fixed, &count, err));
    return add_partial(x, count, err);
}

static int double_up(struct rd *x, struct ddp_err *err)
{
    const int rank = ddp_fold_rank(x->fold, x->comm->rank);
    bool known = x->args->fixed && x->fold.extra == 0;

    for (int distance = 1; distance < x->fold.pow2; distance *= 2) {
        const int partner = ddp_fold_real(x->fold, rank ^ distance);
        size_t count;
        DDP_TRY(swap_partials(x, partner, partner, known, &count, err));
        DDP_TRY(add_partial(x, count, err));
        known = false;
    }
    return 0;
}

static int fold_out(struct rd *x, struct ddp_err *err)
{
    const int rank = x->comm->rank;
    size_t count;

    if (ddp_fold_holds(x->fold, rank))
        return swap_partials(x, rank - 1, -1, false, &count, err);
    if (ddp_fold_rank(x->fold, rank) >= 0)
        return 0;
    DDP_TRY(swap_partials(x, -1, rank + 1, false, &count, err));
    x->mine = (struct partial){.dense = false}; /* the received data is the complete sum */
    return add_partial(x, count, err);
}

static int rd_run(struct ddp_comm *comm, const struct ddp_sparse_args *args, void *scratch,
                  struct ddp_err *err)
{
    struct rd x = {
        .comm = comm, .args = args, .fold = ddp_fold_of(comm->size), .mine = {.list = args->mine}};

    rd_layout(&x, comm->size, args->n, args->most, scratch);
    make_dense(&x);
    DDP_TRY(fold_in(&x, err));
    if (ddp_fold_rank(x.fold, comm->rank) >= 0)
        DDP_TRY(double_up(&x, err));
    DDP_TRY(fold_out(&x, err));
    if (!x.mine.dense) {
        comm->device->fill(args->result, 0, args->n * sizeof *args->result);
        comm->device->grad->scatter(args->result, &x.mine.list);
    }
    return 0;
}

/* Returns the number of entries of new rank r's partial sum after `rounds` rounds, if all indices
 * are different. The entries come from a block of 2^rounds new ranks. */
static double block_count(struct ddp_fold fold, int r, int rounds, double n, double k)
{
    const int first = r >> rounds << rounds, last = first + (1 << rounds);
    const int folded = DDP_MAX(0, DDP_MIN(last, fold.extra) - first);
    return DDP_MIN(n, k * ((1 << rounds) + folded));
}

static double bytes_of(double count, double n)
{
    return 4 * DDP_MIN(n, (double)ddp_sparse_code_bound((size_t)count, (size_t)n));
}

static void rd_cost(int ranks, size_t n, size_t k, struct ddp_coll_cost *cost, bool *exact)
{
    const struct ddp_fold fold = ddp_fold_of(ranks);
    const int rounds = ddp_rounds(fold.pow2), folds = fold.extra != 0;
    double most_bytes = folds || rounds == 0 ? 0 : -4;

    /* New rank 0 sends the most bytes, because the partial sums of low ranks contain the most
     * folded lists. */
    for (int i = 0; i < rounds + folds; i++)
        most_bytes += 4 + bytes_of(block_count(fold, 0, i, (double)n, (double)k), (double)n);
    *cost = (struct ddp_coll_cost){
        .steps = 2.0 * (rounds + 2 * folds),
        .messages = 2.0 * (rounds + folds),
        .sent_bytes = most_bytes,
        .memory_bytes =
            ranks * ((DDP_COST_MOVE + DDP_COST_COPY + 3) * most_bytes + 4.0 * (double)n),
        .modelled = true,
    };
    *exact = false;
}

const struct ddp_sparse_alg ddp_sparse_alg_rd = {
    .name = "rd",
    .summary = "recursive doubling with sorted lists, or arrays if those are shorter: at most "
               "2 ceil(log2 P) + 2 steps",
    .needs = DDP_NEEDS_MESSAGES,
    .scratch_bytes = rd_scratch_bytes,
    .run = rd_run,
    .cost = rd_cost,
};
