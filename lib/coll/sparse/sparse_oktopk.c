/* Sparse all-reduce "oktopk" sums the top-k lists of all ranks and keeps about the k largest sums.
 * Source: S. Li, T. Hoefler, Near-optimal sparse allreduce for distributed deep learning (Ok-Topk),
 * PPoPP 2022.
 *
 * The index range is split into one *region* per rank, so that every rank has about k/P entries in
 * each region. Rank r is the *owner* of region r. A call has three parts. *Split and reduce*: each
 * rank sends its entries of a region to the owner, which sums them. *Selection*: all ranks agree on
 * a threshold that about k sums reach. *Balanced gather*: the kept sums are sent to all ranks. If a
 * sum is not kept, each rank adds its own entry with the index of this sum to its residual. The
 * result plus all residuals is therefore the sum of the inputs, apart from rounding and the scale.
 *
 * The regions are estimated every 64 calls. Each rank finds the indices that split its own list
 * into P equal parts. Rank r computes the average of the r-th of these indices over all ranks.
 * Region r begins at this average. Owner r adds its own entries first, and then those of ranks r-1,
 * r-2, ... Only the owner of a region computes its sums, so all ranks get the same bits.
 *
 * With two ranks, each rank sends its whole list to the other rank, and both ranks compute the
 * whole result. Each rank sends at most 8k bytes.
 *
 * Cost for k entries per rank on P >= 3 ranks: a rank sends at most 24k(P - 1)/P bytes of entries,
 * which are 6k(P - 1)/P words. Split and reduce usually takes 8k(P - 1)/P of these bytes, and at
 * most 8k. A gather of k sums in equal chunks takes 8k(P - 1)/P bytes.
 *
 * The following numbers are sent in addition. Each exchange takes at most ceil(log2 P) steps. The
 * numbers of entries take 4(P - 1) bytes (at most 2P log2 P from 17 ranks on). The notes (struct
 * oktopk_note), from which all ranks make the same decisions, take 12(P - 1) bytes. Every 64 calls,
 * the regions take as many bytes as the numbers of entries, and 4(P - 1) bytes more. Every 32
 * calls, or if the old threshold cannot be used, an exact selection takes at most 512(P - 1) bytes
 * in up to 8 exchanges. */
#include <string.h>

#include "coll/coll_ring.h"
#include "coll/sparse/sparse_p2p.h"

/* REGION_STEPS: number of calls that use the same regions. THRESHOLD_STEPS: largest number of calls
 * that use the same threshold (Ok-Topk, section 3). */
#define REGION_STEPS    64
#define THRESHOLD_STEPS 32

/* Number of bits of a magnitude that the exact selection handles per round. */
#define DIGIT_BITS 4
#define DIGITS     (1 << DIGIT_BITS)

/* State that is kept between calls. All members are 0 before the first call. */
struct oktopk_state {
    uint64_t step;
    uint32_t threshold, hint; /* threshold: a magnitude (device/sparse.h); hint: for select_topk */
};

/* The numbers that every rank sends to all others after it has summed its region. */
struct oktopk_note {
    /* `selected`: number of sums that reach the old threshold. `sums`: number of all sums.
     * `sent_words`: number of words sent so far in this call. */
    uint32_t selected, sums, sent_words;
};

/* The state of one call. Arrays with [P] have one element per rank or per region. The *sums* are
 * the summed values of this rank's region. `present` has one bit per index of the region, which is
 * set if there is a sum. args->result holds the value of the sum.
 *
 * A sum of magnitude m is kept if (m >> shift) > (threshold >> shift). Sums for which the two sides
 * are equal are *ties*. This rank keeps its first tie_quota ties, in index order. */
struct oktopk {
    struct ddp_comm *comm;
    const struct ddp_sparse_args *args;
    struct oktopk_state *state;
    size_t *region; /* [P + 1]: region r is [region[r], region[r + 1]) */
    size_t *split;  /* [P + 1]: this rank's entries of region r are split[r] .. split[r + 1] - 1 */
    size_t *region_kept;              /* [P]: number of sums of region r that are kept */
    size_t *offset;                   /* [P + 1]: positions of the kept sums of each rank */
    struct oktopk_note *note;         /* [P] */
    uint32_t *counts_out, *counts_in; /* [P] */
    uint32_t *digits, *digits_room;   /* [P * DIGITS]: sums per digit, and scratch */
    uint32_t *above, *ties;           /* [P]: numbers of sums above the threshold, and of ties */
    struct ddp_request *req;          /* [2P] */
    uint32_t *out, *in[2];            /* [2 most] words: messages; in[1] follows in[0] */
    uint32_t *room;                   /* [2 most]: the indices of one message */
    uint32_t *present;                /* [n / 32 + 1] */
    struct ddp_sparse own;            /* [2 most]: the kept sums of this rank's region */
    uint32_t *gathered;               /* [4 most] words: the kept sums of all ranks */
    uint32_t sent_words;
    uint32_t threshold;
    int shift;
    size_t tie_quota;
    size_t kept;   /* number of kept sums of all ranks */
    size_t cursor; /* number of entries of args->mine that are already kept or rejected */
};

static struct ddp_sparse_span oktopk_region(const struct oktopk *x, int r)
{
    return (struct ddp_sparse_span){x->region[r], x->region[r + 1] - x->region[r]};
}

/* Iterates over the sums of this rank's region in index order. oktopk_iter_next sets *i to the next
 * index and returns true, or returns false at the end. */
struct oktopk_iter {
    const uint32_t *word;
    size_t base, words;
    uint32_t bits;
};
static void oktopk_iter_init(struct oktopk_iter *w, const struct oktopk *x)
{
    const size_t begin = x->region[x->comm->rank], end = x->region[x->comm->rank + 1];
    w->word = x->present;
    w->base = begin;
    w->words = (end - begin) / 32 + ((end - begin) % 32 != 0);
    w->bits = w->words != 0 ? *w->word : 0;
}
static bool oktopk_iter_next(struct oktopk_iter *w, size_t *i)
{
    while (w->bits == 0) {
        if (w->words <= 1)
            return false;
        w->words--;
        w->base += 32;
        w->bits = *++w->word;
    }
    *i = w->base + (size_t)__builtin_ctz(w->bits);
    w->bits &= w->bits - 1;
    return true;
}

static uint32_t magnitude(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & INT32_MAX;
}

/* True if a rank that has sent `sent` words may send `words` more. A rank may send 6k(P - 1)/P
 * words in total. */
static bool oktopk_within(const struct oktopk *x, uint64_t sent, uint64_t words)
{
    const uint64_t ranks = (uint64_t)x->comm->size;
    return ranks * (sent + words) <= 6 * (uint64_t)x->args->k * (ranks - 1);
}

static size_t oktopk_layout(struct oktopk *x, int ranks, size_t n, size_t most, void *scratch)
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
    x->digits = ddp_carve(scratch, &used, p * DIGITS * word);
    x->digits_room = ddp_carve(scratch, &used, p * DIGITS * word);
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

static size_t oktopk_scratch_bytes(const struct ddp_comm *comm, size_t n, size_t most)
{
    struct oktopk x;
    return oktopk_layout(&x, comm->size, n, most, NULL);
}

/* Estimates the regions. For each r, every rank finds the index below which r/P of its entries lie.
 * Region r > 0 begins at the average of these indices over all ranks. */
static int estimate_regions(struct oktopk *x, struct ddp_err *err)
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
static struct ddp_sparse entries_of(const struct oktopk *x, int r)
{
    const struct ddp_sparse *mine = &x->args->mine;
    return (struct ddp_sparse){.index = mine->index + x->split[r],
                               .value = mine->value + x->split[r],
                               .count = x->split[r + 1] - x->split[r]};
}

static int split(struct oktopk *x, struct ddp_err *err)
{
    const int ranks = x->comm->size;
    const struct ddp_sparse *mine = &x->args->mine;

    x->split[0] = 0;
    for (int r = 0; r < ranks; r++) {
        x->split[r + 1] = ddp_sparse_lower_bound(mine->index, mine->count, x->region[r + 1]);
        x->counts_out[r] = (uint32_t)(x->split[r + 1] - x->split[r]);
    }
    DDP_TRY(ddp_words_swap(x->comm, x->counts_out, x->counts_in, x->digits_room, x->req, err));
    const size_t length = oktopk_region(x, x->comm->rank).length;
    for (int r = 0; r < ranks; r++)
        if (x->counts_in[r] > DDP_MIN(length, x->args->most))
            return ddp_fail(err, DDP_EDATA, "rank %d reported %u entries for %zu indices",
                            x->comm->world_rank[r], x->counts_in[r], length);
    return 0;
}

static void add_entries(struct oktopk *x, const struct ddp_sparse *list)
{
    const size_t begin = x->region[x->comm->rank];
    x->comm->device->grad->scatter_add(x->args->result, list);
    for (size_t i = 0; i < list->count; i++) {
        const size_t bit = list->index[i] - begin;
        x->present[bit / 32] |= UINT32_C(1) << bit % 32;
    }
}

static int post_entries(struct oktopk *x, int distance, struct ddp_err *err)
{
    const int src = ddp_rank_at(x->comm->rank, -distance, x->comm->size);
    const size_t length = oktopk_region(x, x->comm->rank).length;
    const size_t words = ddp_sparse_code_words(x->counts_in[src], length);
    if (words == 0)
        return 0;
    return ddp_comm_irecv(x->comm, src, DDP_COLL_TAG, x->in[distance % 2], words * sizeof *x->in[0],
                          &x->req[distance % 2], err);
}

/* Sends the entries of one region to the owner of the region. All messages lie one after the other
 * in x->out and take at most 2 words per entry. */
static int send_entries(struct oktopk *x, int distance, struct ddp_err *err)
{
    const int dst = ddp_rank_at(x->comm->rank, distance, x->comm->size);
    const struct ddp_sparse list = entries_of(x, dst);
    const size_t words = ddp_sparse_code_words(list.count, oktopk_region(x, dst).length);
    uint32_t *at = x->out + x->sent_words;
    if (words == 0)
        return 0;
    ddp_sparse_encode(&list, oktopk_region(x, dst), at);
    x->sent_words += (uint32_t)words;
    return ddp_comm_isend(x->comm, dst, DDP_COLL_TAG, at, words * sizeof *at, &x->req[1 + distance],
                          err);
}

static int take_entries(struct oktopk *x, int distance, struct ddp_err *err)
{
    const int src = ddp_rank_at(x->comm->rank, -distance, x->comm->size);
    struct ddp_sparse list;
    if (x->counts_in[src] == 0)
        return 0;
    DDP_TRY(ddp_comm_wait(x->comm, &x->req[distance % 2], 1, err));
    DDP_TRY(ddp_sparse_decode(x->in[distance % 2], x->counts_in[src],
                              oktopk_region(x, x->comm->rank), x->room, &list, err));
    add_entries(x, &list);
    return 0;
}

/* Largest number of sends of a rank that are in transit at the same time. */
#define SEND_WINDOW 16

/* Sends this rank's entries to their owners, and sums the entries of this rank's region. Rank r
 * sends to r+1, r+2, ... and receives from r-1, r-2, ..., so that not all ranks send to the same
 * rank at once. While one message is added, the next one is in transit. req[0..1] are receives,
 * req[1 + distance] are sends.
 *
 * This order cannot deadlock. Consider the ranks that wait at the smallest distance. All other
 * ranks are at this distance or at a larger one. If one of the considered ranks waits for an
 * earlier send, the target of the send has already posted the receive, so this wait ends.
 * Afterwards each of these ranks sends its message of this distance before it waits for a message,
 * so the messages that these ranks wait for arrive. */
static int reduce(struct oktopk *x, struct ddp_err *err)
{
    const int ranks = x->comm->size;
    const struct ddp_sparse_span own = oktopk_region(x, x->comm->rank);
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

/* The functions from here to oktopk_select select the sums that are kept. If there are at most k
 * sums, all are kept. Otherwise every 32nd call keeps exactly the k sums of largest magnitude of
 * all regions. Among ties, it keeps the lowest indices. Other calls keep all sums that reach the
 * previous threshold. If these sums are too few or too many, the call keeps exactly the k largest
 * sums instead. The decision depends only on the notes, so all ranks decide the same. */

static size_t count_sums(const struct oktopk *x, uint32_t threshold, uint32_t *selected)
{
    struct oktopk_iter iter;
    size_t i, sums = 0;

    *selected = 0;
    oktopk_iter_init(&iter, x);
    while (oktopk_iter_next(&iter, &i)) {
        sums++;
        *selected += magnitude(x->args->result[i]) >= threshold;
    }
    return sums;
}

static int exchange_notes(struct oktopk *x, struct ddp_err *err)
{
    struct oktopk_note note = {.sent_words = x->sent_words};
    _Static_assert(sizeof note == 3 * sizeof(uint32_t), "a note is words");
    uint32_t mine[3], *all = x->digits;

    note.sums = (uint32_t)count_sums(x, x->state->threshold, &note.selected);
    memcpy(mine, &note, sizeof mine);
    DDP_TRY(ddp_words_gather(x->comm, mine, 3, all, x->digits_room, err));
    memcpy(x->note, all, (size_t)x->comm->size * sizeof note);
    return 0;
}

static uint64_t all_sums(const struct oktopk *x)
{
    uint64_t sums = 0;
    for (int r = 0; r < x->comm->size; r++)
        sums += x->note[r].sums;
    return sums;
}

/* True if the old threshold can be used. It must select at least 2/3 of min(k, number of sums) and
 * at most 2k sums. In addition, no rank may exceed its bound of sent words in a gather without
 * balancing, even with the longest coding. */
static bool old_threshold_does(const struct oktopk *x)
{
    const int ranks = x->comm->size;
    uint64_t selected = 0;

    for (int r = 0; r < ranks; r++)
        selected += x->note[r].selected;
    if (selected > 2 * x->args->k || 3 * selected < 2 * DDP_MIN(all_sums(x), x->args->k))
        return false;
    for (int r = 0; r < ranks; r++) {
        const uint64_t others = selected - x->note[ddp_rank_at(r, 1, ranks)].selected;
        if (!oktopk_within(x, x->note[r].sent_words, 2 * others))
            return false;
    }
    return true;
}

/* Counts the sums whose higher digits equal `prefix`, separately for each value of the digit at
 * `shift`. */
static void count_digits(const struct oktopk *x, uint32_t prefix, int shift, uint32_t count[DIGITS])
{
    struct oktopk_iter iter;
    size_t i;

    memset(count, 0, DIGITS * sizeof *count);
    oktopk_iter_init(&iter, x);
    while (oktopk_iter_next(&iter, &i)) {
        const uint64_t digits = magnitude(x->args->result[i]) >> shift;
        if (digits >> DIGIT_BITS == prefix)
            count[digits % DIGITS]++;
    }
}

/* Returns the digit of the k-th largest sum, or -1 if there are fewer than k sums. Uses the counts
 * of all ranks in x->digits. Adds the number of sums with larger digits to *above, and each rank's
 * part of this number to x->above. Sets *tied to the number of sums with the returned digit. */
static int find_digit(struct oktopk *x, uint64_t k, uint64_t *above, uint64_t *tied)
{
    for (int digit = DIGITS - 1; digit >= 0; digit--) {
        *tied = 0;
        for (int r = 0; r < x->comm->size; r++)
            *tied += x->digits[r * DIGITS + digit];
        if (*above + *tied >= k)
            return digit;
        *above += *tied;
        for (int r = 0; r < x->comm->size; r++)
            x->above[r] += x->digits[r * DIGITS + digit];
    }
    return -1;
}

/* Keeps `quota` ties with the lowest indices. Regions are in index order, so the ties of lower
 * ranks are kept first. */
static void distribute_ties(struct oktopk *x, uint64_t quota)
{
    for (int r = 0; r < x->comm->size; r++) {
        const uint64_t kept_ties = DDP_MIN(x->ties[r], quota);
        quota -= kept_ties;
        x->region_kept[r] = x->above[r] + kept_ties;
        if (r == x->comm->rank)
            x->tie_quota = kept_ties;
    }
}

/* Finds the threshold for exactly k sums by a radix selection over all ranks, most significant
 * digit first. The selection ends early if the digits found so far separate exactly k sums from the
 * rest. All ranks compute the same result from the same counts. */
static int find_threshold(struct oktopk *x, struct ddp_err *err)
{
    const int ranks = x->comm->size;
    const uint64_t k = x->args->k;
    uint64_t above = 0, tied = 0;
    uint32_t prefix = 0, mine[DIGITS];

    memset(x->above, 0, (size_t)ranks * sizeof *x->above);
    x->shift = 32;
    do {
        x->shift -= DIGIT_BITS;
        count_digits(x, prefix, x->shift, mine);
        DDP_TRY(ddp_words_gather(x->comm, mine, DIGITS, x->digits, x->digits_room, err));
        const int digit = find_digit(x, k, &above, &tied);
        if (digit < 0)
            return ddp_fail(err, DDP_EDATA,
                            "the ranks' sums do not match the numbers that they reported");
        prefix = prefix << DIGIT_BITS | (uint32_t)digit;
        for (int r = 0; r < ranks; r++)
            x->ties[r] = x->digits[r * DIGITS + digit];
    } while (x->shift > 0 && above + tied != k);
    x->threshold = prefix << x->shift;
    distribute_ties(x, k - above);
    return 0;
}

/* Keeps every sum with a magnitude >= threshold. */
static void keep_from(struct oktopk *x, uint32_t threshold)
{
    x->threshold = threshold;
    x->shift = 0;
    x->tie_quota = SIZE_MAX;
    for (int r = 0; r < x->comm->size; r++)
        x->region_kept[r] = threshold == 0 ? x->note[r].sums : x->note[r].selected;
}

/* Selects the sums that are kept. Sets region_kept, threshold, shift and kept, which are equal on
 * all ranks, and this rank's tie_quota. Collective. */
static int oktopk_select(struct oktopk *x, struct ddp_err *err)
{
    const bool due = x->state->step % THRESHOLD_STEPS == 0;

    DDP_TRY(exchange_notes(x, err));
    if (all_sums(x) <= x->args->k)
        keep_from(x, 0);
    else if (!due && old_threshold_does(x))
        keep_from(x, x->state->threshold);
    else
        DDP_TRY(find_threshold(x, err));
    x->state->threshold = x->threshold;
    x->kept = 0;
    for (int r = 0; r < x->comm->size; r++)
        x->kept += x->region_kept[r];
    return 0;
}

/* The functions from here to oktopk_gather send the kept sums to all ranks, and add the rejected
 * entries to the residual.
 *
 * Normally the kept sums of each owner are one chunk of a ring that copies (coll_ring.h), coded for
 * the owner's region (sparse_code.h).
 *
 * If an owner has more than twice the average number of kept sums, the sums are *balanced* first,
 * so that no step of the ring must wait for a long chunk. The kept sums in index order are cut into
 * equal chunks, one per rank, and the owners send each sum to the rank of its chunk. Balanced sums
 * are sent as pairs of an index and a value, because the index range of a chunk is not known.
 * Balancing is skipped if a rank would exceed the bound of words that it may send (oktopk_within).
 * The notes tell all ranks how many words each rank has sent, so all ranks make the same
 * decision. */

/* A kept sum in a balanced message. */
struct pair {
    uint32_t index;
    float value;
};

static void collect(struct oktopk *x)
{
    const uint32_t digits = x->threshold >> x->shift;
    struct oktopk_iter iter;
    size_t i, count = 0, quota = x->tie_quota;

    oktopk_iter_init(&iter, x);
    while (oktopk_iter_next(&iter, &i)) {
        const uint32_t these = magnitude(x->args->result[i]) >> x->shift;
        if (these < digits || (these == digits && quota == 0))
            continue;
        quota -= these == digits;
        x->own.index[count] = (uint32_t)i;
        x->own.value[count++] = x->args->result[i] * x->args->scale;
    }
    x->own.count = count;
}

/* oktopk_keep stores kept sums in the result. Successive calls must pass sums in index order.
 * If an entry of args->mine does not belong to a kept sum, it is *rejected*, which means that it is
 * added to the residual. After the last call, oktopk_finish rejects the remaining entries. */
static void oktopk_keep(struct oktopk *x, const struct ddp_sparse *list)
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

static void oktopk_finish(struct oktopk *x)
{
    const struct ddp_sparse *mine = &x->args->mine;
    for (; x->cursor < mine->count; x->cursor++)
        if (x->args->rejected != NULL)
            x->args->rejected[mine->index[x->cursor]] += mine->value[x->cursor];
}

/* Returns the range of kept sums that are both in owner r's region and in balanced chunk q. */
static struct ddp_range overlap(const struct oktopk *x, const struct ddp_chunks *even, int r, int q)
{
    const struct ddp_range common = {
        .begin = DDP_MAX(x->offset[r], ddp_chunk_begin(even, q)),
        .end = DDP_MIN(x->offset[r + 1], ddp_chunk_begin(even, q + 1)),
    };
    return common.begin < common.end ? common : (struct ddp_range){0, 0};
}

/* True if the sums should be balanced. x->offset[r] is the position of owner r's first sum among
 * all kept sums. */
static bool worth_balancing(const struct oktopk *x, const struct ddp_chunks *even)
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
        if (!oktopk_within(x, x->note[r].sent_words, 2 * (moves + others)))
            return false;
    }
    return true;
}

/* Sends this rank's kept sums to the ranks of their balanced chunks, and receives the sums of this
 * rank's chunk. */
static int move_to_places(struct oktopk *x, const struct ddp_chunks *even, const struct pair *own,
                          struct pair *all, struct ddp_err *err)
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

static int gather_balanced(struct oktopk *x, const struct ddp_chunks *even, struct ddp_err *err)
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
        return ddp_fail(err, DDP_EDATA, "the kept sums of all ranks are not in index order");
    oktopk_keep(x, &list);
    return 0;
}

static int gather_regions(struct oktopk *x, struct ddp_err *err)
{
    const int ranks = x->comm->size;

    x->offset[0] = 0;
    for (int r = 0; r < ranks; r++) {
        const size_t length = oktopk_region(x, r).length;
        if (x->region_kept[r] > length)
            return ddp_fail(err, DDP_EDATA, "rank %d reported %zu sums for %zu indices",
                            x->comm->world_rank[r], x->region_kept[r], length);
        x->offset[r + 1] = x->offset[r] + ddp_sparse_code_words(x->region_kept[r], length);
    }
    const struct ddp_chunks chunks = {x->offset[ranks], ranks, x->offset};
    ddp_sparse_encode(&x->own, oktopk_region(x, x->comm->rank),
                      x->gathered + x->offset[x->comm->rank]);
    DDP_TRY(ddp_ring_copy(x->comm, &chunks, sizeof *x->gathered, x->gathered, x->comm->rank, err));
    for (int r = 0; r < ranks; r++) {
        struct ddp_sparse list;
        DDP_TRY(ddp_sparse_decode(x->gathered + x->offset[r], x->region_kept[r],
                                  oktopk_region(x, r), x->room, &list, err));
        oktopk_keep(x, &list);
    }
    return 0;
}

/* Gathers the kept sums of all ranks into the result, and adds this rank's rejected entries to its
 * residual. Collective. */
static int oktopk_gather(struct oktopk *x, struct ddp_err *err)
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
    oktopk_finish(x);
    return 0;
}

/* Finishes a call on one or two ranks, after each rank has got the lists of all ranks. Every rank
 * selects from the same sums. x->own holds the sums, and x->gathered is scratch of the selection.
 * x->room holds the indices of the kept sums, and x->out holds their values. */
static int run_alone(struct oktopk *x, const struct ddp_sparse *first,
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
    oktopk_keep(x, &kept);
    oktopk_finish(x);
    return 0;
}

static int run_pair(struct oktopk *x, struct ddp_err *err)
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
    struct oktopk x = {.comm = comm, .args = args};
    static const struct ddp_sparse nothing = {.count = 0};

    oktopk_layout(&x, comm->size, args->n, args->most, scratch);
    if (comm->size == 1)
        return run_alone(&x, &args->mine, &nothing);
    if (comm->size == 2)
        return run_pair(&x, err);
    if (x.state->step % REGION_STEPS == 0)
        DDP_TRY(estimate_regions(&x, err));
    DDP_TRY(split(&x, err));
    DDP_TRY(reduce(&x, err));
    DDP_TRY(oktopk_select(&x, err));
    DDP_TRY(oktopk_gather(&x, err));
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
                       others * (12 + 4 + ROUNDS * DIGITS * sizeof(uint32_t));
}

const struct ddp_sparse_alg ddp_sparse_alg_oktopk = {
    .name = "oktopk",
    .summary = "each rank sums one region, about k sums are kept: at most 24k(P-1)/P bytes",
    .selects = true,
    .on_device = true,
    .needs = DDP_NEEDS_MESSAGES,
    .scratch_bytes = oktopk_scratch_bytes,
    .run = oktopk_run,
    .cost = oktopk_cost,
};
