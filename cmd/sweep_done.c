/* The set of finished points and items, as 64-bit keys that are the same on every rank. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "sweep.h"

uint64_t ddp_sweep_key(int launch, int item, const char *id)
{
    const int32_t position[2] = {launch, item};
    return ddp_fnv1a(ddp_fnv1a(DDP_FNV_INIT, position, sizeof position), id, strlen(id));
}

int ddp_sweep_done_add(struct ddp_sweep_done *done, uint64_t key, struct ddp_err *err)
{
    if (done->count == done->capacity) {
        size_t capacity = done->capacity ? 2 * done->capacity : 64;
        uint64_t *keys = ddp_realloc_array(done->keys, capacity, sizeof *keys);
        if (!keys)
            return ddp_fail(err, DDP_ENOMEM, "no memory for the list of finished points");
        done->keys = keys;
        done->capacity = capacity;
    }
    done->keys[done->count++] = key;
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void ddp_sweep_done_sort(struct ddp_sweep_done *done)
{
    if (done->count > 1)
        qsort(done->keys, done->count, sizeof *done->keys, compare_keys);
}

bool ddp_sweep_done_has(const struct ddp_sweep_done *done, uint64_t key)
{
    return done->count > 0 &&
           bsearch(&key, done->keys, done->count, sizeof key, compare_keys) != NULL;
}

bool ddp_sweep_launch_group_is_done(const struct ddp_sweep_values *v,
                                    const struct ddp_sweep_launch_group *s)
{
    for (int i = 0; i < s->count; i++)
        if (!ddp_sweep_done_has(&v->done, ddp_sweep_key(s->launch, s->items[i], DDP_SWEEP_END)))
            return false;
    return true;
}

/* Every rank sends this struct to all ranks: the hash of its plan, and the number of its keys. */
struct summary {
    uint64_t plan, keys;
};

static int share_keys(struct ddp_sweep_values *v, struct ddp_comm *comm, uint64_t n,
                      struct ddp_err *err)
{
    uint64_t *mine = ddp_calloc((size_t)n, sizeof *mine);
    uint64_t *all = ddp_calloc((size_t)n * (size_t)comm->size, sizeof *all);
    int rc =
        mine && all ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory for the list of finished points");
    rc = ddp_comm_agree(comm, rc, err);
    if (rc == 0 && comm->rank == 0)
        memcpy(mine, v->done.keys, (size_t)n * sizeof *mine);
    if (rc == 0)
        rc = ddp_comm_allgather_bytes(comm, mine, all, (size_t)n * sizeof *mine, err);
    for (uint64_t i = 0; i < n && rc == 0 && comm->rank != 0; i++)
        rc = ddp_sweep_done_add(&v->done, all[i], err);
    free(mine);
    free(all);
    return ddp_comm_agree(comm, rc, err);
}

int ddp_sweep_share(void *values, struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_sweep_values *v = values;
    struct summary mine = {.plan = v->plan.hash, .keys = v->done.count};
    struct summary *all = ddp_calloc((size_t)comm->size, sizeof *all);
    int rc = all ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory for the list of finished points");
    DDP_TRY(ddp_comm_agree(comm, rc, err));
    rc = ddp_comm_allgather_bytes(comm, &mine, all, sizeof mine, err);
    for (int r = 1; r < comm->size && rc == 0; r++)
        if (all[r].plan != all[0].plan)
            rc = ddp_fail(err, DDP_EMISMATCH, "rank %d reads a different '%.200s' than rank 0", r,
                          v->config_path);
    const uint64_t n = all[0].keys;
    free(all);
    rc = ddp_comm_agree(comm, rc, err);
    if (rc == 0 && n > 0)
        rc = share_keys(v, comm, n, err);
    ddp_sweep_done_sort(&v->done);
    return rc;
}
