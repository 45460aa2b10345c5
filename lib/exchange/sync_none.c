/* The strategy `none`: each rank trains alone on its own part of the data. A run with this strategy
 * measures training without communication. In an evaluation each rank evaluates its own model on
 * its own part of the images. */
#include "exchange/sync.h"

#include <stdlib.h>

#include "base/mem.h"

struct ddp_sync {
    char nothing;
};

static int create(const struct ddp_sync_setup *setup, struct ddp_sync **out, struct ddp_err *err)
{
    return DDP_NEW(out, 1, err);
}

static void destroy(struct ddp_sync *s)
{
    free(s);
}

static void counters(const struct ddp_sync *s, struct ddp_sync_counters *out)
{
    *out = (struct ddp_sync_counters){.wire_counted = true, .overflow_count = -1};
}

const struct ddp_sync_class ddp_sync_none = {
    .name = "none",
    .summary = "no exchange: each rank learns from its own images only",
    .scale = DDP_SCALE_PRIVATE,
    .create = create,
    .destroy = destroy,
    .counters = counters,
};
