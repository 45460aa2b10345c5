#include "base/nearest.h"

#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"

enum { LENGTH_MAX = 63 }; /* longest name that is compared */

/* Returns the optimal string alignment distance of two words. This is a variant of the
 * Damerau-Levenshtein distance that edits no letter twice. An insertion, deletion, replacement or
 * swap of neighbours costs 1. */
static int distance(const char *a, size_t na, const char *b, size_t nb)
{
    int d[3][LENGTH_MAX + 1]; /* rows i, i-1 and i-2 of the table; row i is d[i % 3] */
    for (size_t j = 0; j <= nb; j++)
        d[0][j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int *now = d[i % 3], *before = d[(i + 2) % 3], *earlier = d[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int best = before[j - 1] + (a[i - 1] != b[j - 1]);
            best = DDP_MIN(best, before[j] + 1);
            best = DDP_MIN(best, now[j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = DDP_MIN(best, earlier[j - 2] + 1);
            now[j] = best;
        }
    }
    return d[na % 3][nb];
}

const char *ddp_nearest(const char *text, ddp_candidate *candidate, const void *ctx)
{
    size_t n = strlen(text);
    if (n == 0 || n > LENGTH_MAX)
        return NULL;
    const char *best = NULL, *name;
    int best_distance = 0;
    for (int i = 0; (name = candidate(ctx, i)) != NULL; i++) {
        size_t length = strlen(name), longer = DDP_MAX(n, length);
        if (length > LENGTH_MAX)
            continue;
        int edits = distance(text, n, name, length);
        /* An abbreviation of at least two letters counts as one edit, no matter how long the name
         * is. */
        if (n >= 2 && strncmp(text, name, n) == 0)
            edits = DDP_MIN(edits, 1);
        /* The number of edits may be at most a third of the longer length. */
        if ((size_t)edits * 3 > longer)
            continue;
        if (!best || edits < best_distance) {
            best = name;
            best_distance = edits;
        }
    }
    return best;
}

/* Joins all candidates to "a, b, c". Text that does not fit is cut and ends in "...". */
static void join(ddp_candidate *candidate, const void *ctx, char *out, size_t out_bytes)
{
    const char *name;
    out[0] = '\0';
    for (int i = 0; (name = candidate(ctx, i)) != NULL; i++)
        ddp_text_append(out, out_bytes, "%s%s", i ? ", " : "", name);
}

int ddp_hint_nearest(struct ddp_err *err, const char *text, ddp_candidate *candidate,
                     const void *ctx, const char *advice)
{
    char legal[sizeof err->hint] = "legal: ";
    const char *near = ddp_nearest(text, candidate, ctx);
    if (near)
        return ddp_hint(err, "did you mean '%s'?", near);
    if (advice)
        return ddp_hint(err, "%s", advice);
    const size_t n = strlen(legal);
    join(candidate, ctx, legal + n, sizeof legal - n);
    return ddp_hint(err, "%s", legal);
}

int ddp_fail_unknown(struct ddp_err *err, const char *kind, const char *text, const char *where,
                     ddp_candidate *candidate, const void *ctx)
{
    ddp_fail(err, DDP_EUSAGE, "unknown %s '%.64s'%s", kind, text, where);
    return ddp_hint_nearest(err, text, candidate, ctx, NULL);
}
