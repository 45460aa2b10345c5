/* The shared segment of the ranks of one host: one nameless memory file, gone with the last of
 * them. Our launcher maps it once before the ranks are forked, so that it lies at the same address
 * in every rank and in the supervisor; under mpiexec the lowest rank of a host makes it and the
 * others attach (hosts.h), each where there is room.
 *
 * Users: the launcher (fates of ranks, abort word), the shm backend (all of it). It is sparse: only
 * pages somebody touches cost memory. Layout, each part at a page boundary:
 *
 *   struct ddp_segment                                 sizes, abort word, channel book-keeping
 *   struct ddp_segment_rank  [ranks]                   fate, error and flight recorder of a rank
 *   channel                  [DDP_SEGMENT_CHANNELS]    lanes, slots and rings of one group each
 *   pipe                     [ranks * ranks]           point-to-point ring of a (source, target)
 *   heap                     [ranks]                   registered memory, 2 MiB aligned
 *
 * What it does not do: wait, or decide who is to blame. */
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
#define DDP_SEGMENT_CHANNELS 65                  /* 0: the world; 64 more groups at a time */
#define DDP_SEGMENT_HUGE     (2u << 20)

/* A pipe: a ring of slots, each a header and payload. 8 slots let a sender run a time slice ahead
 * when ranks share a core; 256 ranks reserve 8.5 GiB of address space with it, and touch what they
 * use. */
#define DDP_PIPE_SLOTS         8
#define DDP_PIPE_SLOT_BYTES    (16u << 10)
#define DDP_PIPE_HEADER_BYTES  64u
#define DDP_PIPE_PAYLOAD_BYTES (DDP_PIPE_SLOT_BYTES - DDP_PIPE_HEADER_BYTES)
#define DDP_PIPE_STRIDE        (4096u + DDP_PIPE_SLOTS * DDP_PIPE_SLOT_BYTES)

enum ddp_segment_state { DDP_RANK_STARTING, DDP_RANK_RUNNING, DDP_RANK_DONE };

/* code and err are written by the rank before state becomes DDP_RANK_DONE (release), and not
 * after. opens: worlds this rank has opened; its own. world_rank: which rank of the world it is,
 * should that have other hosts, too. progress: the recorder of a progress
 * thread (coll/async.h), of the first this rank has; progress_used: there is one. */
struct ddp_segment_rank {
    alignas(64) _Atomic(int32_t) state;
    int32_t code;
    uint64_t opens;
    _Atomic(int32_t) world_rank;
    _Atomic(uint32_t) progress_used;
    struct ddp_err err;
    struct ddp_flight flight, progress;
};

/* generation: how often the channel was given back; left: members of the present group that have
 * left. */
struct ddp_segment_channel {
    alignas(64) _Atomic(uint64_t) generation;
    _Atomic(uint32_t) left;
};

/* tail: slots filled so far, the sender's. head: slots emptied, the receiver's. */
struct ddp_segment_pipe {
    alignas(64) _Atomic(uint64_t) tail;
    alignas(64) _Atomic(uint64_t) head;
};
struct ddp_pipe_slot {
    uint64_t context; /* which communicator */
    uint64_t total;   /* bytes of the whole message */
    uint32_t bytes;   /* of it in this slot */
    int32_t tag;
    uint32_t first; /* 1: a message begins here */
};

struct ddp_segment {
    uint64_t magic, total_bytes;
    int32_t ranks;
    bool crowded; /* more ranks than cores, as its maker sees it, before anyone else looks */
    uint64_t ranks_offset, channels_offset, channel_stride, pipes_offset;
    uint64_t heap_offset, heap_stride; /* stride: what a rank may allocate, too */
    /* 0, or (culprit rank + 1) << 8 | -code: the first failure. Culprit 0: none of the ranks. */
    alignas(64) _Atomic(uint32_t) abort_word;
    _Atomic(int32_t) abort_setter; /* rank + 1 that set it, 0: the supervisor; follows the word */
    /* INT64_MAX while the supervisor handles a message, else when it last did (ddp_now_ns): ranks
     * that wait for the sender wait for it. */
    _Atomic(int64_t) home_ns;
    alignas(64) _Atomic(uint64_t) channels_used; /* bit i: channel i + 1 */
    struct ddp_segment_channel channel[DDP_SEGMENT_CHANNELS];
};

/* Maps a segment with all zero contents. ranks: 1..DDP_SHM_RANKS_MAX; heap_bytes: what a rank may
 * need at once; address space for twice as much is reserved, so that rounding to huge pages and
 * holes never make a request fail that was announced. *fd: the memory file. DDP_ENOMEM when address
 * space or a limit (ulimit -v, -f) does not allow it. */
int ddp_segment_create(int ranks, uint64_t heap_bytes, struct ddp_segment **out, int *fd,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Maps the segment that another process made, for `ranks` ranks, from its memory file; fd stays
 * the caller's. DDP_EMISMATCH when the file is none of ours or of another number of ranks,
 * DDP_ENOMEM as above. */
int ddp_segment_attach(int fd, int ranks, struct ddp_segment **out,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Unmaps and closes. NULL and -1 are fine. */
void ddp_segment_destroy(struct ddp_segment *segment, int fd);

/* Sets the abort word unless it is set: true when this call was the first. culprit: the rank that
 * is to blame, -1: none; setter: the rank that says so, -1: the supervisor. code: negative. */
bool ddp_segment_abort(struct ddp_segment *segment, int culprit, int setter, int code);
/* Reads the abort word: false while nobody aborted. Any pointer may be NULL. */
bool ddp_segment_aborted(const struct ddp_segment *segment, int *culprit, int *setter, int *code);
/* What a rank is doing, in a line: its recorder, and its progress thread's when that is in an
 * operation. rank: of the segment. */
void ddp_segment_describe(const struct ddp_segment *segment, int rank, char *out, size_t out_bytes);

static inline struct ddp_segment_rank *ddp_segment_rank_of(const struct ddp_segment *s, int rank)
{
    return (struct ddp_segment_rank *)((char *)(uintptr_t)s + s->ranks_offset) + rank;
}
/* Start of a channel: lanes [ranks][DDP_SHM_LANES], slots, rings, sized for the world. */
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
