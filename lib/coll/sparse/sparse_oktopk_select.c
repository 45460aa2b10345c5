/* Selects the sums that are kept. If there are at most k sums, all are kept. Otherwise every 32nd
 * call keeps exactly the k sums of largest magnitude of all regions. Among ties, it keeps the
 * lowest indices. Other calls keep all sums that reach the previous threshold. If these are too few
 * or too many, such a call also selects exactly k sums. The decision depends only on the notes, so
 * all ranks make the same one. */
#include "coll/sparse/sparse_oktopk.h"

static size_t count_sums(const struct ddp_oktopk *x, uint32_t threshold, uint32_t *selected)
{
    struct ddp_oktopk_iter iter;
    size_t i, sums = 0;

    *selected = 0;
    ddp_oktopk_iter_init(&iter, x);
    while (ddp_oktopk_iter_next(&iter, &i)) {
        sums++;
        *selected += ddp_magnitude(x->args->result[i]) >= threshold;
    }
    return sums;
}

static int exchange_notes(struct ddp_oktopk *x, struct ddp_err *err)
{
    struct ddp_oktopk_note note = {.sent_words = x->sent_words};
    _Static_assert(sizeof note == 3 * sizeof(uint32_t), "a note is words");
    uint32_t mine[3], *all = x->digits;

    note.sums = (uint32_t)count_sums(x, x->state->threshold, &note.selected);
    memcpy(mine, &note, sizeof mine);
    DDP_TRY(ddp_words_gather(x->comm, mine, 3, all, x->digits_room, err));
    memcpy(x->note, all, (size_t)x->comm->size * sizeof note);
    return 0;
}

static uint64_t all_sums(const struct ddp_oktopk *x)
{
    uint64_t sums = 0;
    for (int r = 0; r < x->comm->size; r++)
        sums += x->note[r].sums;
    return sums;
}

/* True if the old threshold can be used. It must select between 2/3 k and 2k sums. In addition, no
 * rank may exceed its bound of sent words in an unbalanced gather, even with the longest coding. */
static bool old_threshold_does(const struct ddp_oktopk *x)
{
    const int ranks = x->comm->size;
    uint64_t selected = 0;

    for (int r = 0; r < ranks; r++)
        selected += x->note[r].selected;
    if (selected > 2 * x->args->k || 3 * selected < 2 * DDP_MIN(all_sums(x), x->args->k))
        return false;
    for (int r = 0; r < ranks; r++) {
        const uint64_t others = selected - x->note[ddp_rank_at(r, 1, ranks)].selected;
        if (!ddp_oktopk_within(x, x->note[r].sent_words, 2 * others))
            return false;
    }
    return true;
}

/* Counts the sums whose higher digits equal `prefix`, separately for each value of the digit at
 * `shift`. */
static void count_digits(const struct ddp_oktopk *x, uint32_t prefix, int shift,
                         uint32_t count[DDP_OKTOPK_DIGITS])
{
    struct ddp_oktopk_iter iter;
    size_t i;

    memset(count, 0, DDP_OKTOPK_DIGITS * sizeof *count);
    ddp_oktopk_iter_init(&iter, x);
    while (ddp_oktopk_iter_next(&iter, &i)) {
        const uint64_t digits = ddp_magnitude(x->args->result[i]) >> shift;
        if (digits >> DDP_OKTOPK_DIGIT_BITS == prefix)
            count[digits % DDP_OKTOPK_DIGITS]++;
    }
}

/* Returns the digit of the k-th largest sum, or -1 if there are fewer than k sums. Uses the counts
 * of all ranks in x->digits. Adds the number of sums with larger digits to *above. Sets *tied to
 * the number of sums with the returned digit. */
static int find_digit(struct ddp_oktopk *x, uint64_t k, uint64_t *above, uint64_t *tied)
{
    for (int digit = DDP_OKTOPK_DIGITS - 1; digit >= 0; digit--) {
        *tied = 0;
        for (int r = 0; r < x->comm->size; r++)
            *tied += x->digits[r * DDP_OKTOPK_DIGITS + digit];
        if (*above + *tied >= k)
            return digit;
        *above += *tied;
        for (int r = 0; r < x->comm->size; r++)
            x->above[r] += x->digits[r * DDP_OKTOPK_DIGITS + digit];
    }
    return -1;
}

/* Keeps `quota` ties with the lowest indices. Regions are in index order, so the ties of lower
 * ranks are kept first. */
static void distribute_ties(struct ddp_oktopk *x, uint64_t quota)
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
 * digit first. It ends early if a digit separates exactly k sums. All ranks compute the same result
 * from the same counts. */
static int find_threshold(struct ddp_oktopk *x, struct ddp_err *err)
{
    const int ranks = x->comm->size;
    const uint64_t k = x->args->k;
    uint64_t above = 0, tied = 0;
    uint32_t prefix = 0, mine[DDP_OKTOPK_DIGITS];

    memset(x->above, 0, (size_t)ranks * sizeof *x->above);
    x->shift = 32;
    do {
        x->shift -= DDP_OKTOPK_DIGIT_BITS;
        count_digits(x, prefix, x->shift, mine);
        DDP_TRY(ddp_words_gather(x->comm, mine, DDP_OKTOPK_DIGITS, x->digits, x->digits_room, err));
        const int digit = find_digit(x, k, &above, &tied);
        if (digit < 0)
            return ddp_fail(err, DDP_EDATA,
                            "the ranks' sums do not match the numbers that they reported");
        prefix = prefix << DDP_OKTOPK_DIGIT_BITS | (uint32_t)digit;
        for (int r = 0; r < ranks; r++)
            x->ties[r] = x->digits[r * DDP_OKTOPK_DIGITS + digit];
    } while (x->shift > 0 && above + tied != k);
    x->threshold = prefix << x->shift;
    distribute_ties(x, k - above);
    return 0;
}

/* Keeps every sum with a magnitude >= threshold. */
static void keep_from(struct ddp_oktopk *x, uint32_t threshold)
{
    x->threshold = threshold;
    x->shift = 0;
    x->tie_quota = SIZE_MAX;
    for (int r = 0; r < x->comm->size; r++)
        x->region_kept[r] = threshold == 0 ? x->note[r].sums : x->note[r].selected;
}

int ddp_oktopk_select(struct ddp_oktopk *x, struct ddp_err *err)
{
    const bool due = x->state->step % DDP_OKTOPK_THRESHOLD_STEPS == 0;

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
