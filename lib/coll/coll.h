/* Collectives: algorithms behind one table, and the choice among them.
 *
 * One file and one line in coll_list.h add an algorithm. Elements of send and recv, n = comm->size:
 *   allreduce       send [count]              recv [count]
 *   reduce          send [count]              recv [count] at the root
 *   broadcast       send [count] at the root  recv [count]
 *   reduce-scatter  send [n*count]            recv [count]
 *   all-gather      send [count]              recv [n*count]
 *   all-to-all      send [n*count]            recv [n*count]
 *   gather          send [count]              recv [n*count] at the root
 *   scatter         send [n*count] at root    recv [count]
 *   send-recv       send [count] to (rank+1)%n, recv [count] from (rank-1)%n
 * In place:
 *   allreduce, reduce, broadcast, all-to-all  send == recv
 *   reduce-scatter, scatter (root)            recv == send + rank*count
 *   all-gather, gather (root)                 send == recv + rank*count
 * All ranks must agree on what a plan is made of: whether it is in place and whether its arrays are
 * registered, too. An array that a rank need not have (above) may be any pointer there.
 * After DDP_OK all ranks hold bit-identical results where the collective says they hold the same.
 */
#ifndef DDP_COLL_COLL_H
#define DDP_COLL_COLL_H

#include "base/fault.h"
#include "comm/backend.h"
#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an algorithm needs to know to say whether it can, and what it costs. registered: send and
 * recv lie in registered memory. */
struct ddp_coll_shape {
    enum ddp_coll coll;
    size_t count;
    enum ddp_dtype dtype;
    enum ddp_op op;
    int root;
    bool in_place, registered;
    int hosts; /* the ranks are on; 0: one, or not known */
};

/* Per rank, the largest of all ranks: sequential communication steps, bytes handed to
 * ddp_comm_isend (0 where memory is mapped), messages, and bytes read and written in memory by all
 * ranks together (bound). path_bytes: those that travel one after the other, where they are more
 * than any rank sends (one receives more, or the ranks wait for each other); else 0. So the time on
 * a network that nobody else uses is about ddp_cost_seconds: simulated, within a quarter
 * (tests/sim). */
struct ddp_coll_cost {
    double steps, messages;
    double sent_bytes, path_bytes;
    double memory_bytes; /* all ranks' reads + writes */
    bool modelled;       /* false: a native call, nothing is known */
};

/* alpha_s: a message of no length; beta_s: a byte of it more. */
static inline double ddp_cost_seconds(const struct ddp_coll_cost *cost, double alpha_s,
                                      double beta_s)
{
    const double bytes = cost->path_bytes > 0 ? cost->path_bytes : cost->sent_bytes;
    return cost->steps * alpha_s + bytes * beta_s;
}

struct ddp_coll_alg {
    const char *name; /* "direct", "staged", "flat", "ring", "native" */
    enum ddp_coll coll;
    const char *summary;
    /* 0, or DDP_EUNAVAIL with the reason in err. */
    int (*supports)(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                    struct ddp_err *err);
    /* Private bytes `run` needs; NULL: none. */
    size_t (*scratch_bytes)(const struct ddp_comm *comm, const struct ddp_coll_shape *shape);
    /* Collective; of one element at least, but for barriers. scratch: as asked for, aligned to 64,
     * zeroed before a plan's first call and then left alone until its last. */
    int (*run)(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
               struct ddp_err *err);
    void (*cost)(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost);
};

/* All algorithms of coll_list.h, in order, NULL-terminated. */
const struct ddp_coll_alg *const *ddp_coll_algorithms(void);
/* NULL when there is none of that name for the collective. */
const struct ddp_coll_alg *ddp_coll_find(enum ddp_coll coll, const char *name);
/* The algorithm `auto` takes for this shape; never by a run-time measurement. NULL with err when
 * none supports it. */
const struct ddp_coll_alg *ddp_coll_auto(const struct ddp_comm *comm,
                                         const struct ddp_coll_shape *shape, struct ddp_err *err);
/* The same without the collectives of the backend's library. */
const struct ddp_coll_alg *ddp_coll_auto_own(const struct ddp_comm *comm,
                                             const struct ddp_coll_shape *shape,
                                             struct ddp_err *err);

/* What alg->supports will say, before there is a communicator: `ranks` ranks of one host on
 * `backend`, which needs no outside launcher. 0, or DDP_EUNAVAIL with the reason. */
int ddp_coll_foresee(const struct ddp_coll_alg *alg, const struct ddp_backend *backend, int ranks,
                     const struct ddp_coll_shape *shape, struct ddp_err *err) DDP_MUST_CHECK;

/* A collective made ready: checked once, run often. */
struct ddp_coll_plan {
    const struct ddp_coll_alg *alg;
    struct ddp_coll_args args;
    struct ddp_coll_shape shape; /* of args, as the algorithm was asked */
    void *scratch;
    size_t scratch_bytes;
    uint64_t bytes; /* of the message, for the flight recorder */
};
/* alg NULL: auto. Not collective. Buffers in args are fixed; change them with a new plan. */
int ddp_coll_plan_init(struct ddp_coll_plan *plan, struct ddp_comm *comm,
                       const struct ddp_coll_alg *alg, const struct ddp_coll_args *args,
                       struct ddp_err *err) DDP_MUST_CHECK;
void ddp_coll_plan_release(struct ddp_coll_plan *plan);

/* Bytes of the full buffer S for `count` (see top), as bandwidth is defined on. */
size_t ddp_coll_message_bytes(enum ddp_coll coll, int ranks, size_t count, enum ddp_dtype dtype);
/* Bytes of args->recv that this rank gets; 0 where its pointer says nothing. */
size_t ddp_coll_recv_bytes(const struct ddp_comm *comm, const struct ddp_coll_args *args);

/* Of no elements (bytes): nothing moves and nobody waits, whatever the algorithm. A barrier has
 * none and waits. */
static inline bool ddp_coll_is_idle(enum ddp_coll coll, size_t count)
{
    return count == 0 && coll != DDP_BARRIER;
}

/* Runs it, unless it is idle. Collective: all ranks of the group, same plan, same order. */
static inline int ddp_coll_run(struct ddp_comm *comm, struct ddp_coll_plan *plan,
                               struct ddp_err *err)
{
    DDP_TRY(DDP_FAULT(COLL_ENTER, comm->place.rank, err));
    uint64_t index = ddp_comm_enter(comm, plan->args.coll, plan->args.dtype, plan->bytes);
    const bool idle = ddp_coll_is_idle(plan->args.coll, plan->bytes);
    int rc = idle ? 0 : plan->alg->run(comm, &plan->args, plan->scratch, err);
    if (rc == 0)
        rc = DDP_FAULT_DATA(COLL_LEAVE, comm->place.rank, plan->args.recv,
                            ddp_coll_recv_bytes(comm, &plan->args), err);
    ddp_flight_leave(comm->flight, index, rc != 0);
    return rc;
}

#ifdef __cplusplus
}
#endif
#endif
