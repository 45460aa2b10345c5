/* The flight recorder holds the last operations of a rank. If it lies in a shared segment, another
 * process can read it after the rank has died.
 *
 * A rank writes only its own recorder. Recorders lie in the shared segment if there is one, else in
 * the heap of the process. The supervisor, watchdog threads, and ranks that report a hang read
 * them. Recording an operation takes a few stores, without locks, clock reads or function calls.
 * All members of an entry are stored before the operation is counted in `entered`. ddp_flight_at()
 * returns false if the entry was overwritten during the read. */
#ifndef DDP_DIAG_FLIGHT_H
#define DDP_DIAG_FLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_FLIGHT_DEPTH 1024 /* recorded operations; a power of two */

enum ddp_flight_state { DDP_FLIGHT_IDLE, DDP_FLIGHT_ENTERED, DDP_FLIGHT_DONE, DDP_FLIGHT_FAILED };

/* An operation that a rank enters. */
struct ddp_flight_op {
    unsigned what, dtype; /* what: enum ddp_coll, or DDP_FLIGHT_SEND and up */
    /* group: id of the communicator (comm.h), 0 for the world. seq: number of the operation on
     * the communicator. This number is the same on all ranks of the communicator, so that recorders
     * can be compared. Collectives are counted apart from other operations (exchange, alloc).
     * DDP_FLIGHT_NO_SEQ: the operation concerns only this rank. */
    uint64_t bytes, group, seq;
    int ranks; /* ranks of the communicator */
};
#define DDP_FLIGHT_NO_SEQ UINT64_MAX

/* One recorded operation. All members are atomics, because another thread may read while the owner
 * writes. All members except `state` are stored with relaxed order, which compiles to plain
 * stores. */
struct ddp_flight_entry {
    _Atomic(uint64_t) group, seq, bytes;
    _Atomic(uint16_t) ranks;
    _Atomic(uint8_t) what, dtype;
    _Atomic(uint8_t) state;
};

#define DDP_FLIGHT_PHASE_BYTES 192

/* A flight recorder. It is empty if all bytes are zero. */
struct ddp_flight {
    /* The number of working ranks while this rank is in ddp_comm_agree_idle, else 0. */
    _Atomic(int32_t) working;
    /* 1 while the rank computes (ddp_flight_compute), else 0. */
    _Atomic(uint32_t) computing;
    /* Number of calls of ddp_flight_beat, and of matrix products (model/blas.h). */
    _Atomic(uint32_t) beats;
    _Atomic(uint64_t) entered; /* number of operations so far; operation i is ring[i % DEPTH] */
    /* Number of phases so far. The lowest bit of this number selects the half of `phase` that holds
     * the current text. The owner writes a new text into the other half. */
    _Atomic(uint32_t) phase_version;
    /* NUL-terminated text that says what part of the run the rank is in ("init",
     * "allreduce/shm/.../67108864", "epoch 3 step 41"). */
    _Atomic(uint64_t) phase[2][DDP_FLIGHT_PHASE_BYTES / 8];
    struct ddp_flight_entry ring[DDP_FLIGHT_DEPTH];
};

/* Records that the rank enters an operation. Returns the index for ddp_flight_leave. */
static inline uint64_t ddp_flight_enter_op(struct ddp_flight *f, const struct ddp_flight_op *op)
{
    uint64_t i = atomic_load_explicit(&f->entered, memory_order_relaxed);
    struct ddp_flight_entry *e = &f->ring[i % DDP_FLIGHT_DEPTH];
    atomic_store_explicit(&e->group, op->group, memory_order_relaxed);
    atomic_store_explicit(&e->seq, op->seq, memory_order_relaxed);
    atomic_store_explicit(&e->bytes, op->bytes, memory_order_relaxed);
    atomic_store_explicit(&e->ranks, (uint16_t)op->ranks, memory_order_relaxed);
    atomic_store_explicit(&e->what, (uint8_t)op->what, memory_order_relaxed);
    atomic_store_explicit(&e->dtype, (uint8_t)op->dtype, memory_order_relaxed);
    atomic_store_explicit(&e->state, DDP_FLIGHT_ENTERED, memory_order_release);
    atomic_store_explicit(&f->entered, i + 1, memory_order_release);
    return i;
}

/* Records an operation that concerns only this rank. */
static inline uint64_t ddp_flight_enter(struct ddp_flight *f, unsigned what, unsigned dtype,
                                        uint64_t bytes)
{
    struct ddp_flight_op op;
    op.what = what;
    op.dtype = dtype;
    op.bytes = bytes;
    op.group = 0;
    op.seq = DDP_FLIGHT_NO_SEQ;
    op.ranks = 1;
    return ddp_flight_enter_op(f, &op);
}

/* Records that the operation with this index has ended. */
static inline void ddp_flight_leave(struct ddp_flight *f, uint64_t index, int failed)
{
    atomic_store_explicit(&f->ring[index % DDP_FLIGHT_DEPTH].state,
                          failed ? DDP_FLIGHT_FAILED : DDP_FLIGHT_DONE, memory_order_release);
}

/* Records that a computing rank makes progress. */
static inline void ddp_flight_beat(struct ddp_flight *f)
{
    uint32_t beats = atomic_load_explicit(&f->beats, memory_order_relaxed);
    atomic_store_explicit(&f->beats, beats + 1, memory_order_relaxed);
}

/* Records that the rank begins or ends a computation outside operations. Between the call for the
 * beginning and the call for the end, the rank must enter an operation, set a phase or call
 * ddp_flight_beat at least once per timeout, else the supervisor or the watchdog ends the run. */
static inline void ddp_flight_compute(struct ddp_flight *f, bool begin)
{
    ddp_flight_beat(f);
    atomic_store_explicit(&f->computing, begin, memory_order_release);
}

/* Returns a number that changes when the rank enters an operation, sets a phase or calls
 * ddp_flight_beat. */
static inline uint64_t ddp_flight_progress(const struct ddp_flight *f)
{
    return atomic_load_explicit(&f->entered, memory_order_relaxed) +
           atomic_load_explicit(&f->phase_version, memory_order_relaxed) +
           atomic_load_explicit(&f->beats, memory_order_relaxed);
}

/* Sets the phase. Text that does not fit is cut. Must not be called in timed regions. */
void ddp_flight_phase(struct ddp_flight *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Writes one line for users. During an operation, or if it failed: "allreduce seq 41 (64 MiB, f32)
 * in phase 'epoch 3 step 41'". Between operations: "phase 'epoch 3 step 41', after allreduce seq 41
 * (64 MiB, f32)". Before the first operation: "phase 'init', no operation yet". May be called while
 * the owner writes and after the owner has died. */
void ddp_flight_describe(const struct ddp_flight *f, char *out, size_t out_bytes);
/* Returns true if the rank has entered an operation and not left it. Sets *index to the index of
 * the newest operation if there is one. */
bool ddp_flight_busy(const struct ddp_flight *f, uint64_t *index);
/* Reads the newest operation and its state. Returns false if there is none, or if its entry was
 * overwritten during the read. */
bool ddp_flight_newest(const struct ddp_flight *f, struct ddp_flight_op *op,
                       enum ddp_flight_state *state);
/* Writes "allreduce seq 41", or for a group "allreduce seq 41 of a group of 3". */
void ddp_flight_name(const struct ddp_flight_op *op, char *out, size_t out_bytes);
/* Writes " (64 MiB, f32)", " (16 B)", or "" for a barrier. */
void ddp_flight_size(const struct ddp_flight_op *op, char *out, size_t out_bytes);
/* Writes the phase as printable text, or "start" before the first phase. */
void ddp_flight_phase_text(const struct ddp_flight *f, char *out, size_t out_bytes);
/* Reads an operation by its index. Returns false if the ring does not hold it yet, or no longer
 * holds it. */
bool ddp_flight_at(const struct ddp_flight *f, uint64_t index, struct ddp_flight_op *op,
                   enum ddp_flight_state *state);
/* Returns the name of an operation, given its `what`. */
const char *ddp_flight_what(unsigned what);

/* Values of `what` after those of enum ddp_coll (coll_kind.h). */
#define DDP_FLIGHT_SEND     32
#define DDP_FLIGHT_RECV     33
#define DDP_FLIGHT_EXCHANGE 34
#define DDP_FLIGHT_ALLOC    35

#ifdef __cplusplus
}
#endif
#endif
