#include "record/vary.h"

#include <stdio.h>

const char *const ddp_vary_names[] = {"algorithm", "backend", "memory",   "compress", "ranks",
                                      "dtype",     "sync",    "feedback", "lr",       NULL};

void ddp_vary_text(unsigned vary, char *out, size_t bytes)
{
    size_t at = 0;
    out[0] = '\0';
    for (int k = 0; ddp_vary_names[k]; k++)
        if (vary >> k & 1 && at < bytes)
            at += (size_t)snprintf(out + at, bytes - at, "%s%s", at ? ", " : "", ddp_vary_names[k]);
}
