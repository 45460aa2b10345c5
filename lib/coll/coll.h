/* Collectives: a table of algorithms, and the choice among them.
 *
 * To add an algorithm, write one file and add one line to coll_list.h. The arrays of one rank have
 * the following numbers of elements, where n = comm->size:
 *   allreduce       send [count]              recv [count]
 *   reduce          send [count]              recv [count] at the root
 *   broadcast       send [count] at the root  recv [count]
 *   reduce-scatter  send [n*count]            recv [count]
 *   all-gather      send [count]              recv [n*count]
 *   all-to-all      send [n*count]            recv [n*count]
 *   all-to-all-v    send [sum of row `rank` of args->split], recv [sum of column `rank`]
 *   gather          send [count]              recv [n*count] at the root
 *   scatter         send [n*count] at root    recv [count]
 *   send-recv       send [count] to (rank+1)%n, recv [count] from (rank-1)%n
 *   all-gather-v    send [args->split[rank]]  recv [sum of args->split]
 *   reduce-scatter-v  send [sum of args->split], recv [args->split[rank]]
 * A call is in place if its pointers are as follows. "(root)" limits a rule to the root.
 *   allreduce, all-to-all, reduce (root), broadcast (root)  send == recv
 *   reduce-scatter, scatter (root)                          recv == send + rank*count
 *   all-gather, gather (root)                               send == recv + rank*count
 * Send-recv and the collectives with a *split* (ddp_coll_has_split) do not work in place, except
 * with algorithm "self". The *split table* args->split holds the sizes of their parts. The parts
 * lie in the arrays one after another, in the order of the ranks. If registered arrays are used,
 * the pointer to an empty array must lie in registered memory, too. In a call with a split table,
 * ddp_coll_plan_init sets `count` to the number of elements of the largest array of any rank,
 * divided by n and rounded up.
 *
 * All ranks must create a plan with the same arguments, apart from the pointers. They must also
 * agree on whether the arrays are registered. In calls without a root, they must agree on whether
 * the call is in place. Registered arrays of an all-reduce must have the same offsets in registered
 * memory on all ranks. If the list above has no array for a rank, the rank's pointer to this array
 * is ignored. After success, all ranks that receive the same result hold the same bits, except with
 * algorithm "native". */
#ifndef DDP_COLL_COLL_H
#define DDP_COLL_COLL_H

#include "base/fault.h"
#include "comm/backend.h"
#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The properties of a call that decide whether an algorithm supports the call, and how much the
 * call costs. */
struct ddp_coll_shape {
    enum ddp_coll coll;
    size_t count;
    enum ddp_dtype dtype;
    enum ddp_op op;
    int root;
    bool in_place;
    bool registered;     /* send and recv lie in registered memory */
    int hosts;           /* number of hosts that the ranks run on; 0: unknown, treated as 1 */
    const size_t *split; /* the split table (struct ddp_coll_args), or NULL */
};

/* Cost of one call. If a value differs between ranks, the member holds the largest value. On a
 * network without other traffic the call takes about ddp_cost_seconds(). tests/sim compares this
 * time with a simulation. */
struct ddp_coll_cost {
    double steps;      /* communication steps that follow one another */
    double messages;   /* messages that one rank sends */
    double sent_bytes; /* bytes that one rank passes to ddp_comm_isend */
    /* Bytes that are transferred one after another on the slowest path through the ranks, or 0 if
     * this number equals sent_bytes. The number exceeds sent_bytes if a rank receives more than it
     * sends, or if ranks wait for each other. */
    double path_bytes;
    double memory_bytes; /* bytes that all ranks together read and write in memory */
    bool modelled;       /* false for a native call, whose cost is unknown */
};

/* Returns the expected duration of a call in seconds. alpha_s: seconds for an empty message.
 * beta_s: seconds per byte. */
static inline double ddp_cost_seconds(const struct ddp_coll_cost *cost, double alpha_s,
                                      double beta_s)
{
    const double bytes = cost->path_bytes > 0 ? cost->path_bytes : cost->sent_bytes;
    return cost->steps * alpha_s + bytes * beta_s;
}

/* The requirements of an algorithm. */
enum ddp_coll_needs {
    DDP_NEEDS_SHARED = 1 << 0,     /* all ranks share memory */
    DDP_NEEDS_REGISTERED = 1 << 1, /* send and recv lie in registered memory */
    DDP_NEEDS_MESSAGES = 1 << 2,   /* if there are several ranks, the backend can send messages */
    DDP_NEEDS_LIBRARY = 1 << 3     /* the backend has collectives of its own */
};

/* The ways to compute the cost of an algorithm (coll_cost.c). */
enum ddp_cost_model {
    /* coll_cost.c calls run() on a communicator that counts messages and moves no data. `path` sets
     * steps and path_bytes. */
    DDP_COST_COUNTED,
    DDP_COST_FORMULA, /* `path` sets all members */
    /* The formula that coll_cost.c has for "flat", "direct", "staged" or "self". */
    DDP_COST_FLAT,
    DDP_COST_DIRECT,
    DDP_COST_STAGED,
    DDP_COST_SELF,
    DDP_COST_UNKNOWN /* the cost is not modelled */
};

struct ddp_coll_alg {
    const char *name; /* for example "direct" or "ring" */
    enum ddp_coll coll;
    const char *summary;
    unsigned needs; /* enum ddp_coll_needs */
    /* A check in addition to `needs`, or NULL. Returns 0 if the algorithm can run this call, or
     * DDP_EUNAVAIL with the reason in err. Callers call ddp_coll_supports instead. */
    int (*supports)(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                    struct ddp_err *err);
    /* Returns the bytes of scratch that `run` needs on this rank. The member is NULL if `run` needs
     * no scratch. */
    size_t (*scratch_bytes)(const struct ddp_comm *comm, const struct ddp_coll_shape *shape);
    /* Runs the call. Collective. A call has at least one element, except for a barrier. The buffer
     * `scratch` has scratch_bytes() bytes and is aligned to 64. The scratch of a plan is zeroed
     * before the first call and keeps its contents between calls. */
    int (*run)(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
               struct ddp_err *err);
    enum ddp_cost_model cost_model;
    /* Sets the members of *cost that enum ddp_cost_model names for DDP_COST_COUNTED or
     * DDP_COST_FORMULA. On entry these members are 0. Not used with the other cost models. Callers
     * call ddp_coll_cost_of instead. */
    void (*path)(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost);
};

#define DDP_COLL(symbol) extern const struct ddp_coll_alg ddp_alg_##symbol;
#include "coll/coll_list.h"
#undef DDP_COLL

/* Returns all algorithms in the order of coll_list.h. The array ends with NULL. */
const struct ddp_coll_alg *const *ddp_coll_algorithms(void);
/* Returns NULL if the collective has no algorithm of this name. */
const struct ddp_coll_alg *ddp_coll_find(enum ddp_coll coll, const char *name);
/* Returns 0 if the algorithm can run this call, or DDP_EUNAVAIL with the reason in err. */
int ddp_coll_supports(const struct ddp_coll_alg *alg, const struct ddp_comm *comm,
                      const struct ddp_coll_shape *shape, struct ddp_err *err) DDP_MUST_CHECK;
/* Sets *cost to the cost of one call on `ranks` ranks. These ranks need not exist. With more than
 * 256 ranks, the counted messages and bytes may be too small, for trees by far. */
void ddp_coll_cost_of(const struct ddp_coll_alg *alg, int ranks, const struct ddp_coll_shape *shape,
                      struct ddp_coll_cost *cost);
/* Returns the algorithm that `auto` uses for this shape. The choice does not depend on measurements
 * at run time. Returns NULL and fills err if no algorithm supports the shape. */
const struct ddp_coll_alg *ddp_coll_auto(const struct ddp_comm *comm,
                                         const struct ddp_coll_shape *shape, struct ddp_err *err);
/* Like ddp_coll_auto, but never chooses the collectives of the backend's library. */
const struct ddp_coll_alg *ddp_coll_auto_own(const struct ddp_comm *comm,
                                             const struct ddp_coll_shape *shape,
                                             struct ddp_err *err);

/* Like ddp_coll_supports, but needs no communicator. Assumes that all `ranks` ranks run on one host
 * and that the backend needs no outside launcher. Returns 0, or DDP_EUNAVAIL with the reason in
 * err. */
int ddp_coll_check_offline(const struct ddp_coll_alg *alg, const struct ddp_backend *backend,
                           int ranks, const struct ddp_coll_shape *shape,
                           struct ddp_err *err) DDP_MUST_CHECK;

/* A collective that was checked once and can run many times. */
struct ddp_coll_plan {
    const struct ddp_coll_alg *alg;
    struct ddp_coll_args args;
    struct ddp_coll_shape shape; /* derived from args, as passed to ddp_coll_supports */
    void *scratch;
    size_t scratch_bytes;
    uint64_t bytes; /* message size that the flight recorder shows */
};
/* Checks args and allocates scratch. If `alg` is NULL, uses the algorithm that `auto` chooses. Not
 * collective. The plan stores the array pointers of args, so other arrays need a new plan. The
 * table args->split must not change as long as the plan exists. Returns DDP_EUSAGE if the arrays
 * exceed the address space, DDP_EUNAVAIL if the algorithm does not support the call, or
 * DDP_ENOMEM. */
int ddp_coll_plan_init(struct ddp_coll_plan *plan, struct ddp_comm *comm,
                       const struct ddp_coll_alg *alg, const struct ddp_coll_args *args,
                       struct ddp_err *err) DDP_MUST_CHECK;
void ddp_coll_plan_release(struct ddp_coll_plan *plan);

/* Returns the message size S in bytes, from which bandwidth is computed. S is the size of the
 * larger of the send and recv arrays in the list at the top of this file. */
size_t ddp_coll_message_bytes(enum ddp_coll coll, int ranks, size_t count, enum ddp_dtype dtype);
/* Returns the number of bytes that this rank receives in args->recv, or 0 if this rank receives
 * nothing. */
size_t ddp_coll_recv_bytes(const struct ddp_comm *comm, const struct ddp_coll_args *args);

/* True if a call has no elements and is not a barrier. Such a call returns at once, without waiting
 * for other ranks. A barrier has no elements either, but it waits. `count` may also be a number of
 * bytes. */
static inline bool ddp_coll_is_idle(enum ddp_coll coll, size_t count)
{
    return count == 0 && coll != DDP_BARRIER;
}

/* Runs the plan. If ddp_coll_is_idle() is true for the plan, moves no data and does not wait.
 * Collective. All ranks of the group must run the same plans in the same order. */
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

/* Returns whether ddp_coll_run_many can run the plan. */
bool ddp_coll_has_many(const struct ddp_comm *comm, const struct ddp_coll_plan *plan);
/* Runs the plan `count` times on a device and waits once. The member native_many in comm/backend.h
 * explains `count` and `device_ns`. The flight recorder gets one entry. Collective. */
int ddp_coll_run_many(struct ddp_comm *comm, struct ddp_coll_plan *plan, int64_t count,
                      double *device_ns, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
