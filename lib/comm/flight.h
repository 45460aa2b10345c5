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

/* what: enum ddp_coll, or DDP_FLIGHT_SEND and up. All fields are atomics written with relaxed order
 * (plain stores to the processor), because a watching thread may read while the owner writes. */
struct ddp_flight_entry {
    _Atomic(uint64_t) seq;
    _Atomic(uint64_t) bytes;
    _Atomic(uint8_t) what, dtype;
    _Atomic(uint8_t) state;
};

#define DDP_FLIGHT_PHASE_BYTES 192

/* phase: where in the run the rank is ("init", "allreduce/shm/.../67108864", "epoch 3 step 41");
 * phase_version counts them and its lowest bit says which of the two texts holds, so that one that
 * is being written, or never will be to its end, is not seen. All zero bytes is an empty recorder.
 */
struct ddp_flight {
    _Atomic(uint64_t) seq; /* operations entered so far; entry of operation s is ring[s % DEPTH] */
    _Atomic(uint32_t) phase_version;
    _Atomic(uint64_t) phase[2][DDP_FLIGHT_PHASE_BYTES / 8]; /* text, NUL-terminated */
    struct ddp_flight_entry ring[DDP_FLIGHT_DEPTH];
};

static inline uint64_t ddp_flight_enter(struct ddp_flight *f, unsigned what, unsigned dtype,
                                        uint64_t bytes)
{
    uint64_t s = atomic_load_explicit(&f->seq, memory_order_relaxed);
    struct ddp_flight_entry *e = &f->ring[s % DDP_FLIGHT_DEPTH];
    atomic_store_explicit(&e->seq, s, memory_order_relaxed);
    atomic_store_explicit(&e->bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&e->what, (uint8_t)what, memory_order_relaxed);
    atomic_store_explicit(&e->dtype, (uint8_t)dtype, memory_order_relaxed);
    atomic_store_explicit(&e->state, DDP_FLIGHT_ENTERED, memory_order_release);
    atomic_store_explicit(&f->seq, s + 1, memory_order_release);
    return s;
}

static inline void ddp_flight_leave(struct ddp_flight *f, uint64_t s, int failed)
{
    atomic_store_explicit(&f->ring[s % DDP_FLIGHT_DEPTH].state,
                          failed ? DDP_FLIGHT_FAILED : DDP_FLIGHT_DONE, memory_order_release);
}

/* Sets the phase (truncated); not for timed regions. */
void ddp_flight_phase(struct ddp_flight *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* One line for people: "allreduce seq 41 (64 MiB, f32) in phase 'epoch 3 step 41'"; between
 * operations "phase 'epoch 3 step 41', after allreduce seq 41 (64 MiB, f32)"; before the first
 * "phase 'init', no operation yet". Safe while the owner writes, and after it died. */
void ddp_flight_describe(const struct ddp_flight *f, char *out, size_t out_bytes);
/* Is an operation under way (entered, not left)? *seq: its number. */
bool ddp_flight_busy(const struct ddp_flight *f, uint64_t *seq);
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
