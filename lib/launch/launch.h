/* Our own launcher and supervisor: starts the ranks of one host, watches them, and ends all ranks
 * if a rank is lost.
 *
 * ddp_launch() makes the shared segment (segment.h) and forks `ranks` processes, or starts threads.
 * It pins each rank to a core of its own if there are enough cores and `unpinned` is not set. It
 * returns when all ranks are gone. Ranks that are threads cannot be killed; if they do not end
 * after a failure, ddp_launch() leaves them running and returns. Call ddp_launch() before the
 * process has other threads.
 *
 * If a rank dies, the parent sets the abort word of the segment. A rank that fails with an error
 * sets the word itself. The other ranks then leave their waits. Processes that still run after
 * DDP_LAUNCH_GRACE_NS are killed. A stopped rank (SIGSTOP) is reported at once and killed at the
 * timeout. A signal that would end the parent (signal_watch.h) is forwarded and ends the ranks. A
 * second signal kills the ranks. If the parent dies, the kernel kills the ranks (PR_SET_PDEATHSIG).
 * If ranks are threads, a crash of one rank ends the process. */
#ifndef DDP_LAUNCH_LAUNCH_H
#define DDP_LAUNCH_LAUNCH_H

#include "base/err.h"
#include "diag/flight.h"
#include "launch/rank_info.h"
#include "launch/signal_watch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_LAUNCH_GRACE_NS 1000000000 /* survivors get 1 s to leave their waits */
#define DDP_MESSAGE_MAX     (64u << 20)

enum ddp_launch_mode { DDP_LAUNCH_PROCESSES, DDP_LAUNCH_THREADS };
extern const char *const ddp_launch_names[]; /* "processes", "threads", NULL */

/* The data that a rank gets from the launcher. */
struct ddp_launch_rank {
    struct ddp_rank_info rank_info;
    struct ddp_flight *flight;
    int channel_fd;
};
/* Sends payload [bytes], at most DDP_MESSAGE_MAX, to the parent, and waits until on_message has
 * handled it. The handler therefore does not run during the rank's next timed region. The meaning
 * of `type` is up to the caller. Returns the code of on_message, DDP_EIO if the parent is gone, or
 * DDP_EINTERNAL if the payload is too long. If on_message has failed before, returns the code of
 * that failure. */
int ddp_launch_send(struct ddp_launch_rank *rank, uint32_t type, const void *payload, size_t bytes,
                    struct ddp_err *err) DDP_MUST_CHECK;

struct ddp_launch_run;
struct ddp_launch_job {
    int ranks;
    enum ddp_launch_mode mode;
    int64_t timeout_ns;
    uint64_t heap_bytes; /* registered memory reserved per rank in the segment */
    /* If true, ranks are not pinned. Set it for libraries that start threads, because all threads
     * of a pinned rank share one core. */
    bool unpinned;
    /* Runs in each rank and returns the rank's code. `err` is passed on to the parent. */
    int (*rank_main)(void *arg, struct ddp_launch_rank *rank, struct ddp_err *err);
    /* Runs in the parent for each message of a rank, unless an earlier call of on_message has
     * failed. During the call, no deadline of a waiting rank expires. A handler that waits for
     * something must check ddp_launch_should_stop. */
    int (*on_message)(void *arg, int rank, uint32_t type, const void *payload, size_t bytes,
                      struct ddp_err *err);
    /* Runs in the parent for each event that the user should see, for example a stopped rank. May
     * be NULL. */
    void (*on_news)(void *arg, const char *line);
    void *arg;
    /* A signal watch that the caller has opened. If NULL, the launcher opens its own watch for the
     * run. */
    struct ddp_signal_watch *watch;
    /* If not NULL, *running becomes the handle of the run, for ddp_launch_should_stop, and NULL
     * when the ranks have ended. */
    struct ddp_launch_run **running;
};

/* Returns whether a waiting on_message handler should give up, because a signal came, or because a
 * rank was lost or failed. If this function returns true, the run ends with this signal, loss or
 * failure as the cause, whatever the handler returns. */
bool ddp_launch_should_stop(struct ddp_launch_run *run);

struct ddp_launch_outcome {
    int code;               /* 0, or the error code of the first failure */
    int rank, signal;       /* first failed rank (-1: none), and its signal (0: none) */
    char report_text[1024]; /* one line about the failure */
};

/* Runs the job to its end. Fails if the run could not be set up or a rank could not be started.
 * Otherwise returns 0, even if the run failed later; *outcome and *err then describe the first
 * failure. */
int ddp_launch(const struct ddp_launch_job *job, struct ddp_launch_outcome *outcome,
               struct ddp_err *err) DDP_MUST_CHECK;

/* Ends an mpiexec that does not end by itself. Searches the ancestors of this process for mpiexec,
 * or for another name of this program such as mpirun. If the search succeeds, starts a helper
 * process that waits for the end of mpiexec. If mpiexec still runs after grace_ns, the helper
 * process sends SIGTERM to mpiexec, twice at most. This is needed if mpiexec has lost the
 * connection to one of its hosts, because mpiexec then waits minutes for that host. Call this
 * function when this process is about to end. */
void ddp_launch_end_mpiexec(int64_t grace_ns);

#ifdef __cplusplus
}
#endif
#endif
