/* Suggestions: the nearest legal word. */
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"

#define WORD_MAX 48

/* Optimal string alignment distance (Damerau-Levenshtein without repeated edits of one place). */
static int distance(const char *a, const char *b)
{
    int d[WORD_MAX + 1][WORD_MAX + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > WORD_MAX || m > WORD_MAX)
        return WORD_MAX;
    for (int i = 0; i <= n; i++)
        d[i][0] = i;
    for (int j = 0; j <= m; j++)
        d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        for (int j = 1; j <= m; j++) {
            int cost = a[i - 1] != b[j - 1];
            int best = DDP_MIN(d[i - 1][j] + 1, d[i][j - 1] + 1);
            best = DDP_MIN(best, d[i - 1][j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = DDP_MIN(best, d[i - 2][j - 2] + 1);
            d[i][j] = best;
        }
    }
    return d[n][m];
}

const char *ddp_nearest(const char *text, const char *(*candidate)(const void *ctx, int i),
                        const void *ctx)
{
    const char *best = NULL;
    size_t length = strlen(text);
    int best_distance = 0;
    for (int i = 0; candidate(ctx, i); i++) {
        const char *c = candidate(ctx, i);
        int d = distance(text, c);
        /* A prefix is what people mean by an abbreviation. */
        if (length >= 2 && strncmp(c, text, length) == 0)
            d = 1;
        if (!best || d < best_distance) {
            best = c;
            best_distance = d;
        }
    }
    int limit = length <= 3 ? 1 : length <= 6 ? 2 : 3;
    return best && best_distance <= limit ? best : NULL;
}
