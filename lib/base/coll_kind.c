#include "base/coll_kind.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const char *const ddp_coll_names[] = {
    [DDP_ALLREDUCE] = "allreduce",
    [DDP_REDUCE_SCATTER] = "reduce-scatter",
    [DDP_ALL_GATHER] = "all-gather",
    [DDP_BROADCAST] = "broadcast",
    [DDP_REDUCE] = "reduce",
    [DDP_ALL_TO_ALL] = "all-to-all",
    [DDP_ALL_TO_ALL_V] = "all-to-all-v",
    [DDP_ALL_GATHER_V] = "all-gather-v",
    [DDP_REDUCE_SCATTER_V] = "reduce-scatter-v",
    [DDP_GATHER] = "gather",
    [DDP_SCATTER] = "scatter",
    [DDP_SEND_RECV] = "send-recv",
    [DDP_BARRIER] = "barrier",
    [DDP_COLL_COUNT] = NULL,
};

/* The factor busbw / algbw of n ranks is `whole` + `shards` * (n - 1) / n. */
static const struct {
    int whole, shards;
    bool reduces, has_root, no_in_place, has_split, split_is_row;
} colls[DDP_COLL_COUNT] = {
    [DDP_ALLREDUCE] = {.shards = 2, .reduces = true},
    [DDP_REDUCE_SCATTER] = {.shards = 1, .reduces = true},
    [DDP_ALL_GATHER] = {.shards = 1},
    [DDP_BROADCAST] = {.whole = 1, .has_root = true},
    [DDP_REDUCE] = {.whole = 1, .reduces = true, .has_root = true},
    [DDP_ALL_TO_ALL] = {.shards = 1},
    [DDP_ALL_TO_ALL_V] = {.shards = 1, .no_in_place = true, .has_split = true},
    [DDP_ALL_GATHER_V] = {.shards = 1,
                          .no_in_place = true,
                          .has_split = true,
                          .split_is_row = true},
    [DDP_REDUCE_SCATTER_V] = {.shards = 1,
                              .reduces = true,
                              .no_in_place = true,
                              .has_split = true,
                              .split_is_row = true},
    [DDP_GATHER] = {.shards = 1, .has_root = true},
    [DDP_SCATTER] = {.shards = 1, .has_root = true},
    [DDP_SEND_RECV] = {.whole = 1, .no_in_place = true},
    [DDP_BARRIER] = {.no_in_place = true},
};

const char *ddp_coll_name(enum ddp_coll coll)
{
    assert((unsigned)coll < DDP_COLL_COUNT);
    return ddp_coll_names[coll];
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
    /* A dash or underscore at the start or the end is a typing error. */
    if (n == 0 || strchr("-_", name[0]) || strchr("-_", name[n - 1]))
        return -1;
    for (int i = 0; i < DDP_COLL_COUNT; i++)
        if (same_letters(name, ddp_coll_names[i]))
            return i;
    if (strcmp(name, "MPI_Alltoallv") == 0)
        return DDP_ALL_TO_ALL_V;
    if (strcmp(name, "MPI_Allgatherv") == 0)
        return DDP_ALL_GATHER_V;
    if (strcmp(name, "MPI_Reduce_scatter") == 0)
        return DDP_REDUCE_SCATTER_V;
    return strcmp(name, "bcast") == 0 ? DDP_BROADCAST : -1;
}

bool ddp_coll_reduces(enum ddp_coll coll)
{
    return colls[coll].reduces;
}

bool ddp_coll_has_root(enum ddp_coll coll)
{
    return colls[coll].has_root;
}

bool ddp_coll_has_in_place(enum ddp_coll coll)
{
    return !colls[coll].no_in_place;
}

bool ddp_coll_has_split(enum ddp_coll coll)
{
    return colls[coll].has_split;
}

bool ddp_coll_split_is_row(enum ddp_coll coll)
{
    return colls[coll].split_is_row;
}

double ddp_coll_busbw_factor(enum ddp_coll coll, int ranks)
{
    assert((unsigned)coll < DDP_COLL_COUNT);
    if (ranks < 2 || coll == DDP_BARRIER)
        return NAN;
    return colls[coll].whole + colls[coll].shards * ((double)(ranks - 1) / ranks);
}
