/* The flight recorder: what each rank was doing, readable by another process after the rank is
 * dead.
 *
 * A rank writes its own slot only; slots lie in memory the supervisor also maps (or in the
 * process's own heap under mpiexec, where the watchdog thread reads them). Writing costs a few
 * stores: no lock, no clock read, no call. A reader may see an entry half written; `state` is
 * stored last with release order. */
#ifndef DDP_COMM_FLIGHT_H
#define DDP_COMM_FLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_FLIGHT_DEPTH 1024 /* operations remembered; a power of two */

enum ddp_flight_state { DDP_FLIGHT_IDLE, DDP_FLIGHT_ENTERED, DDP_FLIGHT_DONE, DDP_FLIGHT_FAILED };

/* What is entered. what: enum ddp_coll, or DDP_FLIGHT_SEND and up. group: which communicator, the
 * same word on all its ranks, 0 the world; ranks: how many it has. seq: which of its collectives,
 * counted alike on all its ranks, so that recorders can be compared; control traffic counts apart.
 * DDP_FLIGHT_NO_SEQ: concerns this rank alone. */
struct ddp_flight_op {
    unsigned what, dtype;
    uint64_t bytes, group, seq;
    int ranks;
};
#define DDP_FLIGHT_NO_SEQ UINT64_MAX

/* All fields are atomics written with relaxed order (plain stores to the processor), because a
 * watching thread may read while the owner writes. */
struct ddp_flight_entry {
    _Atomic(uint64_t) group, seq, bytes;
    _Atomic(uint16_t) ranks;
    _Atomic(uint8_t) what, dtype;
    _Atomic(uint8_t) state;
};

#define DDP_FLIGHT_PHASE_BYTES 192

/* phase: where in the run the rank is ("init", "allreduce/shm/.../67108864", "epoch 3 step 41");
 * phase_version counts them and its lowest bit says which of the two texts holds, so that one that
 * is being written, or never will be to its end, is not seen. untimed: no deadline holds for what
 * this rank waits for now (ddp_comm_agree_untimed). All zero bytes is an empty recorder.
 */
struct ddp_flight {
    _Atomic(bool) untimed;
    _Atomic(uint64_t) entered; /* operations so far; entry of operation i is ring[i % DEPTH] */
    _Atomic(uint32_t) phase_version;
    _Atomic(uint64_t) phase[2][DDP_FLIGHT_PHASE_BYTES / 8]; /* text, NUL-terminated */
    struct ddp_flight_entry ring[DDP_FLIGHT_DEPTH];
};

/* Returns the operation's index in this recorder, for ddp_flight_leave. */
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

/* An operation that concerns this rank alone. */
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

static inline void ddp_flight_leave(struct ddp_flight *f, uint64_t index, int failed)
{
    atomic_store_explicit(&f->ring[index % DDP_FLIGHT_DEPTH].state,
                          failed ? DDP_FLIGHT_FAILED : DDP_FLIGHT_DONE, memory_order_release);
}

/* Sets the phase (truncated); not for timed regions. */
void ddp_flight_phase(struct ddp_flight *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* One line for people: "allreduce seq 41 (64 MiB, f32) in phase 'epoch 3 step 41'"; between
 * operations "phase 'epoch 3 step 41', after allreduce seq 41 (64 MiB, f32)"; before the first
 * "phase 'init', no operation yet". Safe while the owner writes, and after it died. */
void ddp_flight_describe(const struct ddp_flight *f, char *out, size_t out_bytes);
/* Is an operation under way (entered, not left)? *index: as ddp_flight_enter gave it. */
bool ddp_flight_busy(const struct ddp_flight *f, uint64_t *index);
/* The newest operation, as it stands; false when there was none. */
bool ddp_flight_newest(const struct ddp_flight *f, struct ddp_flight_op *op,
                       enum ddp_flight_state *state);
/* "allreduce seq 41", of a group "allreduce seq 41 of a group of 3". */
void ddp_flight_name(const struct ddp_flight_op *op, char *out, size_t out_bytes);
/* " (64 MiB, f32)", " (16 B)", or "" where there is nothing to say. */
void ddp_flight_size(const struct ddp_flight_op *op, char *out, size_t out_bytes);
/* The text of the phase, printable; "start" before the first. */
void ddp_flight_phase_text(const struct ddp_flight *f, char *out, size_t out_bytes);
/* An operation by its index, if the ring still has it. */
bool ddp_flight_at(const struct ddp_flight *f, uint64_t index, struct ddp_flight_op *op,
                   enum ddp_flight_state *state);
/* Names of operations, index = `what`. */
const char *ddp_flight_what(unsigned what);

/* enum ddp_coll values come first (coll_kind.h); these follow. */
#define DDP_FLIGHT_SEND     32
#define DDP_FLIGHT_RECV     33
#define DDP_FLIGHT_EXCHANGE 34
#define DDP_FLIGHT_ALLOC    35

#ifdef __cplusplus
}
#endif
#endif
