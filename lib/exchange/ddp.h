/* libddp: data-parallel communication for a training framework, in C.
 *
 * What nnabla's Communicator offers (init, groups, all_reduce with division, registered parameters,
 * bucketed all-reduce during backward), on ddpbench's engine. One `struct ddp` a process (with
 * ddp_run's thread mode: a thread), used by one thread. Every function that can fail returns 0 or a
 * negative code of enum ddp_code and fills *err, which may be NULL, or is DDP_ERR_INIT before.
 *
 * Functions marked "collective" must be called by all ranks of the group, in the same order. They
 * fail on all ranks or on none: a rank that refuses its arguments takes the others along, with its
 * code and words, and ranks that call different things, or with different counts, learn so
 * (DDP_EMISMATCH) instead of waiting for each other. After these two everything can go on; after
 * DDP_ELOST the world is unusable, and only ddp_finalize may follow.
 *
 * Every wait ends at the deadline (ddp_init_options.timeout_s) with DDP_ELOST. Nothing prints,
 * nothing exits, but for MPI: its blocking calls cannot be left, so under mpiexec a watchdog ends
 * the process with exit code 13 at the deadline, after on_lost, when it is inside one of them.
 * Ranks that all share a host exchange through its memory, and MPI only starts them. ddp_abort and
 * any failure there is MPI_Abort, which ends all processes.
 *
 * What this does not do: choose by measuring, compress (see sync.h), or move data between devices.
 * Source of the model: nnabla 1.x, Communicator API reference. */
#ifndef DDP_EXCHANGE_DDP_H
#define DDP_EXCHANGE_DDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp;       /* the world, seen from one rank */
struct ddp_group; /* some of its ranks; owned by the world, valid until ddp_finalize */

/* One dense array: data [count] of dtype, owned by the caller. */
struct ddp_array {
    void *data;
    size_t count;
    enum ddp_dtype dtype;
};

/* All zero: the defaults. timeout_s: deadline of every wait, 0: 60. heap_bytes: registered memory
 * this rank can have at once, at least; 0: 1 GiB (address space only). backend: NULL: mpi under
 * mpiexec, else self. module_dir: where ddpbench-mpi-*.so lie; NULL: $DDPBENCH_MODULE_DIR, else
 * beside the library or in ../lib/ddpbench. on_lost: under mpiexec, called by the watchdog with a
 * line for people before it ends the process; may be NULL. */
struct ddp_init_options {
    double timeout_s;
    uint64_t heap_bytes;
    const char *backend, *module_dir;
    void (*on_lost)(void *arg, const char *story);
    void *on_lost_arg;
};

/* Opens the world this process was started into (mpiexec), or a world of one. Collective over the
 * world. options may be NULL.
 * DDP_EUSAGE: this rank has a world already (under mpiexec: had; MPI starts once a process), an
 * option is illegal. DDP_EMISMATCH: mpiexec started more than one process, and backend 'self' would
 * make worlds of one of them. DDP_EUNAVAIL: no module for the MPI that started us. */
int ddp_init(const struct ddp_init_options *options, struct ddp **out,
             struct ddp_err *err) DDP_MUST_CHECK;
/* Collective when healthy. NULL is fine. Registered memory, groups, bucketers end with it. */
void ddp_finalize(struct ddp *d);

/* Starts `ranks` ranks on this machine over shared memory, runs rank_main(d, arg) in each, and
 * supervises them: processes forked from this one (threads: as threads). In each rank ddp_init is
 * already done; d is finalized for it. Returns when all are gone: 0, or the code of the first that
 * failed (rank_main's own, DDP_ELOST for one that died or hung), err->text naming rank and
 * operation.
 * DDP_EUSAGE: ranks out of 1..256, an option is illegal (backend: NULL or "shm"), this process has
 * a world, or (processes) has other threads, which a fork would cut off. */
int ddp_run(int ranks, bool threads, const struct ddp_init_options *options,
            int (*rank_main)(struct ddp *d, void *arg, struct ddp_err *err), void *arg,
            struct ddp_err *err) DDP_MUST_CHECK;

int ddp_rank(const struct ddp *d);
int ddp_size(const struct ddp *d);
int ddp_local_rank(const struct ddp *d);
/* "shm", "mpi", "self": how ranks reach each other. */
const char *ddp_name(const struct ddp *d);
/* Ends all waits of all ranks with DDP_ELOST, and all later calls. Not collective, returns at once.
 * code: why, a negative enum ddp_code. */
void ddp_abort(struct ddp *d, int code);
/* group NULL means the world, here and below. Collective over the group.
 * DDP_EUSAGE: this rank is not in the group. */
int ddp_barrier(struct ddp *d, struct ddp_group *group, struct ddp_err *err) DDP_MUST_CHECK;

/* A named group over ranks[n] of the world, ascending and distinct. Collective over the WORLD: all
 * ranks call it alike, members or not.
 * DDP_EUSAGE: name taken ("world" always is) or empty or longer than 63 bytes, a rank out of range
 * or repeated or out of order, n 0. DDP_EUNAVAIL: no room for another (there is for 63; a group
 * with bucketers counts twice). */
int ddp_new_group(struct ddp *d, const char *name, const int *ranks, int n,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* The handle of a group; NULL when the name is unknown (check it: NULL means the world elsewhere).
 * "world" works. A rank that is not in the group has the handle too, and DDP_EUSAGE from every call
 * with it. */
struct ddp_group *ddp_get_group(struct ddp *d, const char *name);
/* This rank, counted within the group; -1 when it is not in it. */
int ddp_group_rank(const struct ddp *d, const struct ddp_group *group);
/* Ranks of a group: returns their number and sets *ranks (borrowed); 0 and NULL when unknown (as
 * nnabla's empty list). */
int ddp_find_group(const struct ddp *d, const char *name, const int **ranks);
/* Name of the i-th group in order of creation ("world" first); NULL past the end. */
const char *ddp_list_groups(const struct ddp *d, int i);

/* Memory every rank of a host can reach without a copy: exchanges of such arrays are faster when
 * they lie at the same place of the same block on all ranks. Collective over the world, equal
 * bytes. Aligned to 4096; not zeroed. DDP_ENOMEM: beyond heap_bytes; DDP_EMISMATCH: other bytes
 * than other ranks. */
int ddp_alloc(struct ddp *d, size_t bytes, void **out, struct ddp_err *err) DDP_MUST_CHECK;
/* ptr from ddp_alloc; NULL, and what is no such memory, are ignored. All ranks, same order as other
 * ddp_alloc and ddp_free. */
void ddp_free(struct ddp *d, void *ptr);

/* How a collective treats its arrays; zero or NULL: sum, packed, the world. division: average
 * instead of sum (integers: truncated). each: one collective an array, in place (nnabla's
 * inplace=True); else all arrays are packed into one buffer, one collective, and unpacked. Mixed
 * dtypes are packed per dtype. */
struct ddp_call {
    struct ddp_group *group;
    bool division, each;
};

/* All ranks end with the sum (average) of arrays[n], bit for bit the same. Collective; call may be
 * NULL. Equal counts and dtypes on all ranks (DDP_EMISMATCH).
 * DDP_EUSAGE: not a member of the group, NULL data with a count, an unknown dtype, n < 0. */
int ddp_all_reduce(struct ddp *d, const struct ddp_array *arrays, int n,
                   const struct ddp_call *call, struct ddp_err *err) DDP_MUST_CHECK;
/* Only rank dst OF THE GROUP ends with the result; other ranks' arrays are unchanged. Errors as
 * ddp_all_reduce, and DDP_EUSAGE: dst out of range. DDP_EMISMATCH: another dst than other ranks. */
int ddp_reduce(struct ddp *d, const struct ddp_array *arrays, int n, int dst,
               const struct ddp_call *call, struct ddp_err *err) DDP_MUST_CHECK;
/* All ranks end with the arrays of rank src OF THE GROUP. Errors as ddp_reduce, and DDP_EUSAGE: a
 * division, of which there is none here. */
int ddp_bcast(struct ddp *d, const struct ddp_array *arrays, int n, int src,
              const struct ddp_call *call, struct ddp_err *err) DDP_MUST_CHECK;
/* send [count] of every rank r lands in recv[r] [count] of every rank; recv has group-size arrays
 * of send's count and dtype (DDP_EUSAGE). Fastest when they follow each other in memory. In place:
 * send is recv[this rank]. */
int ddp_all_gather(struct ddp *d, const struct ddp_array *send, const struct ddp_array *recv,
                   struct ddp_group *group, struct ddp_err *err) DDP_MUST_CHECK;
/* recv [count] of rank r gets the sum (average) over ranks of send[r]; send has group-size arrays
 * of recv's count and dtype (DDP_EUSAGE) and is unchanged, but for send[this rank] when that is
 * recv. call->each has no meaning here. */
int ddp_reduce_scatter(struct ddp *d, const struct ddp_array *send, const struct ddp_array *recv,
                       const struct ddp_call *call, struct ddp_err *err) DDP_MUST_CHECK;

/* Registered parameters: arrays that ddp_all_reduce_parameters reduces in one call, in the order
 * they were added. Not collective. Data is borrowed until cleared.
 * DDP_EUSAGE: the name is taken or empty, NULL data with a count, an unknown dtype. */
int ddp_add_parameter(struct ddp *d, const char *name, struct ddp_array array,
                      struct ddp_err *err) DDP_MUST_CHECK;
void ddp_clear_parameters(struct ddp *d);
/* As ddp_all_reduce. */
int ddp_all_reduce_parameters(struct ddp *d, const struct ddp_call *call,
                              struct ddp_err *err) DDP_MUST_CHECK;

/* Bucketed all-reduce during backward. Gradients arrays[n] are given in layer order and become
 * ready in reverse; they are cut, from the end, into buckets of exactly pack_elements (the last to
 * fill may be shorter; a tensor may span buckets; 0: one bucket). A bucket is reduced by a progress
 * thread as soon as its last element is ready, and unpacked by it, while backward goes on and the
 * next bucket is packed; the thread sleeps when idle. Arrays that follow each other in memory on
 * all ranks are reduced where they are. All arrays have one dtype.
 * Use: create once; each step ready(n-1) ... ready(0), then finish, which returns when every array
 * holds its result. Other collectives may be called meanwhile. */
struct ddp_bucketer;
/* Collective over call's group (call may be NULL; call->each has no meaning here); the arrays and
 * call->group outlive the bucketer. Errors as ddp_all_reduce, and DDP_EUSAGE: mixed dtypes. */
int ddp_bucketer_create(struct ddp *d, const struct ddp_array *arrays, int n, size_t pack_elements,
                        const struct ddp_call *call, struct ddp_bucketer **out,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* arrays[index] is final: not to be read or written until finish. DDP_EUSAGE: out of order, or
 * twice in a step. Not collective, does not wait. */
int ddp_bucketer_ready(struct ddp_bucketer *b, int index, struct ddp_err *err) DDP_MUST_CHECK;
/* Collective. DDP_EUSAGE, on this rank, when an array never became ready. *exposed_ns (may be
 * NULL): how long this call waited. */
int ddp_bucketer_finish(struct ddp_bucketer *b, int64_t *exposed_ns,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Waits for what is under way. All ranks, same order as ddp_alloc and ddp_free. NULL is fine. */
void ddp_bucketer_destroy(struct ddp_bucketer *b);

#ifdef __cplusplus
}

/* C++ before 20 has no designated initialisers. */
#undef DDP_ERR_INIT
#define DDP_ERR_INIT (ddp_err{0, -1, false, "", ""})
#endif
#endif
