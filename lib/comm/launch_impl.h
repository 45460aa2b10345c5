/* Inside the launcher: what its files share. Nobody else includes this.
 *
 *   launch.c            sets up, starts, cleans up; the child's entry
 *   launch_thread.c     ranks as threads
 *   launch_rank.c       the rank's side: running rank_main, sending to the parent
 *   launch_supervise.c  the parent's loop: deaths, stops, signals, time
 *   launch_channel.c    the parent's side of messages
 *   launch_story.c      who is to blame, in words */
#ifndef DDP_COMM_LAUNCH_IMPL_H
#define DDP_COMM_LAUNCH_IMPL_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "comm/launch.h"
#include "comm/segment.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What travels over a rank's channel, a stream socket: a request and its payload one way, one
 * answer the other. */
struct ddp_channel_request {
    uint32_t type;
    uint32_t reserved;
    uint64_t bytes;
};
struct ddp_channel_answer {
    int32_t code;
    struct ddp_err err;
};

/* One rank as its parent sees it. channel: the parent's end. stopped_at: when a stop was seen, 0
 * when it runs (it keeps the value when it dies stopped). killed: by us. got: bytes of the request
 * and payload read so far. */
struct ddp_child {
    pid_t pid;
    int pidfd, channel;
    pthread_t thread;
    bool alive, killed;
    int stop_signal;
    int64_t stopped_at;
    struct ddp_channel_request request;
    unsigned char *payload;
    uint64_t got;
};

/* The first failure, as the supervisor saw it; what ranks say themselves is in the segment. */
enum ddp_cause_kind {
    DDP_CAUSE_NONE,
    DDP_CAUSE_DIED,    /* a signal, or an exit without a result */
    DDP_CAUSE_STOPPED, /* stopped longer than the timeout */
    DDP_CAUSE_SIGNAL,  /* the parent was told to end */
    DDP_CAUSE_HANDLER  /* on_message failed */
};
struct ddp_cause {
    enum ddp_cause_kind kind;
    int rank, signal, status;
    struct ddp_err err; /* of the handler */
    char story[400];    /* who waits for it, "" unknown */
};

/* A job under way. end_at: when whoever is left is killed, 0 while all is well. signals: bit s:
 * signal s came, the last that counts at signalled_at. */
struct ddp_launch_run {
    const struct ddp_launch_job *job;
    struct ddp_segment *segment;
    int segment_fd;
    struct ddp_child *child;      /* [job->ranks] */
    struct ddp_rank_start *start; /* [job->ranks], threads only */
    int alive;
    cpu_set_t cores;
    int core_count;
    struct ddp_signal_watch *watch, own_watch;
    uint64_t signals;
    int64_t signalled_at, end_at;
    bool abandoned; /* threads are still running: what they use must stay */
    struct ddp_cause cause;
    char host[64];
};

/* What a rank needs to start. */
struct ddp_rank_start {
    const struct ddp_launch_job *job;
    struct ddp_segment *segment;
    struct ddp_launch_rank rank;
};

/* The r-th core of the parent's mask, into *set; false when there are fewer cores than ranks. */
bool ddp_launch_core(const struct ddp_launch_run *run, int rank, cpu_set_t *set);
void ddp_launch_fill(const struct ddp_launch_run *run, int rank, int channel_fd,
                     struct ddp_rank_start *start);
/* Starts rank as a thread. */
int ddp_launch_start_thread(struct ddp_launch_run *run, int rank, int channel_fd,
                            struct ddp_err *err) DDP_MUST_CHECK;

/* Runs rank_main and leaves its result in the segment. */
void ddp_launch_run_rank(struct ddp_rank_start *start);

/* Until all ranks are gone (or threads abandoned). */
void ddp_launch_supervise(struct ddp_launch_run *run);
void ddp_launch_news(const struct ddp_launch_run *run, const char *fmt, ...) DDP_PRINTF(2, 3);
/* Remembers the cause if it is the first failure of the run, ranks' own included. */
bool ddp_launch_blame(struct ddp_launch_run *run, enum ddp_cause_kind kind, int rank, int code);
void ddp_launch_kill_all(struct ddp_launch_run *run, int signal);

/* Reads what a rank has sent; answers whole requests. False when the channel is closed. */
bool ddp_launch_channel_read(struct ddp_launch_run *run, int rank);

/* Who waits for whom, by the recorders of the ranks other than `rank` (flight_story.h); "" when
 * they do not tell. */
void ddp_launch_who_waits(const struct ddp_launch_run *run, int rank, char *out, size_t out_bytes);
/* Fills outcome and, after a failure, err. */
void ddp_launch_tell(const struct ddp_launch_run *run, struct ddp_launch_outcome *outcome,
                     struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
