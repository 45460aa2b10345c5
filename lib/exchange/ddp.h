/* libddp: data-parallel communication for training frameworks, in C.
 *
 * The API follows nnabla's Communicator: init, groups, all_reduce with division, registered
 * parameters, and a bucketed all-reduce that overlaps with the backward pass. The *world* is all
 * ranks of a job. A process has at most one world (struct ddp) at a time, and uses it in one thread
 * only. In ddp_run's thread mode each thread is a rank and has a world. Functions that can fail
 * return 0 or a negative code of enum ddp_code. On failure they fill *err. err may be NULL.
 * Otherwise initialise *err with DDP_ERR_INIT.
 *
 * All ranks of the group must call the functions marked "collective", in the same order on every
 * rank. A collective call fails on all ranks or on none. The exceptions are ddp_init,
 * ddp_bucketer_finish and the calls of a sync strategy after ddp_sync_create. If one rank rejects
 * its arguments, all ranks return that rank's code and message. If the ranks call different
 * functions or pass different counts, all ranks return DDP_EMISMATCH. The world stays usable after
 * these failures. After DDP_ELOST the world is unusable, and only ddp_finalize may follow.
 *
 * A wait that reaches the deadline (ddp_init_options.timeout_s) returns DDP_ELOST, except inside an
 * MPI call. The library never prints. Except under MPI, it ends only processes that ddp_run has
 * forked. A blocking MPI call cannot be interrupted. If a process is still inside an MPI call at
 * the deadline, a watchdog therefore calls on_lost and then ends the process with exit code 13.
 * With backend mpi, ddp_abort calls MPI_Abort, which ends all processes. The library also calls
 * MPI_Abort if the ranks cannot continue together after a failure. If all ranks are on one host,
 * and the host lets them share memory, the ranks exchange data through shared memory and use MPI
 * only to start and to end.
 *
 * The library does not choose algorithms by measuring, and does not move data between devices. Only
 * the sync strategies (ddp_sync_create) compress. Source of the API: nnabla 1.x, Communicator API
 * reference. */
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

struct ddp;       /* The world, as one rank sees it. */
struct ddp_group; /* A subset of the ranks. Owned by the world, valid until ddp_finalize. */

/* One dense array of `count` elements. The caller owns the data. */
struct ddp_array {
    void *data;
    size_t count;
    enum ddp_dtype dtype;
};

/* Options of ddp_init and ddp_run. A zeroed struct selects the defaults. */
struct ddp_init_options {
    /* Deadline of every wait in seconds. 0 means 60. */
    double timeout_s;
    /* Registered memory (see ddp_alloc) that this rank can hold at a time, in bytes. The real limit
     * may be higher. 0 means 1 GiB. Opening the world reserves only address space. */
    uint64_t heap_bytes;
    /* backend: NULL selects "mpi" under an outside launcher (mpiexec, srun, torchrun), and "self"
     * otherwise. module_dir: folder of ddpbench-mpi-*.so. NULL selects $DDPBENCH_MODULE_DIR. If the
     * variable is not set, the library searches its own folder, then ddpbench/ and ../lib/ddpbench
     * relative to its own folder. */
    const char *backend, *module_dir;
    /* Optional. With backend mpi, the watchdog calls this function with a readable report before it
     * ends the process. */
    void (*on_lost)(void *arg, const char *report);
    void *on_lost_arg;
};

/* Opens a world of all processes that an outside launcher such as mpiexec started. Without an
 * outside launcher, opens a world of one rank. Collective over the world. options may be NULL. An
 * illegal option is reported on this rank only. Errors: DDP_EUSAGE if an option is illegal or this
 * rank already has a world. DDP_EUSAGE also if this process had a world over MPI before, because
 * MPI starts only once in a process. DDP_EMISMATCH if the ranks run different builds of the
 * library. DDP_EMISMATCH also if an outside launcher started several processes and the backend is
 * "self", because each process would then have a world of its own. DDP_EUNAVAIL if no module fits
 * the MPI that started the process. */
int ddp_init(const struct ddp_init_options *options, struct ddp **out,
             struct ddp_err *err) DDP_MUST_CHECK;
/* Closes the world and releases its registered memory, groups, bucketers and strategies. Collective
 * unless the world is lost or aborted. d may be NULL. */
void ddp_finalize(struct ddp *d);

/* Starts `ranks` ranks on this machine over shared memory, runs rank_main(d, arg, err) in each
 * rank, and supervises the ranks. The ranks are processes that this process forks, or threads if
 * `threads` is set. Each rank is initialised before rank_main and finalized after it. Returns when
 * all ranks have ended. Returns 0, or the code of the first rank that failed. err->text then names
 * that rank and its operation. The code is the one that rank_main returned, or DDP_ELOST for a rank
 * that died or hung. Errors: DDP_EUSAGE if `ranks` is outside 1..256, an option is illegal (backend
 * must be NULL or "shm"), or this process already has a world. DDP_EUSAGE also if the ranks are
 * processes and this process has several threads, because only one thread would survive fork(). */
int ddp_run(int ranks, bool threads, const struct ddp_init_options *options,
            int (*rank_main)(struct ddp *d, void *arg, struct ddp_err *err), void *arg,
            struct ddp_err *err) DDP_MUST_CHECK;

int ddp_rank(const struct ddp *d);
int ddp_size(const struct ddp *d);
int ddp_local_rank(const struct ddp *d);
/* Returns the name of the backend that connects the ranks: "shm", "mpi" or "self". */
const char *ddp_name(const struct ddp *d);
/* Ends the world. With backend mpi this ends all processes. Otherwise all pending waits and all
 * later calls on all ranks fail with DDP_ELOST. Not collective; returns immediately. code: the
 * cause, a negative enum ddp_code. */
void ddp_abort(struct ddp *d, int code);
/* Waits until all ranks of the group have called ddp_barrier. Collective over the group. In this
 * and all functions below a NULL group means the world. Errors: DDP_EUSAGE if this rank is not in
 * the group. */
int ddp_barrier(struct ddp *d, struct ddp_group *group, struct ddp_err *err) DDP_MUST_CHECK;

/* Creates a group named `name`. Its members are the world ranks ranks[n], which must be ascending
 * and distinct. Collective over the WORLD: all ranks pass the same arguments, whether they are
 * members or not. Errors: DDP_EUSAGE if the name is empty, longer than 63 bytes or in use ("world"
 * always is). DDP_EUSAGE also if n is 0, or if a rank is out of range, repeated or out of order.
 * DDP_EUNAVAIL if the world already holds 63 groups. A group with bucketers counts twice. */
int ddp_new_group(struct ddp *d, const char *name, const int *ranks, int n,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the handle of a group, or NULL if the name is unknown. Check the result, because NULL
 * means the world in all other calls. The name "world" is valid. A rank outside the group gets the
 * handle too, but its collective calls with this handle return DDP_EUSAGE. */
struct ddp_group *ddp_get_group(struct ddp *d, const char *name);
/* Returns this rank's number within the group, or -1 if this rank is not a member. */
int ddp_group_rank(const struct ddp *d, const struct ddp_group *group);
/* Returns the number of ranks in a group and points *ranks to their world ranks (borrowed). Returns
 * 0 and sets *ranks to NULL if the name is unknown (nnabla returns an empty list). */
int ddp_find_group(const struct ddp *d, const char *name, const int **ranks);
/* Returns the name of the i-th group in order of creation ("world" is the first), or NULL past the
 * end. */
const char *ddp_list_groups(const struct ddp *d, int i);

/* Allocates registered memory, which every rank of the host can access without a copy. Collectives
 * are faster on arrays that lie at the same offset of the same block on all ranks. Collective over
 * the world, with equal `bytes`. The memory is aligned to 4096 bytes and not zeroed. Errors:
 * DDP_ENOMEM if heap_bytes is exceeded, DDP_EMISMATCH if ranks pass different sizes. */
int ddp_alloc(struct ddp *d, size_t bytes, void **out, struct ddp_err *err) DDP_MUST_CHECK;
/* Frees memory from ddp_alloc. Ignores NULL and pointers that ddp_alloc did not return. All ranks
 * call ddp_alloc and ddp_free in the same order. */
void ddp_free(struct ddp *d, void *ptr);

/* Options of a collective. NULL or a zeroed struct means the world, no division, and one collective
 * per dtype. */
struct ddp_call {
    struct ddp_group *group;
    /* division: average instead of sum (integer averages are truncated). each: run one collective
     * per array (nnabla's inplace=True). If `each` is false, one collective processes all arrays of
     * a dtype. If these arrays are not adjacent, or lie at different offsets of registered memory
     * on the ranks, they are packed into one buffer. */
    bool division, each;
};

/* Replaces arrays[n] on all ranks by their sum (or average) over the ranks. The result is
 * bit-identical on all ranks. Collective; call may be NULL. All ranks must pass equal counts and
 * dtypes (else DDP_EMISMATCH). Errors: DDP_EUSAGE if this rank is not a member of the group, n is
 * negative, or arrays is NULL with n above 0. DDP_EUSAGE also if data is NULL with a count above 0,
 * a dtype is unknown, or the arrays exceed the address space. */
int ddp_all_reduce(struct ddp *d, const struct ddp_array *arrays, int n,
                   const struct ddp_call *call, struct ddp_err *err) DDP_MUST_CHECK;
/* Like ddp_all_reduce, but only rank dst OF THE GROUP receives the result. The arrays of other
 * ranks stay unchanged. Further errors: DDP_EUSAGE if dst is out of range, DDP_EMISMATCH if ranks
 * pass different dst. */
int ddp_reduce(struct ddp *d, const struct ddp_array *arrays, int n, int dst,
               const struct ddp_call *call, struct ddp_err *err) DDP_MUST_CHECK;
/* Copies the arrays of rank src OF THE GROUP to all ranks. Errors as for ddp_reduce, and DDP_EUSAGE
 * if call->division is set, because nothing is summed. */
int ddp_bcast(struct ddp *d, const struct ddp_array *arrays, int n, int src,
              const struct ddp_call *call, struct ddp_err *err) DDP_MUST_CHECK;
/* Copies `send` of every rank r into recv[r] of every rank. recv holds one array per rank of the
 * group, each with send's count and dtype (else DDP_EUSAGE). The call is fastest if the arrays of
 * recv are adjacent in memory. `send` may be the array recv[this rank]. */
int ddp_all_gather(struct ddp *d, const struct ddp_array *send, const struct ddp_array *recv,
                   struct ddp_group *group, struct ddp_err *err) DDP_MUST_CHECK;
/* Stores in `recv` of rank r the sum (or average) of send[r] over all ranks. `send` holds one array
 * per rank of the group, each with recv's count and dtype (else DDP_EUSAGE). `send` stays
 * unchanged, except send[this rank] if it is the same array as `recv`. call->each is ignored. */
int ddp_reduce_scatter(struct ddp *d, const struct ddp_array *send, const struct ddp_array *recv,
                       const struct ddp_call *call, struct ddp_err *err) DDP_MUST_CHECK;

/* Registers a parameter. ddp_all_reduce_parameters reduces all registered arrays in one call, in
 * the order in which they were added. Not collective. The data is borrowed until
 * ddp_clear_parameters. Errors: DDP_EUSAGE if the name is in use or empty, data is NULL with a
 * count above 0, or the dtype is unknown. */
int ddp_add_parameter(struct ddp *d, const char *name, struct ddp_array array,
                      struct ddp_err *err) DDP_MUST_CHECK;
void ddp_clear_parameters(struct ddp *d);
/* Behaves like ddp_all_reduce on all registered parameters. */
int ddp_all_reduce_parameters(struct ddp *d, const struct ddp_call *call,
                              struct ddp_err *err) DDP_MUST_CHECK;

/* Bucketed all-reduce during the backward pass. Pass the gradients arrays[n], all of one dtype, in
 * layer order. They become ready in reverse order. The sequence of all elements is cut from its end
 * into buckets of pack_elements elements (0: a single bucket). Only the bucket that fills last may
 * be shorter. A tensor may span several buckets. As soon as the last element of a bucket is ready,
 * a progress thread reduces and unpacks the bucket while the backward pass fills the next one.
 * The arrays are reduced in place, without packing, if all of them are adjacent in memory, and if
 * they lie at the same offset of registered memory on all ranks, or in private memory on all ranks.
 * Usage: create the bucketer once. In each step call ddp_bucketer_ready for n-1, ..., 0 and then
 * ddp_bucketer_finish. When ddp_bucketer_finish returns, every array holds its result. Other
 * collectives may run between these calls. */
struct ddp_bucketer;
/* Creates a bucketer. Collective over call->group; call may be NULL and call->each is ignored. The
 * arrays and the group must outlive the bucketer. Errors as for ddp_all_reduce, and DDP_EUSAGE if
 * the arrays have different dtypes. */
int ddp_bucketer_create(struct ddp *d, const struct ddp_array *arrays, int n, size_t pack_elements,
                        const struct ddp_call *call, struct ddp_bucketer **out,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Reports that arrays[index] is final. The caller must not read or write the array until
 * ddp_bucketer_finish returns. Not collective; never waits. Errors: DDP_EUSAGE if an array is
 * reported out of order or twice in a step. */
int ddp_bucketer_ready(struct ddp_bucketer *b, int index, struct ddp_err *err) DDP_MUST_CHECK;
/* Waits until all buckets are reduced. Collective. *exposed_ns receives the time in ns that this
 * call waited. exposed_ns may be NULL. Errors: DDP_EUSAGE, on this rank only, if an array was never
 * reported ready. */
int ddp_bucketer_finish(struct ddp_bucketer *b, int64_t *exposed_ns,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Waits for pending buckets and frees the bucketer. All ranks make their calls of ddp_alloc,
 * ddp_free and this function in the same order. b may be NULL. */
void ddp_bucketer_destroy(struct ddp_bucketer *b);

/* Sync strategies: how the ranks exchange gradients or parameters in each step of a training. These
 * are the strategies of `ddpbench train --sync`, for example "dense", "fp16", "q8:64",
 * "powersgd:2", "topk:0.01", "threshold:0.05", "zero1" (sharded optimiser), "partial:4", "local:8"
 * and "none". `ddpbench list sync` shows them all. A step consists of these calls:
 *
 *   ddp_sync_begin_step   returns the factor for this rank's gradients
 *   (forward and backward pass; ddp_sync_ready for each tensor, last tensor first)
 *   ddp_sync_finish       then grads holds the gradients for the optimiser
 *   (the optimiser updates the parts that ddp_sync_part returns)
 *   ddp_sync_end_step     then params holds the parameters of the next step
 *
 * Before an evaluation, call ddp_sync_end_epoch. ddp_sync_begin_step, ddp_sync_part and
 * ddp_sync_read_stats are not collective. With `overlap`, ddp_sync_ready is not collective either.
 * The other calls are collective over the world. If the strategy keeps the ranks equal (dense,
 * zero1, and all that compress), all ranks hold the same bits in params after ddp_sync_end_step. */
struct ddp_strategy;

/* Arguments of ddp_sync_create. A zeroed member selects the default, except for params, grads,
 * counts and n. */
struct ddp_sync_options {
    /* Two flat arrays of f32 in host memory, borrowed until ddp_sync_destroy. Each holds all
     * tensors one after another. They may lie in memory from ddp_alloc, which is faster, or in
     * private memory. All ranks must start from the same parameters (ddp_bcast). */
    float *params, *grads;
    const size_t *counts; /* Elements of each tensor in layer order, [n]. */
    int n;
    /* Columns of each tensor as a matrix, [n], for powersgd. 0: a vector. NULL: all vectors. */
    const size_t *cols;
    /* Largest size of a bucket of gradients in bytes. 0: a single bucket. */
    size_t bucket_bytes;
    /* A progress thread exchanges buckets during the backward pass (ddp_sync_ready). */
    bool overlap;
    int feedback;          /* Error feedback. 0: the compressor's default. 1: on. -1: off. */
    const char *algorithm; /* All-reduce algorithm, for example "ring". NULL: auto. */
    uint64_t seed;         /* Seed of stochastic rounding ("q8+sr"). */
};

/* Counters of this rank since ddp_sync_create. */
struct ddp_sync_stats {
    double wire_bytes; /* Bytes that other ranks received, or would receive over a network. */
    /* exchange_ns: duration of the exchanges with encoding and decoding, in ns. exposed_ns: the
     * part of exchange_ns during which the caller waited. */
    int64_t exchange_ns, exposed_ns;
    double density;         /* Fraction of the values that were sent. 1 if not sparse. */
    int64_t overflow_count; /* Values that became infinite in 16 bits. -1: not counted. */
};

/* Creates a strategy from text such as "topk:0.01". Collective over the world: all ranks pass the
 * same text and options, apart from params and grads. Errors: DDP_EUSAGE if the text, the tensors
 * or the algorithm are illegal. DDP_EMISMATCH if the ranks pass different arguments, or if the
 * arrays lie in registered memory at different offsets, or on some ranks only. With several hosts
 * the offsets are not compared. They must still be equal inside each host. DDP_EUNAVAIL if the
 * algorithm cannot run here. DDP_ENOMEM if memory or heap_bytes is exhausted. */
int ddp_sync_create(struct ddp *d, const char *strategy, const struct ddp_sync_options *options,
                    struct ddp_strategy **out, struct ddp_err *err) DDP_MUST_CHECK;
/* Begins a step with `images` samples on this rank and `global` samples on all ranks. *scale
 * receives the factor by which the caller must multiply the gradient of the sum of its losses. Only
 * then is the exchanged gradient the mean over the global batch. Errors: DDP_EUSAGE if the last
 * step has not ended, if global is 0, or if images exceeds global. */
int ddp_sync_begin_step(struct ddp_strategy *s, size_t images, size_t global, double *scale,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Reports that the gradients of `tensor` and of all tensors after it are final. The caller must not
 * access these gradients until ddp_sync_finish returns. With `overlap`, the progress thread
 * exchanges a bucket as soon as all its tensors are reported. Without `overlap`, this call
 * exchanges such a bucket. ddp_sync_finish exchanges the other buckets, so a caller need not report
 * tensors. Errors: DDP_EUSAGE if the tensor is out of range or not below the last reported tensor,
 * or if no step has begun. */
int ddp_sync_ready(struct ddp_strategy *s, int tensor, struct ddp_err *err) DDP_MUST_CHECK;
/* Completes the exchange of gradients. Errors: DDP_EUSAGE if no step has begun. */
int ddp_sync_finish(struct ddp_strategy *s, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the number of parts of params that the optimiser of this rank updates, at least 1 if
 * there is a parameter. Only zero1 has several parts or less than the whole array. If 0 <= i <
 * number, *begin and *count receive the i-th part in elements. */
int ddp_sync_part(const struct ddp_strategy *s, int i, size_t *begin, size_t *count);
/* Ends the step, after the optimiser. zero1 gathers the updated parts. partial, local and diloco
 * average parameters if an average is due after this step. Errors: DDP_EUSAGE if ddp_sync_finish
 * was not called. */
int ddp_sync_end_step(struct ddp_strategy *s, struct ddp_err *err) DDP_MUST_CHECK;
/* Averages the parameters that were not averaged since they changed (local, diloco). Call this
 * function between steps, before the model is evaluated or stored. */
int ddp_sync_end_epoch(struct ddp_strategy *s, struct ddp_err *err) DDP_MUST_CHECK;
/* Fills *out. Not collective. Call this function between steps only. */
void ddp_sync_read_stats(const struct ddp_strategy *s, struct ddp_sync_stats *out);
/* Waits for pending exchanges and frees the strategy, which may be NULL. All ranks make their calls
 * of ddp_alloc, ddp_free and this function in the same order. */
void ddp_sync_destroy(struct ddp_strategy *s);

#ifdef __cplusplus
}

/* C++ before C++20 has no designated initialisers. */
#undef DDP_ERR_INIT
#define DDP_ERR_INIT (ddp_err{0, -1, false, false, "", ""})
#endif
#endif
