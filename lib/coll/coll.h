/* Collectives: a table of algorithms, and the choice among them.
 *
 * A new algorithm is one file and one line in coll_list.h. Number of elements in send and recv on a
 * rank, where n = comm->size:
 *   allreduce       send [count]              recv [count]
 *   reduce          send [count]              recv [count] at the root
 *   broadcast       send [count] at the root  recv [count]
 *   reduce-scatter  send [n*count]            recv [count]
 *   all-gather      send [count]              recv [n*count]
 *   all-to-all      send [n*count]            recv [n*count]
 *   gather          send [count]              recv [n*count] at the root
 *   scatter         send [n*count] at root    recv [count]
 *   send-recv       send [count] to (rank+1)%n, recv [count] from (rank-1)%n
 * A call is in place when:
 *   allreduce, reduce, broadcast, all-to-all  send == recv
 *   reduce-scatter, scatter (root)            recv == send + rank*count
 *   all-gather, gather (root)                 send == recv + rank*count
 * All ranks must create a plan with the same arguments. They must also agree on whether the call is
 * in place and whether the arrays are registered. An array that a rank does not need (see above)
 * may be any pointer on that rank. After DDP_OK, the ranks that receive the same result hold
 * bit-identical results. */
#ifndef DDP_COLL_COLL_H
#define DDP_COLL_COLL_H

#include "base/fault.h"
#include "comm/backend.h"
#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The properties of a call that decide whether an algorithm supports it, and what it costs. */
struct ddp_coll_shape {
    enum ddp_coll coll;
    size_t count;
    enum ddp_dtype dtype;
    enum ddp_op op;
    int root;
    bool in_place;
    bool registered; /* send and recv lie in registered memory */
    int hosts;       /* number of hosts that the ranks run on; 0 if unknown, then one is assumed */
};

/* Cost of one call. Where ranks differ, a member holds the largest value of any rank. On a network
 * without other traffic the call takes about ddp_cost_seconds(); a simulation agrees within a
 * quarter (tests/sim). */
struct ddp_coll_cost {
    double steps;      /* communication steps that follow one another */
    double messages;   /* messages that one rank sends */
    double sent_bytes; /* bytes one rank passes to ddp_comm_isend; 0 where memory is mapped */
    /* Bytes that are sent one after the other, if they are more than any rank sends: a rank
     * receives more than it sends, or ranks wait for each other. Else 0. */
    double path_bytes;
    double memory_bytes; /* bytes that all ranks together read and write in memory */
    bool modelled;       /* false for a native call, whose cost is unknown */
};

/* alpha_s: seconds for an empty message. beta_s: seconds for each byte. */
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
    /* Returns 0 if the algorithm can run this call, or DDP_EUNAVAIL with the reason in err. */
    int (*supports)(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                    struct ddp_err *err);
    /* Optional. Returns the bytes of scratch that `run` needs on this rank. NULL: none. */
    size_t (*scratch_bytes)(const struct ddp_comm *comm, const struct ddp_coll_shape *shape);
    /* Collective. Called with at least one element, except for barriers. scratch has
     * scratch_bytes() bytes and is aligned to 64. It is zeroed before the first call of a plan and
     * keeps its contents between the calls of that plan. */
    int (*run)(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
               struct ddp_err *err);
    void (*cost)(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost);
};

/* Returns all algorithms in the order of coll_list.h. The array ends with NULL. */
const struct ddp_coll_alg *const *ddp_coll_algorithms(void);
/* Returns NULL if the collective has no algorithm of this name. */
const struct ddp_coll_alg *ddp_coll_find(enum ddp_coll coll, const char *name);
/* Returns the algorithm that `auto` uses for this shape. The choice depends on no measurement at
 * run time. Returns NULL and fills err if no algorithm supports the shape. */
const struct ddp_coll_alg *ddp_coll_auto(const struct ddp_comm *comm,
                                         const struct ddp_coll_shape *shape, struct ddp_err *err);
/* Like ddp_coll_auto, but never chooses the collectives of the backend's library. */
const struct ddp_coll_alg *ddp_coll_auto_own(const struct ddp_comm *comm,
                                             const struct ddp_coll_shape *shape,
                                             struct ddp_err *err);

/* Tells what alg->supports would answer before a communicator exists, for `ranks` ranks of one host
 * on a backend that needs no outside launcher. Returns 0, or DDP_EUNAVAIL with the reason in err.
 */
int ddp_coll_check_offline(const struct ddp_coll_alg *alg, const struct ddp_backend *backend,
                           int ranks, const struct ddp_coll_shape *shape,
                           struct ddp_err *err) DDP_MUST_CHECK;

/* A collective that was checked once and can run many times. */
struct ddp_coll_plan {
    const struct ddp_coll_alg *alg;
    struct ddp_coll_args args;
    struct ddp_coll_shape shape; /* derived from args, as passed to alg->supports */
    void *scratch;
    size_t scratch_bytes;
    uint64_t bytes; /* message size that the flight recorder shows */
};
/* Checks args, chooses the algorithm and allocates scratch. alg may be NULL for `auto`. Not
 * collective. The plan keeps the buffer pointers of args; other buffers need a new plan. */
int ddp_coll_plan_init(struct ddp_coll_plan *plan, struct ddp_comm *comm,
                       const struct ddp_coll_alg *alg, const struct ddp_coll_args *args,
                       struct ddp_err *err) DDP_MUST_CHECK;
void ddp_coll_plan_release(struct ddp_coll_plan *plan);

/* Returns the message size S in bytes that bandwidth is computed from: the larger of the send and
 * recv buffers in the table at the top. */
size_t ddp_coll_message_bytes(enum ddp_coll coll, int ranks, size_t count, enum ddp_dtype dtype);
/* Returns the number of bytes that this rank receives in args->recv, 0 if it does not use
 * args->recv. */
size_t ddp_coll_recv_bytes(const struct ddp_comm *comm, const struct ddp_coll_args *args);

/* True for a collective of zero elements (or bytes). It returns at once, without waiting for other
 * ranks, under every algorithm. A barrier has no elements but does wait. */
static inline bool ddp_coll_is_idle(enum ddp_coll coll, size_t count)
{
    return count == 0 && coll != DDP_BARRIER;
}

/* Runs the plan, unless it has no elements. Collective: all ranks of the group run the same plans
 * in the same order. */
static inline int ddp_coll_run(struct ddp_comm *comm, struct ddp_coll_plan *plan,
                               struct ddp_err *err)
{
    DDP_TRY(DDP_FAULT(COLL_ENTER, comm->rank_info.rank, err));
    uint64_t index = ddp_comm_enter(comm, plan->args.coll, plan->args.dtype, plan->bytes);
    const bool idle = ddp_coll_is_idle(plan->args.coll, plan->bytes);
    int rc = idle ? 0 : plan->alg->run(comm, &plan->args, plan->scratch, err);
    if (rc == 0)
        rc = DDP_FAULT_DATA(COLL_LEAVE, comm->rank_info.rank, plan->args.recv,
                            ddp_coll_recv_bytes(comm, &plan->args), err);
    ddp_flight_leave(comm->flight, index, rc != 0);
    return rc;
}

#ifdef __cplusplus
}
#endif
#endif
