/* Chunks, trees, folding and halving for the algorithms that send messages. See pattern.h. */
#include "coll/pattern.h"

#include "base/mem.h"

size_t ddp_chunk_begin(const struct ddp_chunks *p, int i)
{
    if (p->offset != NULL)
        return p->offset[i];
    const size_t quotient = p->count / (size_t)p->n;
    const size_t longer = p->count % (size_t)p->n;
    return quotient * (size_t)i + DDP_MIN((size_t)i, longer);
}

size_t ddp_chunk_count(const struct ddp_chunks *p, int i)
{
    return ddp_chunk_begin(p, i + 1) - ddp_chunk_begin(p, i);
}

int ddp_rounds(int n)
{
    int k = 0;
    while (k < 31 && ((long)1 << k) < n)
        k++;
    return k;
}

static int lowest_bit(int v)
{
    return v & -v;
}

int ddp_binomial_parent(int v)
{
    return v == 0 ? -1 : v - lowest_bit(v);
}

int ddp_binomial_span(int v, int n)
{
    return v == 0 ? n : DDP_MIN(lowest_bit(v), n - v);
}

/* v + 2^k is a child of v if 2^k < span. */
int ddp_binomial_children(int v, int n)
{
    return ddp_rounds(ddp_binomial_span(v, n));
}

struct ddp_wrap ddp_wrap_of(int v, int root, int n)
{
    const int span = ddp_binomial_span(v, n);
    const int before = DDP_MIN(span, n - ddp_real_rank(v, root, n));
    return (struct ddp_wrap){.before = before, .after = span - before};
}

int ddp_binary_children(int v, int n)
{
    const int first = 2 * v + 1;
    return first >= n ? 0 : DDP_MIN(2, n - first);
}

int ddp_binary_depth(int n)
{
    int depth = 0;
    for (int v = n - 1; v > 0; v = ddp_binary_parent(v))
        depth++;
    return depth;
}

struct ddp_fold ddp_fold_of(int n)
{
    int pow2 = 1;
    while (pow2 <= n / 2)
        pow2 *= 2;
    return (struct ddp_fold){.pow2 = pow2, .extra = n - pow2};
}

int ddp_fold_rank(struct ddp_fold fold, int rank)
{
    if (rank >= 2 * fold.extra)
        return rank - fold.extra;
    return rank % 2 == 0 ? -1 : rank / 2;
}

int ddp_fold_real(struct ddp_fold fold, int new_rank)
{
    return new_rank < fold.extra ? 2 * new_rank + 1 : new_rank + fold.extra;
}

bool ddp_fold_holds(struct ddp_fold fold, int rank)
{
    return rank < 2 * fold.extra && rank % 2 == 1;
}

void ddp_halve(struct ddp_range whole, int new_rank, int level, struct ddp_range *keep,
               struct ddp_range *give)
{
    const size_t middle = whole.begin + (whole.end - whole.begin) / 2;
    const struct ddp_range first = {whole.begin, middle}, second = {middle, whole.end};
    const bool upper = (new_rank >> level) & 1;
    *keep = upper ? second : first;
    *give = upper ? first : second;
}
