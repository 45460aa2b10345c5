/* The table of algorithms, and plans. coll_auto.c makes the choice of `auto`. */
#include "coll/coll.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "coll/coll_shm.h"
#include "coll/coll_split.h"
#include "comm/hosts.h"

_Static_assert(DDP_REDUCE_MAX >= DDP_SHM_RANKS_MAX, "one reduce call must take all ranks' inputs");

const struct ddp_coll_alg *const *ddp_coll_algorithms(void)
{
    static const struct ddp_coll_alg *const all[] = {
#define DDP_COLL(symbol) &ddp_alg_##symbol,
#include "coll/coll_list.h"
#undef DDP_COLL
        NULL,
    };
    return all;
}

const struct ddp_coll_alg *ddp_coll_find(enum ddp_coll coll, const char *name)
{
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL; a++)
        if ((*a)->coll == coll && strcmp((*a)->name, name) == 0)
            return *a;
    return NULL;
}

int ddp_coll_needs_shm(const struct ddp_comm *comm, const char *name, struct ddp_err *err)
{
    if (comm->shm == NULL && comm->hosts != NULL && comm->hosts->count > 1)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "algorithm '%s' needs shared memory, but the ranks are on %d hosts", name,
                        comm->hosts->count);
    if (comm->shm == NULL)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "algorithm '%s' needs shared memory, which backend '%s' does not have%s%s",
                        name, comm->backend->name,
                        comm->hosts != NULL && comm->hosts->why[0] != '\0' ? ": " : "",
                        comm->hosts != NULL ? comm->hosts->why : "");
    return 0;
}

int ddp_coll_supports(const struct ddp_coll_alg *alg, const struct ddp_comm *comm,
                      const struct ddp_coll_shape *shape, struct ddp_err *err)
{
    /* Some collectives do not work in place (ddp_coll_has_in_place), except with algorithm "self".
     * Among the algorithms of these collectives, only "self" has `needs` 0. A barrier has no
     * elements, so the check of shape->count excludes barriers. */
    if (!ddp_coll_has_in_place(shape->coll) && shape->in_place && shape->count != 0 &&
        alg->needs != 0)
        return ddp_fail(err, DDP_EUNAVAIL, "%s does not work in place", ddp_coll_name(shape->coll));
    if (alg->needs & DDP_NEEDS_SHARED)
        DDP_TRY(ddp_coll_needs_shm(comm, alg->name, err));
    if ((alg->needs & DDP_NEEDS_REGISTERED) && !shape->registered) {
        ddp_fail(err, DDP_EUNAVAIL, "algorithm '%s' needs registered memory", alg->name);
        ddp_hint(err, "use --memory registered, or --algorithm staged");
        return DDP_EUNAVAIL;
    }
    if (alg->needs & DDP_NEEDS_MESSAGES)
        DDP_TRY(ddp_coll_needs_p2p(comm, alg->name, err));
    if ((alg->needs & DDP_NEEDS_LIBRARY) && !(comm->backend->caps & DDP_CAP_NATIVE))
        return ddp_fail(err, DDP_EUNAVAIL, "backend '%s' has no native collectives",
                        comm->backend->name);
    return alg->supports != NULL ? alg->supports(comm, shape, err) : 0;
}

int ddp_coll_check_offline(const struct ddp_coll_alg *alg, const struct ddp_backend *backend,
                           int ranks, const struct ddp_coll_shape *shape, struct ddp_err *err)
{
    /* For a world on one host, ddp_coll_supports reads only the members that are set here, and
     * `hosts` and `state`, which stay NULL (comm.h). No collective runs on this communicator. */
    struct ddp_comm_shm mapped = {.spin = 0};
    const struct ddp_comm comm = {
        .backend = backend,
        .size = ranks,
        .shm = (backend->caps & DDP_CAP_MAP) != 0 ? &mapped : NULL,
    };
    return ddp_coll_supports(alg, &comm, shape, err);
}

/* Returns the number of chunks of `count` elements in the larger of the send and recv arrays. */
static size_t full_chunks(enum ddp_coll coll, int ranks)
{
    switch (coll) {
    case DDP_REDUCE_SCATTER:
    case DDP_ALL_GATHER:
    case DDP_ALL_TO_ALL:
    case DDP_ALL_TO_ALL_V:
    case DDP_ALL_GATHER_V:
    case DDP_REDUCE_SCATTER_V:
    case DDP_GATHER:
    case DDP_SCATTER:
        return (size_t)ranks;
    default:
        return 1;
    }
}

size_t ddp_coll_message_bytes(enum ddp_coll coll, int ranks, size_t count, enum ddp_dtype dtype)
{
    return full_chunks(coll, ranks) * count * ddp_dtype_size(dtype);
}

/* True if this rank does not use args->send. */
static bool sends_nothing(const struct ddp_comm *comm, const struct ddp_coll_args *args)
{
    return comm->rank != args->root && (args->coll == DDP_BROADCAST || args->coll == DDP_SCATTER);
}
static bool receives_nothing(const struct ddp_comm *comm, const struct ddp_coll_args *args)
{
    return comm->rank != args->root && (args->coll == DDP_REDUCE || args->coll == DDP_GATHER);
}

/* Computes the sizes in bytes of args->send and args->recv by the table in coll.h. */
static void array_bytes(const struct ddp_comm *comm, const struct ddp_coll_args *args, size_t *send,
                        size_t *recv)
{
    const size_t chunk = args->count * ddp_dtype_size(args->dtype);
    const size_t full = chunk * (size_t)comm->size;

    if (ddp_coll_has_split(args->coll)) {
        ddp_split_array_bytes(args, comm->size, comm->rank, send, recv);
        return;
    }
    *send = args->coll == DDP_REDUCE_SCATTER || args->coll == DDP_ALL_TO_ALL ||
                    args->coll == DDP_SCATTER
                ? full
                : chunk;
    *recv = args->coll == DDP_ALL_GATHER || args->coll == DDP_ALL_TO_ALL || args->coll == DDP_GATHER
                ? full
                : chunk;
}

size_t ddp_coll_recv_bytes(const struct ddp_comm *comm, const struct ddp_coll_args *args)
{
    size_t send_bytes, recv_bytes;

    array_bytes(comm, args, &send_bytes, &recv_bytes);
    return receives_nothing(comm, args) ? 0 : recv_bytes;
}

/* True if the call is in place, as the top of coll.h defines. */
static bool is_in_place(const struct ddp_comm *comm, const struct ddp_coll_args *args)
{
    const size_t chunk = args->count * ddp_dtype_size(args->dtype) * (size_t)comm->rank;
    const unsigned char *send = args->send;
    const unsigned char *recv = args->recv;

    switch (args->coll) {
    case DDP_REDUCE_SCATTER:
    case DDP_SCATTER:
        return recv == send + chunk;
    case DDP_ALL_GATHER:
    case DDP_GATHER:
        return send == recv + chunk;
    case DDP_ALL_TO_ALL_V: /* both arrays of a rank may be empty */
    case DDP_ALL_GATHER_V:
    case DDP_REDUCE_SCATTER_V:
        return send == recv && send != NULL;
    default:
        return send == recv;
    }
}

/* True if the first and the last byte lie in registered memory. The bytes in between need no check,
 * because an array never spans two registered blocks. */
static bool is_registered(struct ddp_comm *comm, const void *ptr, size_t bytes)
{
    const unsigned char *first = ptr;
    return ddp_comm_map(comm, comm->rank, first) != NULL &&
           (bytes <= 1 || ddp_comm_map(comm, comm->rank, first + bytes - 1) != NULL);
}

static void shape_of(struct ddp_comm *comm, const struct ddp_coll_args *args,
                     struct ddp_coll_shape *shape)
{
    size_t send_bytes, recv_bytes;

    array_bytes(comm, args, &send_bytes, &recv_bytes);
    *shape = (struct ddp_coll_shape){
        .coll = args->coll,
        .count = args->count,
        .dtype = args->dtype,
        .op = args->op,
        .root = args->root,
        .in_place = is_in_place(comm, args),
        .hosts = comm->hosts != NULL ? comm->hosts->count : 1,
        .split = args->split,
        .registered = (sends_nothing(comm, args) || is_registered(comm, args->send, send_bytes)) &&
                      (receives_nothing(comm, args) || is_registered(comm, args->recv, recv_bytes)),
    };
}

int ddp_coll_plan_init(struct ddp_coll_plan *plan, struct ddp_comm *comm,
                       const struct ddp_coll_alg *alg, const struct ddp_coll_args *args,
                       struct ddp_err *err)
{
    struct ddp_coll_shape shape;
    struct ddp_coll_plan made = {.alg = alg, .args = *args};
    size_t bytes;

    if (args->split != NULL && !ddp_split_chunk(args, comm->size, &made.args.count))
        return ddp_fail(err, DDP_EUSAGE, "the parts of this %s together exceed the address space",
                        ddp_coll_name(args->coll));
    made.args.split_hash = ddp_split_hash(args, comm->size);
    args = &made.args;
    if (!ddp_mul_size(args->count, ddp_dtype_size(args->dtype) * (size_t)comm->size, &bytes))
        return ddp_fail(err, DDP_EUSAGE, "%zu elements on %d ranks exceed the address space",
                        args->count, comm->size);
    shape_of(comm, args, &shape);
    if (alg == NULL) {
        made.alg = ddp_coll_auto(comm, &shape, err);
        if (made.alg == NULL)
            return DDP_EUNAVAIL;
    } else {
        DDP_TRY(ddp_coll_supports(alg, comm, &shape, err));
    }
    made.shape = shape;
    made.bytes = ddp_coll_message_bytes(args->coll, comm->size, args->count, args->dtype);
    if (made.alg->scratch_bytes != NULL)
        made.scratch_bytes = made.alg->scratch_bytes(comm, &shape);
    if (made.scratch_bytes != 0) {
        const size_t rounded = ddp_round_to_line(made.scratch_bytes);
        made.scratch = aligned_alloc(DDP_CACHE_LINE, rounded);
        if (made.scratch == NULL)
            return ddp_fail(err, DDP_ENOMEM, "no memory for %zu bytes of scratch of '%s'",
                            made.scratch_bytes, made.alg->name);
        memset(made.scratch, 0, rounded);
    }
    *plan = made;
    return 0;
}

void ddp_coll_plan_release(struct ddp_coll_plan *plan)
{
    free(plan->scratch);
    *plan = (struct ddp_coll_plan){0};
}

bool ddp_coll_has_many(const struct ddp_comm *comm, const struct ddp_coll_plan *plan)
{
    return (plan->alg->needs & DDP_NEEDS_LIBRARY) != 0 && comm->backend->native_many != NULL &&
           !ddp_coll_is_idle(plan->args.coll, plan->bytes);
}

int ddp_coll_run_many(struct ddp_comm *comm, struct ddp_coll_plan *plan, int64_t count,
                      double *device_ns, struct ddp_err *err)
{
    DDP_TRY(DDP_FAULT(COLL_ENTER, comm->rank_info.rank, err));
    const uint64_t index = ddp_comm_enter(comm, plan->args.coll, plan->args.dtype, plan->bytes);
    const int rc = comm->backend->native_many(comm, &plan->args, count, device_ns, err);
    ddp_flight_leave(comm->flight, index, rc != 0);
    return rc;
}
