/* The shared segment of the ranks of one host: a memory file without a name that disappears with
 * the last process that maps it. Our launcher maps it before it forks the ranks, so it has the same
 * address in every rank and in the supervisor. Under mpiexec the host's lowest rank makes it and
 * the others attach it at any address (hosts.h).
 *
 * Users: the launcher (results of ranks, abort word) and the shm backend (all of it). The file is
 * sparse: only pages that are touched cost memory. Layout, each part at a page boundary:
 *
 *   struct ddp_segment                                 sizes, abort word, use of the channels
 *   struct ddp_segment_rank  [ranks]                   result, error and flight recorder of a rank
 *   channel                  [DDP_SEGMENT_CHANNELS]    flag slots, slots and rings of one group
 *   pipe                     [ranks * ranks]           point-to-point ring of a (source, target)
 *   heap                     [ranks]                   registered memory, 2 MiB aligned
 *
 * It neither waits nor decides which rank caused a failure. */
#ifndef DDP_COMM_SEGMENT_H
#define DDP_COMM_SEGMENT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "comm/comm_shm.h"
#include "comm/flight.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_SEGMENT_MAGIC    0x31676573706464ull /* "ddpseg1" */
#define DDP_SEGMENT_CHANNELS 65                  /* channel 0: the world; 64 groups at a time */
#define DDP_SEGMENT_HUGE     (2u << 20)

/* A pipe is a ring of slots, each a header and payload. With 8 slots a sender can run ahead for a
 * time slice if ranks share a core. 256 ranks reserve 8.5 GiB of address space for pipes and touch
 * only those they use. */
#define DDP_PIPE_SLOTS         8
#define DDP_PIPE_SLOT_BYTES    (16u << 10)
#define DDP_PIPE_HEADER_BYTES  64u
#define DDP_PIPE_PAYLOAD_BYTES (DDP_PIPE_SLOT_BYTES - DDP_PIPE_HEADER_BYTES)
#define DDP_PIPE_STRIDE        (4096u + DDP_PIPE_SLOTS * DDP_PIPE_SLOT_BYTES)

enum ddp_segment_state { DDP_RANK_STARTING, DDP_RANK_RUNNING, DDP_RANK_DONE };

/* Data of one rank. */
struct ddp_segment_rank {
    alignas(64) _Atomic(int32_t) state;
    /* Result of the rank, like err; written before `state` becomes DDP_RANK_DONE (release), and not
     * changed later. */
    int32_t code;
    uint64_t opens;                  /* worlds that this rank has opened; private to the rank */
    _Atomic(int32_t) world_rank;     /* its rank in the world, which may have other hosts */
    _Atomic(uint32_t) progress_used; /* 1 once `progress` is in use */
    struct ddp_err err;
    /* The recorders of the rank and of its first progress thread (coll/async.h). */
    struct ddp_flight flight, progress;
};

/* Use of one channel. */
struct ddp_segment_channel {
    alignas(64) _Atomic(uint64_t) generation; /* number of groups that have used and left it */
    _Atomic(uint32_t) left;                   /* members of the present group that have left */
};

/* State of one pipe. */
struct ddp_segment_pipe {
    alignas(64) _Atomic(uint64_t) tail; /* slots filled so far; written by the sender */
    alignas(64) _Atomic(uint64_t) head; /* slots emptied so far; written by the receiver */
};
struct ddp_pipe_slot {
    uint64_t context; /* id of the communicator */
    uint64_t total;   /* bytes of the whole message */
    uint32_t bytes;   /* bytes of the message in this slot */
    int32_t tag;
    uint32_t first; /* 1 in the first slot of a message */
};

struct ddp_segment {
    uint64_t magic, total_bytes;
    int32_t ranks;
    bool oversubscribed; /* more ranks than cores; decided by the creator so that all ranks agree */
    uint64_t ranks_offset, channels_offset, channel_stride, pipes_offset;
    uint64_t heap_offset, heap_stride; /* distance of two heaps, and the most a rank may allocate */
    /* The first failure: (culprit rank + 1) << 8 | -code, or 0. A culprit of 0 means that no rank
     * is to blame. */
    alignas(64) _Atomic(uint32_t) abort_word;
    _Atomic(int32_t) abort_setter; /* rank + 1 that set the abort word, 0: the supervisor; written
                                      after the word */
    /* INT64_MAX while the collector handles a message, else the time when it last finished one
     * (ddp_now_ns). Waits of other ranks are extended by it, because the sender waits for the
     * collector. */
    _Atomic(int64_t) collector_busy_ns;
    alignas(64) _Atomic(uint64_t) channels_used; /* bit i: channel i + 1 is in use */
    struct ddp_segment_channel channel[DDP_SEGMENT_CHANNELS];
};

/* Creates and maps a segment whose contents are all zero. ranks: 1 to DDP_SHM_RANKS_MAX.
 * heap_bytes: registered memory that a rank needs at once; more than twice as much address space is
 * reserved, so that rounding and fragmentation never make an announced request fail. *fd becomes
 * the memory file. Returns DDP_ENOMEM if address space or a limit (ulimit -v, -f) is too small. */
int ddp_segment_create(int ranks, uint64_t heap_bytes, struct ddp_segment **out, int *fd,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Maps the segment that another process made for `ranks` ranks, from its memory file. The caller
 * keeps fd. Returns DDP_EMISMATCH if the file is not such a segment, and DDP_ENOMEM as above. */
int ddp_segment_attach(int fd, int ranks, struct ddp_segment **out,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Unmaps the segment and closes fd. NULL and -1 are allowed. */
void ddp_segment_destroy(struct ddp_segment *segment, int fd);

/* Sets the abort word unless it is set; returns true if this call set it. culprit: the rank to
 * blame, -1: none. setter: the calling rank, -1: the supervisor. code: negative. */
bool ddp_segment_abort(struct ddp_segment *segment, int culprit, int setter, int code);
/* Reads the abort word; returns false if there was no abort. Any pointer may be NULL. */
bool ddp_segment_aborted(const struct ddp_segment *segment, int *culprit, int *setter, int *code);
/* Writes one line about the rank's current operation, from its recorder and, if it is in an
 * operation, its progress thread's. `rank` counts the segment's ranks. */
void ddp_segment_describe(const struct ddp_segment *segment, int rank, char *out, size_t out_bytes);

static inline struct ddp_segment_rank *ddp_segment_rank_of(const struct ddp_segment *s, int rank)
{
    return (struct ddp_segment_rank *)((char *)(uintptr_t)s + s->ranks_offset) + rank;
}
/* Returns the start of a channel: flag slots [ranks][DDP_SHM_FLAG_SLOTS], then slots, then rings,
 * sized for the world. */
static inline unsigned char *ddp_segment_channel_of(const struct ddp_segment *s, int channel)
{
    return (unsigned char *)(uintptr_t)s + s->channels_offset + (size_t)channel * s->channel_stride;
}
static inline struct ddp_segment_pipe *ddp_segment_pipe_of(const struct ddp_segment *s, int source,
                                                           int target)
{
    return (struct ddp_segment_pipe *)((char *)(uintptr_t)s + s->pipes_offset +
                                       ((size_t)source * (size_t)s->ranks + (size_t)target) *
                                           DDP_PIPE_STRIDE);
}
static inline unsigned char *ddp_pipe_slot_of(struct ddp_segment_pipe *pipe, uint64_t index)
{
    return (unsigned char *)pipe + 4096 + (size_t)(index % DDP_PIPE_SLOTS) * DDP_PIPE_SLOT_BYTES;
}
static inline unsigned char *ddp_segment_heap_of(const struct ddp_segment *s, int rank)
{
    return (unsigned char *)(uintptr_t)s + s->heap_offset + (size_t)rank * s->heap_stride;
}

#ifdef __cplusplus
}
#endif
#endif
