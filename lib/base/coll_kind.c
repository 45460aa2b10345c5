#include "base/coll_kind.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

/* The kinds of the factor busbw / algbw. */
enum factor { FACTOR_NONE, FACTOR_ONE, FACTOR_SHARD, FACTOR_TWICE_SHARD };

static const struct {
    const char *name;
    enum factor factor;
} colls[DDP_COLL_COUNT] = {
    [DDP_ALLREDUCE] = {"allreduce", FACTOR_TWICE_SHARD},
    [DDP_REDUCE_SCATTER] = {"reduce-scatter", FACTOR_SHARD},
    [DDP_ALL_GATHER] = {"all-gather", FACTOR_SHARD},
    [DDP_BROADCAST] = {"broadcast", FACTOR_ONE},
    [DDP_REDUCE] = {"reduce", FACTOR_ONE},
    [DDP_ALL_TO_ALL] = {"all-to-all", FACTOR_SHARD},
    [DDP_GATHER] = {"gather", FACTOR_SHARD},
    [DDP_SCATTER] = {"scatter", FACTOR_SHARD},
    [DDP_SEND_RECV] = {"send-recv", FACTOR_ONE},
    [DDP_BARRIER] = {"barrier", FACTOR_NONE},
};

/* Aliases that differ from the names in more than dashes and underscores. */
static const struct {
    const char *name;
    enum ddp_coll coll;
} aliases[] = {
    {"bcast", DDP_BROADCAST},
};

const char *ddp_coll_name(enum ddp_coll coll)
{
    assert((unsigned)coll < DDP_COLL_COUNT);
    return colls[coll].name;
}

/* Returns whether two names are equal apart from dashes and underscores, for example all_reduce and
 * allreduce. */
static int same_letters(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == '-' || *a == '_')
            a++;
        while (*b == '-' || *b == '_')
            b++;
        if (*a != *b)
            return 0;
        if (*a == '\0')
            return 1;
    }
}

int ddp_coll_parse(const char *name)
{
    size_t n = strlen(name);
    /* a dash or underscore at either end is a typing error */
    if (n == 0 || strchr("-_", name[0]) || strchr("-_", name[n - 1]))
        return -1;
    for (int i = 0; i < DDP_COLL_COUNT; i++)
        if (same_letters(name, colls[i].name))
            return i;
    for (size_t i = 0; i < DDP_COUNT_OF(aliases); i++)
        if (strcmp(name, aliases[i].name) == 0)
            return (int)aliases[i].coll;
    return -1;
}

bool ddp_coll_reduces(enum ddp_coll coll)
{
    return coll == DDP_ALLREDUCE || coll == DDP_REDUCE || coll == DDP_REDUCE_SCATTER;
}

bool ddp_coll_has_root(enum ddp_coll coll)
{
    return coll == DDP_BROADCAST || coll == DDP_REDUCE || coll == DDP_GATHER || coll == DDP_SCATTER;
}

bool ddp_coll_has_in_place(enum ddp_coll coll)
{
    return coll != DDP_SEND_RECV && coll != DDP_BARRIER;
}

double ddp_coll_busbw_factor(enum ddp_coll coll, int ranks)
{
    assert((unsigned)coll < DDP_COLL_COUNT);
    if (ranks < 2)
        return NAN;
    double shard = (double)(ranks - 1) / ranks;
    switch (colls[coll].factor) {
    case FACTOR_ONE:
        return 1;
    case FACTOR_SHARD:
        return shard;
    case FACTOR_TWICE_SHARD:
        return 2 * shard;
    case FACTOR_NONE:
        break;
    }
    return NAN;
}
