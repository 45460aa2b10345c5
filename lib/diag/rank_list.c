#include "diag/rank_list.h"

#include <stdio.h>
#include <string.h>

#define RANGE_MIN 4

int ddp_rank_list(const unsigned char *mark, int ranks, unsigned char wanted, char *out,
                  size_t out_bytes)
{
    int count = 0;
    size_t used = 0;
    out[0] = '\0';
    for (int r = 0, end; r < ranks; r = end) {
        end = r + 1;
        if (mark[r] != wanted)
            continue;
        while (end < ranks && mark[end] == wanted)
            end++;
        if (end - r < RANGE_MIN)
            end = r + 1;
        count += end - r;
        if (used < out_bytes)
            used += (size_t)snprintf(out + used, out_bytes - used, "%s%d", used > 0 ? ", " : "", r);
        if (end - r > 1 && used < out_bytes)
            used += (size_t)snprintf(out + used, out_bytes - used, "-%d", end - 1);
    }
    if (used >= out_bytes && out_bytes > 4)
        memcpy(out + out_bytes - 4, "...", 4);
    return count;
}
