/* The shared segment of the ranks of one host. It is a memory file without a name, which disappears
 * with the last process that maps it. Our launcher maps the segment before it forks the ranks, so
 * the segment has the same address in all ranks and in the supervisor. Under an outside launcher
 * the host's lowest rank makes the segment, and the other ranks attach it at any address
 * (hosts.h).
 *
 * The launcher uses the abort word, and the results and flight recorders of the ranks. The shm
 * backend uses all parts. The file is sparse, so only pages that are touched cost memory. Each part
 * begins at a page boundary:
 *
 *   struct ddp_segment                                 sizes, abort word, use of the channels
 *   struct ddp_segment_rank  [ranks]                   result, error and flight recorders of a rank
 *   channel                  [DDP_SEGMENT_CHANNELS]    flags, message slots and rings of one group
 *   pipe                     [ranks * ranks]           ring for messages of one rank to another
 *   heap                     [ranks]                   registered memory, 2 MiB aligned */
#ifndef DDP_LAUNCH_SEGMENT_H
#define DDP_LAUNCH_SEGMENT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "diag/flight.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_SHM_RANKS_MAX 256
/* Flag slots per rank and group. Slots 0 and 1 belong to comm, 2 to 6 and 8 to 11 to coll, and 7 to
 * the ping-pong of bench. */
#define DDP_SHM_FLAG_SLOTS 12
#define DDP_SHM_FLAG_AREAS 16 /* areas for flag slots in a channel; a group uses one at a time */
/* Bytes of payload in a flag slot. A small message and its flag share one cache line. */
#define DDP_SHM_INLINE 48
/* Bytes of a slot for a small message. Each rank has two such slots per channel (double buffer). */
#define DDP_SHM_SLOT_BYTES (16u << 10)
/* Number of slots in the staging ring of a rank, and bytes per slot. Many small slots are faster
 * than few large slots: before a slot is written again, the peer has read many other slots, so the
 * slot has usually left the peer's L2 cache. Writing a slot that is still in this cache is slow. */
#define DDP_SHM_RING_SLOTS 32
#define DDP_SHM_RING_BYTES (64u << 10)

/* A flag slot: a flag and a small payload. */
struct ddp_shm_flag_slot {
    /* The flag, a sequence number. */
    alignas(64) _Atomic(uint64_t) sequence;
    unsigned char inline_data[DDP_SHM_INLINE];
};

#define DDP_SEGMENT_MAGIC    0x31676573706464ull /* "ddpseg1" */
#define DDP_SEGMENT_CHANNELS 65                  /* channel 0: the world; 64 groups at a time */
#define DDP_SEGMENT_HUGE     (2u << 20)

/* A pipe is a ring of slots. Each slot has a header and payload. */
#define DDP_PIPE_SLOTS         8
#define DDP_PIPE_SLOT_BYTES    (16u << 10)
#define DDP_PIPE_HEADER_BYTES  64u
#define DDP_PIPE_PAYLOAD_BYTES (DDP_PIPE_SLOT_BYTES - DDP_PIPE_HEADER_BYTES)
#define DDP_PIPE_STRIDE        (4096u + DDP_PIPE_SLOTS * DDP_PIPE_SLOT_BYTES)

enum ddp_segment_state { DDP_RANK_STARTING, DDP_RANK_RUNNING, DDP_RANK_DONE };

struct ddp_segment_rank {
    alignas(64) _Atomic(int32_t) state;
    /* The result of the rank. `code` and `err` are written before `state` becomes DDP_RANK_DONE
     * (release), and do not change later. */
    int32_t code;
    uint64_t opens;              /* worlds that this rank has opened; private to the rank */
    _Atomic(int32_t) world_rank; /* the rank's number in the world, which may have several hosts */
    _Atomic(uint32_t) progress_used; /* 1 while `progress` is used */
    struct ddp_err err;
    /* The recorders of the rank and of one of its progress threads (coll/async.h). */
    struct ddp_flight flight, progress;
};

struct ddp_segment_channel {
    /* Number of groups that have used and left the channel. */
    alignas(64) _Atomic(uint64_t) generation;
    _Atomic(uint32_t) left; /* members of the present group that have left */
};

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
    uint64_t heap_offset, heap_stride; /* heap_stride: bytes per heap */
    /* The first failure: (culprit rank + 1) << 8 | -code, or 0 if there is none. The upper bits are
     * 0 if no rank is to blame. */
    alignas(64) _Atomic(uint32_t) abort_word;
    /* 1 + the rank that set the abort word, or 0 for the supervisor. Written after the word. */
    _Atomic(int32_t) abort_setter;
    /* The collector is the process that runs the launcher, and so the parent of the ranks. It
     * handles the messages of the ranks. The value is INT64_MAX while the collector handles a
     * message, else the time at which it finished the last message (ddp_now_ns). A rank's wait
     * expires no earlier than one timeout after this time, because the awaited rank may itself wait
     * for the collector. */
    _Atomic(int64_t) collector_busy_ns;
    alignas(64) _Atomic(uint64_t) channels_used; /* bit i: channel i + 1 is in use */
    struct ddp_segment_channel channel[DDP_SEGMENT_CHANNELS];
};

/* Creates and maps a segment. All flags, pipes and heaps are zero. `ranks` is between 1 and
 * DDP_SHM_RANKS_MAX. `heap_bytes` is the largest amount of registered memory that a rank has at one
 * time. More than twice as much address space is reserved, so that allocations do not fail because
 * of rounding and fragmentation. *fd becomes the memory file. Returns DDP_ENOMEM if address space
 * or a limit (ulimit -v, -f) is too small, and DDP_EUNAVAIL if the system has no memory files. */
int ddp_segment_create(int ranks, uint64_t heap_bytes, struct ddp_segment **out, int *fd,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Maps a segment that another process made for `ranks` ranks. `fd` is its memory file, which the
 * caller closes. Returns DDP_EMISMATCH if the file is not such a segment, and DDP_ENOMEM if address
 * space is too small. */
int ddp_segment_attach(int fd, int ranks, struct ddp_segment **out,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Unmaps the segment and closes fd. NULL and -1 are allowed. */
void ddp_segment_destroy(struct ddp_segment *segment, int fd);

/* Sets the abort word unless it is set already. Returns whether this call set it. `culprit` is the
 * rank to blame (-1: none), `setter` is the calling rank (-1: the supervisor), and `code` is the
 * error code. */
bool ddp_segment_abort(struct ddp_segment *segment, int culprit, int setter, int code);
/* Reads the abort word. Returns false if there was no abort. culprit, setter and code may be
 * NULL. */
bool ddp_segment_aborted(const struct ddp_segment *segment, int *culprit, int *setter, int *code);
/* Writes one line about the rank's current operation, from its flight recorder. If the rank's
 * progress thread is in an operation, the line also describes that operation. `rank` is a rank of
 * the segment. */
void ddp_segment_describe(const struct ddp_segment *segment, int rank, char *out, size_t out_bytes);

static inline struct ddp_segment_rank *ddp_segment_rank_of(const struct ddp_segment *s, int rank)
{
    return (struct ddp_segment_rank *)((char *)(uintptr_t)s + s->ranks_offset) + rank;
}
/* Returns the bytes of an area for flag slots [ranks][DDP_SHM_FLAG_SLOTS], in whole pages. */
static inline uint64_t ddp_segment_area_bytes(int ranks)
{
    const uint64_t page = 4096, slots = (uint64_t)ranks * DDP_SHM_FLAG_SLOTS;
    return (slots * sizeof(struct ddp_shm_flag_slot) + page - 1) / page * page;
}
/* Returns the start of a channel: the areas for flag slots, then message slots, then rings. A
 * channel has room for all ranks of the segment. */
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
