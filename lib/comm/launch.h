/* Our own launcher and supervisor: starts the ranks of one host, watches them, ends all when one is
 * lost.
 *
 * ddp_launch() makes the shared segment (memfd: no name), forks `ranks` processes (or starts
 * threads), pins each to a core when there are enough (unless told not to), and stays as their
 * parent until every one is gone; it must be called before the process has any thread of its own. A
 * death is seen through a pidfd; then the abort word is set, survivors leave their waits, and
 * whoever is left after DDP_LAUNCH_GRACE_NS is killed. A stopped rank (SIGSTOP) is reported at once
 * and ended at the timeout. Signals that would end the parent (signal_watch.h) are forwarded, and
 * ranks die of them; a second one kills. Ranks die with the parent (PR_SET_PDEATHSIG). Threads
 * share the fate of the process: a crash cannot be survived there. What it does not do: print (news
 * goes to on_news), or know what the ranks compute. */
#ifndef DDP_COMM_LAUNCH_H
#define DDP_COMM_LAUNCH_H

#include "comm/comm.h"
#include "comm/signal_watch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_LAUNCH_GRACE_NS 1000000000 /* survivors get 1 s to leave by themselves */
#define DDP_MESSAGE_MAX     (64u << 20)

enum ddp_launch_mode { DDP_LAUNCH_PROCESSES, DDP_LAUNCH_THREADS };

/* What a rank is given. Sends to the parent are synchronous: the parent has handled the message
 * (written its file) when ddp_launch_send returns, so nothing runs beside the next timed region. */
struct ddp_launch_rank {
    struct ddp_place place;
    struct ddp_flight *flight;
    int channel_fd;
};
/* type: the caller's. payload[bytes] is copied. Blocks until handled; returns the handler's code;
 * DDP_EIO when the parent is gone. */
int ddp_launch_send(struct ddp_launch_rank *rank, uint32_t type, const void *payload, size_t bytes,
                    struct ddp_err *err) DDP_MUST_CHECK;

struct ddp_launch_run;
struct ddp_launch_job {
    int ranks;
    enum ddp_launch_mode mode;
    int64_t timeout_ns;
    uint64_t heap_bytes; /* registered memory reserved per rank in the segment */
    /* Ranks keep all cores: libraries have threads of their own, which would share a rank's one. */
    bool unpinned;
    /* Runs in each rank; its return code becomes the rank's; err is carried to the parent. */
    int (*rank_main)(void *arg, struct ddp_launch_rank *rank, struct ddp_err *err);
    /* Runs in the parent for each message of a rank. While it does, no deadline of a rank expires:
     * they wait for it. One that has to wait itself asks ddp_launch_disturbed. */
    int (*on_message)(void *arg, int rank, uint32_t type, const void *payload, size_t bytes,
                      struct ddp_err *err);
    /* Runs in the parent: a line for people (a rank stopped, a signal forwarded). May be NULL. */
    void (*on_news)(void *arg, const char *line);
    void *arg;
    /* Open, borrowed; NULL: the launcher's own, for as long as it runs. */
    struct ddp_signal_watch *watch;
    /* NULL, or where a handle stands while the ranks run, NULL before and after. */
    struct ddp_launch_run **running;
};

/* For on_message, when it waits for something: shall it give up, because a signal came or a rank is
 * lost? What the run ends with is then that, not the handler's error. */
bool ddp_launch_disturbed(struct ddp_launch_run *run);

/* How it ended: first rank that failed (-1: none), its signal (0: none), and the line that names
 * rank, host, phase, operation. */
struct ddp_launch_outcome {
    int code; /* 0 or the code all ranks end with */
    int rank, signal;
    char story[1024];
};

/* Runs the job to its end. Returns 0 when the ranks were started, whatever became of them (outcome,
 * and err filled with the first rank's error); an error code when they could not be started. */
int ddp_launch(const struct ddp_launch_job *job, struct ddp_launch_outcome *outcome,
               struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
