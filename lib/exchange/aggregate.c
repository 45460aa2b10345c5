/* Opens the groups of ranks per host, and plans and runs the placements that aggregate.h describes.
 */
#include "exchange/aggregate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/hosts.h"
#include "comm/shm/comm_shm.h"

/* Opens a group of `comm`. The thread that uses comm also uses the group, so the group shares the
 * flight recorder and the spin setting of comm. */
static int open_group(struct ddp_comm *comm, const int *ranks, int n, struct ddp_comm **out,
                      struct ddp_err *err)
{
    DDP_TRY(ddp_comm_group(comm, ranks, n, out, err));
    (*out)->flight = comm->flight;
    if (comm->shm != NULL && (*out)->shm != NULL)
        (*out)->shm->spin = comm->shm->spin;
    return 0;
}

/* Opens the groups. members [comm->size] is scratch memory. */
static int open_groups(struct ddp_comm *comm, int *members, struct ddp_host_groups *groups,
                       struct ddp_err *err)
{
    const struct ddp_hosts *hosts = comm->hosts;
    int n = 0;
    for (int r = 0; r < comm->size; r++)
        if (hosts == NULL || hosts->of[r] == hosts->mine)
            members[n++] = r;
    const bool leads = members[0] == comm->rank;
    DDP_TRY(open_group(comm, members, n, &groups->host, err));
    if (!leads || hosts == NULL || hosts->count == 1)
        return 0;
    return open_group(comm, hosts->leader, hosts->count, &groups->leaders, err);
}

int ddp_host_groups_open(struct ddp_comm *comm, struct ddp_host_groups *out, struct ddp_err *err)
{
    struct ddp_host_groups groups = {0};
    int *members;
    DDP_TRY(DDP_NEW(&members, (size_t)comm->size, err));
    const int rc = open_groups(comm, members, &groups, err);
    free(members);
    if (rc != 0)
        ddp_host_groups_close(&groups);
    else
        *out = groups;
    return rc;
}

void ddp_host_groups_close(struct ddp_host_groups *groups)
{
    ddp_comm_destroy(groups->leaders);
    ddp_comm_destroy(groups->host);
    *groups = (struct ddp_host_groups){0};
}

/* One collective on one group. */
struct step {
    struct ddp_comm *comm;
    struct ddp_coll_plan plan;
    bool counts;        /* True if comm->wire_bytes counts the bytes. */
    double model_bytes; /* If !counts: modelled bytes of one run. */
};

struct ddp_aggregation {
    struct step *steps;
    int count, capacity;
    const struct ddp_coll_alg *allreduce; /* NULL: auto. */
    double wire_bytes;
    bool counted;
};

/* Returns true if comm->wire_bytes counts all bytes of the plan. Only algorithms that send by
 * ddp_comm_isend are counted. */
static bool sends_messages(const struct ddp_coll_plan *plan, const struct ddp_comm *comm)
{
    return comm->size == 1 || (plan->alg->needs & DDP_NEEDS_MESSAGES) != 0;
}

static double model_bytes(const struct ddp_comm *comm, const struct ddp_coll_args *args)
{
    const double bytes = (double)args->count * sizeof(float), peers = comm->size - 1;
    if (args->coll == DDP_ALLREDUCE)
        return 2.0 * peers / comm->size * bytes;
    if (args->coll == DDP_REDUCE_SCATTER || args->coll == DDP_ALL_GATHER)
        return peers * bytes; /* args->count is the size of a chunk */
    if (args->coll == DDP_REDUCE)
        return comm->rank == args->root ? 0.0 : bytes;
    return comm->rank == args->root ? peers * bytes : 0.0;
}

/* Finds the algorithm of a collective. The user chose the algorithm for all-reduces. */
static int algorithm_of(const struct ddp_aggregation *a, enum ddp_coll coll,
                        const struct ddp_coll_alg **out, struct ddp_err *err)
{
    const bool halves = coll == DDP_REDUCE_SCATTER || coll == DDP_ALL_GATHER;
    *out = coll == DDP_ALLREDUCE ? a->allreduce : NULL;
    if (!halves || a->allreduce == NULL)
        return 0;
    *out = ddp_coll_find(coll, a->allreduce->name);
    if (*out == NULL)
        return ddp_fail(err, DDP_EUSAGE, "%s has no algorithm '%s'", ddp_coll_name(coll),
                        a->allreduce->name);
    return 0;
}

/* Adds an in-place collective on data[n]. Adds nothing for a group of one rank or an empty array.
 */
static int add_step(struct ddp_aggregation *a, struct ddp_comm *comm, enum ddp_coll coll,
                    float *data, size_t n, int root, struct ddp_err *err)
{
    if (n == 0 || comm->size == 1)
        return 0;
    if (a->count == a->capacity) {
        const int capacity = 2 * a->capacity + 8;
        struct step *grown = ddp_realloc_array(a->steps, (size_t)capacity, sizeof *grown);
        if (grown == NULL)
            return ddp_fail(err, DDP_ENOMEM, "no memory for %d collectives", capacity);
        a->steps = grown;
        a->capacity = capacity;
    }
    struct step *s = &a->steps[a->count];
    const struct ddp_coll_alg *alg;
    struct ddp_coll_args args = {.coll = coll,
                                 .send = data,
                                 .recv = data,
                                 .count = n,
                                 .dtype = DDP_F32,
                                 .op = DDP_SUM,
                                 .root = root};
    if (coll == DDP_REDUCE_SCATTER || coll == DDP_ALL_GATHER) {
        args.count = n / (size_t)comm->size;
        float *own = data + (size_t)comm->rank * args.count;
        args.send = coll == DDP_ALL_GATHER ? own : data;
        args.recv = coll == DDP_ALL_GATHER ? data : own;
    }
    DDP_TRY(algorithm_of(a, coll, &alg, err));
    *s = (struct step){.comm = comm, .model_bytes = model_bytes(comm, &args)};
    DDP_TRY(ddp_coll_plan_init(&s->plan, comm, alg, &args, err));
    s->counts = sends_messages(&s->plan, comm);
    a->counted &= s->counts;
    a->count++;
    return 0;
}

static int plan_allreduce(struct ddp_aggregation *a, const struct ddp_aggregate_setup *setup,
                          struct ddp_err *err)
{
    return add_step(a, setup->comm, DDP_ALLREDUCE, setup->data, setup->n, 0, err);
}

static int plan_scatter(struct ddp_aggregation *a, const struct ddp_aggregate_setup *setup,
                        struct ddp_err *err)
{
    return add_step(a, setup->comm, DDP_REDUCE_SCATTER, setup->data, setup->n, 0, err);
}

static int plan_gather(struct ddp_aggregation *a, const struct ddp_aggregate_setup *setup,
                       struct ddp_err *err)
{
    return add_step(a, setup->comm, DDP_ALL_GATHER, setup->data, setup->n, 0, err);
}

const struct ddp_aggregate ddp_aggregate_scatter = {.name = "scatter", .plan = plan_scatter};
const struct ddp_aggregate ddp_aggregate_gather = {.name = "gather", .plan = plan_gather};

static int plan_local(struct ddp_aggregation *a, const struct ddp_aggregate_setup *setup,
                      struct ddp_err *err)
{
    DDP_TRY(add_step(a, setup->comm, DDP_REDUCE, setup->data, setup->n, 0, err));
    return add_step(a, setup->comm, DDP_BROADCAST, setup->data, setup->n, 0, err);
}

void ddp_aggregate_owners(const size_t *counts, int count, int owners, int *owner)
{
    for (int i = 0; i < count; i++)
        owner[i] = -1;
    for (int given = 0; given < count; given++) {
        int largest = -1, least = 0;
        size_t least_owns = SIZE_MAX;
        for (int i = 0; i < count; i++)
            if (owner[i] < 0 && (largest < 0 || counts[i] > counts[largest]))
                largest = i;
        for (int o = 0; o < owners; o++) {
            size_t owns = 0;
            for (int i = 0; i < count; i++)
                owns += owner[i] == o ? counts[i] : 0;
            if (owns < least_owns) {
                least_owns = owns;
                least = o;
            }
        }
        owner[largest] = least;
    }
}

/* Adds the collectives that reduce each key (tensor) at its owner and broadcast the sums from the
 * owners. A key of split_from or more elements is cut into one part per rank of comm, and each rank
 * owns one part. */
static int plan_owners(struct ddp_aggregation *a, const struct ddp_aggregate_setup *setup,
                       struct ddp_comm *comm, size_t split_from, struct ddp_err *err)
{
    const enum ddp_coll phase[2] = {DDP_REDUCE, DDP_BROADCAST};
    size_t *whole = NULL;
    int *owner, rc = DDP_NEW(&owner, (size_t)setup->key_count, err);
    if (rc == 0)
        rc = DDP_NEW(&whole, (size_t)setup->key_count, err);
    for (int k = 0; k < setup->key_count && rc == 0; k++)
        whole[k] = setup->counts[k] >= split_from ? 0 : setup->counts[k];
    if (rc == 0)
        ddp_aggregate_owners(whole, setup->key_count, comm->size, owner);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < setup->key_count && rc == 0; k++) {
            float *key = setup->data + setup->offsets[k];
            const size_t n = setup->counts[k], parts = (size_t)comm->size;
            if (n < split_from)
                rc = add_step(a, comm, phase[i], key, n, owner[k], err);
            for (size_t p = 0; n >= split_from && p < parts && rc == 0; p++) {
                const size_t low = n * p / parts, high = n * (p + 1) / parts;
                rc = add_step(a, comm, phase[i], key + low, high - low, (int)p, err);
            }
        }
    }
    free(whole);
    free(owner);
    return rc;
}

static int plan_device(struct ddp_aggregation *a, const struct ddp_aggregate_setup *setup,
                       struct ddp_err *err)
{
    return plan_owners(a, setup, setup->comm, SIZE_MAX, err);
}

static int plan_dist_device(struct ddp_aggregation *a, const struct ddp_aggregate_setup *setup,
                            struct ddp_err *err)
{
    const struct ddp_host_groups *hosts = setup->hosts;
    DDP_TRY(add_step(a, hosts->host, DDP_REDUCE, setup->data, setup->n, 0, err));
    if (hosts->leaders != NULL)
        DDP_TRY(plan_owners(a, setup, hosts->leaders, DDP_AGGREGATE_BIG_KEY, err));
    return add_step(a, hosts->host, DDP_BROADCAST, setup->data, setup->n, 0, err);
}

const struct ddp_aggregate *const *ddp_aggregates(void)
{
    static const struct ddp_aggregate table[] = {
        {"allreduce", "one all-reduce of the whole array", false, plan_allreduce},
        {"local", "reduced to rank 0, then broadcast", false, plan_local},
        {"device",
         "each tensor is reduced to its owner, then broadcast; owners get about equal numbers of "
         "elements",
         false, plan_device},
        {"dist-device",
         "each host sums its gradients; then each tensor is summed by one host and broadcast; "
         "large tensors are split over all hosts",
         true, plan_dist_device},
    };
    static const struct ddp_aggregate *const all[] = {&table[0], &table[1], &table[2], &table[3],
                                                      NULL};
    return all;
}

int ddp_allreduce_find(const char *name, const struct ddp_coll_alg **out, struct ddp_err *err)
{
    char legal[256] = "auto";
    *out = NULL;
    if (name == NULL || strcmp(name, "auto") == 0)
        return 0;
    *out = ddp_coll_find(DDP_ALLREDUCE, name);
    if (*out != NULL)
        return 0;
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL; a++) {
        const size_t n = strlen(legal);
        if ((*a)->coll == DDP_ALLREDUCE)
            snprintf(legal + n, sizeof legal - n, ", %s", (*a)->name);
    }
    return ddp_fail(err, DDP_EUSAGE, "all-reduce has no algorithm '%s'; legal: %s", name, legal);
}

int ddp_aggregation_create(const struct ddp_aggregate *how, const struct ddp_aggregate_setup *setup,
                           struct ddp_aggregation **out, struct ddp_err *err)
{
    const struct ddp_coll_alg *alg;
    DDP_TRY(ddp_allreduce_find(setup->algorithm, &alg, err));
    struct ddp_aggregation *a;
    DDP_TRY(DDP_NEW(&a, 1, err));
    a->counted = true;
    a->allreduce = alg;
    int rc = how->plan(a, setup, err);
    if (rc != 0) {
        ddp_aggregation_destroy(a);
        return rc;
    }
    *out = a;
    return 0;
}

void ddp_aggregation_destroy(struct ddp_aggregation *a)
{
    if (a == NULL)
        return;
    for (int i = 0; i < a->count; i++)
        ddp_coll_plan_release(&a->steps[i].plan);
    free(a->steps);
    free(a);
}

int ddp_aggregation_run(struct ddp_aggregation *a, struct ddp_err *err)
{
    for (int i = 0; i < a->count; i++) {
        struct step *s = &a->steps[i];
        const uint64_t before = s->comm->wire_bytes;
        DDP_TRY(ddp_coll_run(s->comm, &s->plan, err));
        a->wire_bytes += s->counts ? (double)(s->comm->wire_bytes - before) : s->model_bytes;
    }
    return 0;
}

double ddp_aggregation_wire_bytes(const struct ddp_aggregation *a, bool *counted)
{
    *counted = a->counted;
    return a->wire_bytes;
}
