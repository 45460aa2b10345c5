/* Our own launcher and supervisor: starts the ranks of one host, watches them, and ends all if one
 * is lost.
 *
 * ddp_launch() makes the shared segment (a memfd without a name) and forks `ranks` processes, or
 * starts threads. It pins each rank to a core if there are enough, unless `unpinned` is set, and
 * returns when all ranks are gone. Call it before the process has threads of its own.
 *
 * If a rank dies, which a pidfd shows, the parent sets the abort word. The survivors then leave
 * their waits; those left after DDP_LAUNCH_GRACE_NS are killed. A stopped rank (SIGSTOP) is
 * reported at once and killed at the timeout. Signals that would end the parent (signal_watch.h)
 * are forwarded and end the ranks; a second signal kills them. Ranks die with their parent
 * (PR_SET_PDEATHSIG). If ranks are threads, a crash of one ends the process.
 *
 * The launcher does not print (messages go to on_news) and does not know what the ranks compute. */
#ifndef DDP_COMM_LAUNCH_H
#define DDP_COMM_LAUNCH_H

#include "comm/comm.h"
#include "comm/signal_watch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_LAUNCH_GRACE_NS 1000000000 /* survivors get 1 s to leave their waits */
#define DDP_MESSAGE_MAX     (64u << 20)

enum ddp_launch_mode { DDP_LAUNCH_PROCESSES, DDP_LAUNCH_THREADS };

/* The data that a rank gets. A send to the parent is synchronous: when ddp_launch_send returns, the
 * parent has handled the message (written its file), so the parent does not work during the next
 * timed region. */
struct ddp_launch_rank {
    struct ddp_rank_info rank_info;
    struct ddp_flight *flight;
    int channel_fd;
};
/* Sends payload [bytes] to the parent and waits until the handler has run. `type` is defined by the
 * caller. Returns the handler's code, or DDP_EIO if the parent is gone. */
int ddp_launch_send(struct ddp_launch_rank *rank, uint32_t type, const void *payload, size_t bytes,
                    struct ddp_err *err) DDP_MUST_CHECK;

struct ddp_launch_run;
struct ddp_launch_job {
    int ranks;
    enum ddp_launch_mode mode;
    int64_t timeout_ns;
    uint64_t heap_bytes; /* registered memory reserved per rank in the segment */
    /* Ranks may use all cores. For libraries with threads of their own, which would otherwise share
     * one core. */
    bool unpinned;
    /* Runs in each rank and returns the rank's code. `err` is passed on to the parent. */
    int (*rank_main)(void *arg, struct ddp_launch_rank *rank, struct ddp_err *err);
    /* Runs in the parent for each message of a rank. Deadlines of ranks do not expire meanwhile. A
     * handler that waits for something must check ddp_launch_should_stop. */
    int (*on_message)(void *arg, int rank, uint32_t type, const void *payload, size_t bytes,
                      struct ddp_err *err);
    /* Runs in the parent for each event worth a line to the user (a rank stopped, a signal was
     * forwarded). May be NULL. */
    void (*on_news)(void *arg, const char *line);
    void *arg;
    /* An open watch of the caller; NULL: the launcher opens its own while it runs. */
    struct ddp_signal_watch *watch;
    /* NULL, or a pointer of the caller that is set to the run's handle while ranks run and to NULL
     * otherwise. */
    struct ddp_launch_run **running;
};

/* Returns whether a waiting on_message handler should give up because a signal came or a rank was
 * lost. The run then ends with that cause, whatever the handler returns. */
bool ddp_launch_should_stop(struct ddp_launch_run *run);

/* The outcome of a run. */
struct ddp_launch_outcome {
    int code;               /* 0, or the code that all ranks end with */
    int rank, signal;       /* first failed rank (-1: none), and its signal (0: none) */
    char report_text[1024]; /* one line that names rank, host, phase and operation */
};

/* Runs the job to its end. Returns 0 if the ranks were started, even if they failed later:
 * `outcome` then has the result, and err the first rank's error. Returns an error code if they
 * could not be started. */
int ddp_launch(const struct ddp_launch_job *job, struct ddp_launch_outcome *outcome,
               struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
