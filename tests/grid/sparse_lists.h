/* Lists for tests of sparse exchanges. The list of rank r is a function of (kind, seed, r), so
 * every rank can compute all lists and their sums. */
#ifndef DDP_TEST_SPARSE_LISTS_H
#define DDP_TEST_SPARSE_LISTS_H

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "coll/pattern.h"
#include "coll/sparse/sparse_coll.h"
#include "grid/grid.h"

#define LISTS_N_MAX ((size_t)60011)

/* The positions of the entries. */
enum places {
    PLACES_RANDOM,
    PLACES_SAME,     /* the same indices on all ranks */
    PLACES_DISJOINT, /* no index on two ranks, as far as n allows */
    PLACES_FRONT,    /* all in the first tenth: one region */
    PLACES_BACK,     /* the last indices */
    PLACES_OTHER, /* entries of rank r in the (r+1)-th of P equal parts: never in its own region */
    PLACES_COUNT
};
enum values {
    VALUES_SMALL,
    VALUES_NORMAL,
    VALUES_CONSTANT,
    VALUES_DENORMAL,
    VALUES_STRANGE,
    VALUES_COUNT,
    VALUES_LOUD = VALUES_COUNT /* small values, except on rank 1 */
};

struct lists_case {
    enum places places;
    enum values values;
    size_t n, k; /* k: largest number of entries of a rank */
    bool uneven; /* rank r has min(k, k * (r % 3) / 2) entries */
    uint64_t seed;
};

static inline size_t lists_count(const struct lists_case *c, int rank)
{
    return DDP_MIN(c->uneven ? DDP_MIN(c->k, c->k * (size_t)(rank % 3) / 2) : c->k, c->n);
}

static inline float lists_value(const struct lists_case *c, int rank, struct ddp_rng *rng)
{
    const float loud = c->values == VALUES_LOUD && rank == 1 ? 1000 : 0;
    switch (c->values) {
    case VALUES_SMALL:
    case VALUES_LOUD:
        return (float)((int)ddp_rng_below(rng, 201) - 100) + loud;
    case VALUES_CONSTANT:
        return 0.5f;
    case VALUES_DENORMAL:
        return (float)((int)ddp_rng_below(rng, 2001) - 1000) * 0x1p-149f;
    case VALUES_STRANGE:
        switch (ddp_rng_below(rng, 40)) {
        case 0:
            return NAN;
        case 1:
            return INFINITY;
        case 2:
            return -INFINITY;
        case 3:
            return -0.0f;
        default:
            break;
        }
        break;
    case VALUES_NORMAL:
        break;
    }
    return (float)ddp_rng_normal(rng);
}

/* Returns the range that contains the rank's indices. It has at least `count` elements. */
static inline struct ddp_range lists_range(const struct lists_case *c, int rank, int ranks,
                                           size_t count)
{
    const size_t part = c->n / (size_t)ranks, other = (size_t)((rank + 1) % ranks);
    struct ddp_range range = {0, c->n};
    if (c->places == PLACES_FRONT)
        range.end = c->n / 10;
    if (c->places == PLACES_BACK)
        range.begin = c->n - count;
    if (c->places == PLACES_OTHER)
        range = (struct ddp_range){other * part, (other + 1) * part};
    if (c->places == PLACES_DISJOINT)
        range = (struct ddp_range){(size_t)rank * part, (size_t)(rank + 1) * part};
    return range.end - range.begin < count ? (struct ddp_range){0, c->n} : range;
}

/* Fills list, which has room for k entries, by Knuth's selection sampling (TAOCP 2, 3.4.2, S): each
 * set of indices is equally likely. */
static inline void lists_fill(const struct lists_case *c, int rank, int ranks,
                              struct ddp_sparse *list)
{
    const size_t count = lists_count(c, rank);
    const struct ddp_range range = lists_range(c, rank, ranks, count);
    struct ddp_rng where, what;

    ddp_rng_init(&where, c->seed, c->places == PLACES_SAME ? 1000 : (uint64_t)rank);
    ddp_rng_init(&what, c->seed, 2000 + (uint64_t)rank);
    list->count = 0;
    for (size_t i = range.begin; i < range.end && list->count < count; i++)
        if (ddp_rng_below(&where, range.end - i) < count - list->count) {
            list->index[list->count] = (uint32_t)i;
            list->value[list->count++] = lists_value(c, rank, &what);
        }
}

/* Computes sum [n] over all ranks, and present [n], the number of ranks that have the index. */
static inline void lists_sum(const struct lists_case *c, int ranks, double *sum, int *present)
{
    static _Thread_local uint32_t index[LISTS_N_MAX];
    static _Thread_local float value[LISTS_N_MAX];
    struct ddp_sparse list = {index, value, 0};

    memset(sum, 0, c->n * sizeof *sum);
    memset(present, 0, c->n * sizeof *present);
    for (int r = 0; r < ranks; r++) {
        lists_fill(c, r, ranks, &list);
        for (size_t i = 0; i < list.count; i++) {
            sum[index[i]] += value[i];
            present[index[i]]++;
        }
    }
}

/* Returns DDP_EDATA unless all ranks hold the same bytes. */
static inline int lists_check_equal(struct ddp_comm *comm, const float *data, size_t n,
                                    struct ddp_err *err)
{
    uint64_t mine = 0, all[GRID_RANKS_MAX];
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &data[i], sizeof bits);
        mine = ddp_mix64(mine ^ bits);
    }
    DDP_TRY(ddp_comm_allgather_bytes(comm, &mine, all, sizeof mine, err));
    for (int r = 0; r < comm->size; r++)
        if (all[r] != mine)
            return ddp_fail(err, DDP_EDATA, "rank %d holds other bits than rank %d", comm->rank, r);
    return 0;
}

/* The arrays of a rank for one algorithm. The list lies in the grid's registered memory. */
struct lists_run {
    struct ddp_comm *comm;
    const struct ddp_sparse_alg *alg;
    struct ddp_sparse mine;
    float *result, *rejected; /* [LISTS_N_MAX] */
    void *scratch;
};

static inline int lists_run_init(struct lists_run *run, const struct grid *grid,
                                 const struct ddp_sparse_alg *alg, size_t n, size_t most,
                                 struct ddp_err *err)
{
    const size_t bytes = alg->scratch_bytes(grid->comm, n, most);
    *run = (struct lists_run){
        .comm = grid->comm,
        .alg = alg,
        .mine = {.index = (uint32_t *)(void *)grid->memory[1][0],
                 .value = (float *)(void *)grid->memory[1][1]},
        .result = (float *)(void *)grid->memory[0][0],
        .rejected = (float *)(void *)grid->memory[0][1],
        .scratch = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64),
    };
    if (run->scratch == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for scratch");
    memset(run->scratch, 0, bytes);
    return 0;
}

static inline int lists_run(struct lists_run *run, const struct lists_case *c, struct ddp_err *err)
{
    lists_fill(c, run->comm->rank, run->comm->size, &run->mine);
    memset(run->result, 0xa5, (c->n + 1) * sizeof *run->result);
    const struct ddp_sparse_args args = {
        .mine = run->mine,
        .result = run->result,
        .n = c->n,
        .most = c->k,
        .k = c->k,
        .fixed = !c->uneven,
        .rejected = run->rejected,
        .scale = 1,
    };
    DDP_TRY(ddp_sparse_run(run->comm, run->alg, &args, run->scratch, err));
    uint32_t guard;
    memcpy(&guard, &run->result[c->n], sizeof guard);
    if (guard != 0xa5a5a5a5u)
        return ddp_fail(err, DDP_EDATA, "wrote beyond the result");
    return lists_check_equal(run->comm, run->result, c->n, err);
}

#endif
