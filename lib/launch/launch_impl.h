/* Private header of the launcher.
 *
 *   launch.c            sets up the run, starts the ranks, cleans up; the rank's side of messages
 *   launch_supervise.c  the parent's loop: deaths, stops, signals, timeouts
 *   launch_channel.c    the parent's side of messages
 *   launch_report.c     reports the first failure as text */
#ifndef DDP_LAUNCH_LAUNCH_IMPL_H
#define DDP_LAUNCH_LAUNCH_IMPL_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "launch/launch.h"
#include "launch/segment.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The data on a rank's channel, which is a stream socket. The rank sends a request and its payload,
 * and the parent sends one answer. */
struct ddp_channel_request {
    uint32_t type;
    uint32_t reserved;
    uint64_t bytes;
};
struct ddp_channel_answer {
    int32_t code;
    struct ddp_err err;
};

struct ddp_launch_child {
    pid_t pid;
    int pidfd, channel; /* channel: the parent's end */
    pthread_t thread;
    bool alive, killed; /* killed: this launcher has sent SIGKILL */
    int stop_signal;
    /* Time at which a signal stopped the rank, or 0 if it is not stopped. The value stays if the
     * rank dies while it is stopped. */
    int64_t stopped_at;
    /* The last value of ddp_flight_progress of this rank, and the time of its last change. While
     * the timeout does not apply (check_progress), each check sets this time to the current
     * time. */
    uint64_t progress;
    int64_t progress_at;
    struct ddp_channel_request request;
    unsigned char *payload;
    uint64_t got; /* bytes of request and payload read so far */
};

/* The first failure that the supervisor saw. Errors that ranks report themselves are in the
 * segment. */
enum ddp_cause_kind {
    DDP_CAUSE_NONE,
    DDP_CAUSE_DIED,    /* killed by a signal, or exited without a result */
    DDP_CAUSE_STOPPED, /* stopped longer than the timeout */
    DDP_CAUSE_STALLED, /* computed longer than the timeout without progress */
    DDP_CAUSE_SIGNAL,  /* a signal told the parent to end */
    DDP_CAUSE_HANDLER  /* a message of a rank could not be handled */
};
struct ddp_cause {
    enum ddp_cause_kind kind;
    int rank, signal, status;
    int64_t cpu_ns;        /* DDP_CAUSE_DIED: processor time of the rank, 0 if unknown */
    struct ddp_err err;    /* error of the handler */
    char report_text[400]; /* report of the ranks that wait for `rank`; "": none */
};

struct ddp_launch_run {
    const struct ddp_launch_job *job;
    struct ddp_segment *segment;
    int segment_fd;
    struct ddp_launch_child *child; /* [job->ranks] */
    struct ddp_rank_start *start;   /* [job->ranks], threads only */
    int alive;
    cpu_set_t cores;
    int core_count;
    struct ddp_signal_watch *watch, own_watch;
    uint64_t signals; /* bit s: signal s came */
    /* `signalled_at` is the time of the last signal that counted (REPEAT_NS in launch_supervise.c).
     * `end_at` is the time at which the remaining ranks are killed, or 0 if the run has not
     * failed. */
    int64_t signalled_at, end_at;
    bool abandoned; /* ranks that are threads still run and use the data of this run */
    struct ddp_cause cause;
    int64_t oom_kills; /* ddp_cgroup_oom_kills before the ranks were started */
    char host[64];
};

/* The data with which a rank starts. */
struct ddp_rank_start {
    const struct ddp_launch_job *job;
    struct ddp_segment *segment;
    struct ddp_launch_rank rank;
};

/* Returns ddp_cgroup_oom_kills of this process. */
int64_t ddp_launch_oom_kills(void);
/* Runs the parent's loop until all ranks are gone or the threads are abandoned. */
void ddp_launch_supervise(struct ddp_launch_run *run);
/* Records the cause unless the supervisor or a rank has recorded a failure before. Returns whether
 * this call recorded it. */
bool ddp_launch_find_cause(struct ddp_launch_run *run, enum ddp_cause_kind kind, int rank,
                           int code);

/* Reads the bytes that a rank has sent, and answers complete requests. Returns false if the channel
 * is closed. */
bool ddp_launch_channel_read(struct ddp_launch_run *run, int rank);
/* Closes the parent's end of the channel and drops an incomplete message. */
void ddp_launch_channel_close(struct ddp_launch_child *child);

/* Writes a report of the ranks that wait in an operation while `rank` is stopped (flight_report.h).
 * Writes "" if the flight recorders show no such rank. */
void ddp_launch_waiting_ranks(const struct ddp_launch_run *run, int rank, char *out,
                              size_t out_bytes);
/* Fills *outcome. After a failure, also fills *err. */
void ddp_launch_report_failure(const struct ddp_launch_run *run, struct ddp_launch_outcome *outcome,
                               struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
