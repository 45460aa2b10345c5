/* The parent's loop. The parent sleeps in poll until a rank dies (pidfd), a rank sends a message
 * (channel) or a signal comes (signalfd). The watched signals are those that would end the parent,
 * and SIGCHLD, which comes if a rank stopped, continued or died. At least every 250 ms the parent
 * also checks whether a rank has set the abort word. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/unit.h"
#include "launch/launch_impl.h"

#define TICK_NS 250000000
/* If the same signal comes again within this time, it does not count, because timeout(1) sends its
 * signal first to its child and then to the whole process group. */
#define REPEAT_NS      50000000
#define POLL_FAILED_NS 1000000 /* pause between two rounds if poll fails */
/* If a round of the loop takes longer than this, this process was probably stopped itself. The time
 * of such a round does not count for the timeouts of ranks. */
#define STOPPED_NS 2000000000

/* Passes an event on to the user. */
static void event(const struct ddp_launch_run *run, const char *fmt, ...) DDP_PRINTF(2, 3);
static void event(const struct ddp_launch_run *run, const char *fmt, ...)
{
    if (run->job->on_news == NULL)
        return;
    char line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    run->job->on_news(run->job->arg, line);
}

bool ddp_launch_find_cause(struct ddp_launch_run *run, enum ddp_cause_kind kind, int rank, int code)
{
    if (!ddp_segment_abort(run->segment, rank, -1, code))
        return false;
    run->cause = (struct ddp_cause){.kind = kind, .rank = rank, .err = DDP_ERR_INIT};
    return true;
}

static void kill_rank(struct ddp_launch_run *run, int rank)
{
    run->child[rank].killed = true;
    kill(run->child[rank].pid, SIGKILL);
}

static void kill_all(struct ddp_launch_run *run, int signal)
{
    if (run->job->mode != DDP_LAUNCH_PROCESSES)
        return;
    for (int r = 0; r < run->job->ranks; r++) {
        struct ddp_launch_child *child = &run->child[r];
        if (!child->alive)
            continue;
        child->killed = child->killed || signal == SIGKILL;
        kill(child->pid, signal);
    }
}

/* Reports the injected fault that hit a rank, so that users do not mistake the fault for a real
 * failure. Tests read the time between fault and detection from this line. */
static void report_fault(const struct ddp_launch_run *run, int rank)
{
    const char *fault;
    int64_t hit_ns;
    char time[32];
    if (!ddp_fault_last(rank, &fault, &hit_ns))
        return;
    ddp_format_ns((double)(ddp_now_ns() - hit_ns), time, sizeof time);
    event(run, "rank %d: injected fault '%s', seen after %s", rank, fault, time);
}

/* A state change of a rank. */
struct change {
    siginfo_t info;
    struct rusage usage;
};

/* Calls waitid without blocking. Uses the system call directly, because the C library's waitid does
 * not report the resource usage. */
static int wait_change(pid_t pid, int options, struct change *out)
{
    *out = (struct change){.info = {0}};
    return (int)syscall(SYS_waitid, P_PID, pid, &out->info, options | WNOHANG, &out->usage);
}

static int64_t cpu_ns_of(const struct rusage *usage)
{
    return ((int64_t)usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000 +
           ((int64_t)usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

/* Ends the run if the death of a rank was not expected. `change` may be NULL. */
static void check_death(struct ddp_launch_run *run, int rank, const struct change *change)
{
    const siginfo_t *info = change != NULL ? &change->info : NULL;
    const struct ddp_segment_rank *block = ddp_segment_rank_of(run->segment, rank);
    bool done = atomic_load_explicit(&block->state, memory_order_acquire) == DDP_RANK_DONE;
    bool as_reported = info == NULL || (info->si_code == CLD_EXITED &&
                                        info->si_status == ddp_exit_code(block->code));
    if (!(done && as_reported) && !run->child[rank].killed &&
        ddp_launch_find_cause(run, DDP_CAUSE_DIED, rank, DDP_ELOST)) {
        if (DDP_FAULTS)
            report_fault(run, rank);
        if (info != NULL && info->si_code == CLD_EXITED)
            run->cause.status = info->si_status;
        else if (info != NULL)
            run->cause.signal = info->si_status;
        if (change != NULL)
            run->cause.cpu_ns = cpu_ns_of(&change->usage);
    }
}

/* Cleans up after a rank's death. Messages that the rank sent before its death are still read. */
static void reap_rank(struct ddp_launch_run *run, int rank, const struct change *change)
{
    struct ddp_launch_child *child = &run->child[rank];
    child->alive = false;
    run->alive--;
    check_death(run, rank, change);
    if (child->channel >= 0 && ddp_launch_channel_read(run, rank))
        ddp_launch_channel_close(child);
    if (child->pidfd >= 0)
        close(child->pidfd);
    child->pidfd = -1;
}

static void report_stop(struct ddp_launch_run *run, int rank, int signal)
{
    struct ddp_launch_child *child = &run->child[rank];
    char where[512], time[32];
    child->stopped_at = ddp_now_ns();
    child->stop_signal = signal;
    if (DDP_FAULTS)
        report_fault(run, rank);
    ddp_flight_describe(&ddp_segment_rank_of(run->segment, rank)->flight, where, sizeof where);
    ddp_format_ns((double)run->job->timeout_ns, time, sizeof time);
    event(run,
          "rank %d (pid %d, host %s) was stopped by signal %d (%s) in %s; it is ended in "
          "%s unless it continues",
          rank, (int)child->pid, run->host, signal, sigdescr_np(signal), where, time);
}

/* Handles all state changes of ranks that waitid reports. */
static void reap(struct ddp_launch_run *run)
{
    if (run->job->mode != DDP_LAUNCH_PROCESSES)
        return;
    for (int r = 0; r < run->job->ranks; r++) {
        struct ddp_launch_child *child = &run->child[r];
        while (child->alive) {
            struct change change;
            const siginfo_t *info = &change.info;
            int rc = wait_change(child->pid, WEXITED | WSTOPPED | WCONTINUED, &change);
            if (rc != 0 && errno == EINTR)
                continue;
            if (rc == 0 && info->si_pid == 0)
                break;
            if (rc != 0) { /* another waitpid reaped the rank */
                reap_rank(run, r, NULL);
            } else if (info->si_code == CLD_STOPPED || info->si_code == CLD_TRAPPED) {
                report_stop(run, r, info->si_status);
            } else if (info->si_code == CLD_CONTINUED) {
                if (child->stopped_at != 0)
                    event(run, "rank %d (pid %d) continues", r, (int)child->pid);
                child->stopped_at = 0;
            } else {
                reap_rank(run, r, &change);
            }
        }
    }
}

/* Joins a rank that is a thread. A thread has ended when its end of the channel is closed. */
static void join(struct ddp_launch_run *run, int rank)
{
    struct ddp_launch_child *child = &run->child[rank];
    if (run->job->mode != DDP_LAUNCH_THREADS || !child->alive)
        return;
    pthread_join(child->thread, NULL);
    reap_rank(run, rank, NULL);
}

static void take_signals(struct ddp_launch_run *run)
{
    int signal;
    while ((signal = ddp_signal_watch_take(run->watch)) != 0) {
        const bool again = run->signals != 0, known = (run->signals >> signal & 1) != 0;
        const int64_t now = ddp_now_ns();
        if (known && now - run->signalled_at < REPEAT_NS)
            continue;
        run->signals |= UINT64_C(1) << signal;
        run->signalled_at = now;
        if (again) {
            event(run, "signal %d (%s)%s: killing the ranks", signal, sigdescr_np(signal),
                  known ? " again" : "");
            run->end_at = now;
            continue;
        }
        if (ddp_launch_find_cause(run, DDP_CAUSE_SIGNAL, -1, -(128 + signal)))
            run->cause.signal = signal;
        kill_all(run, signal);
    }
}

bool ddp_launch_should_stop(struct ddp_launch_run *run)
{
    take_signals(run);
    for (int r = 0; r < run->job->ranks && run->job->mode == DDP_LAUNCH_PROCESSES; r++) {
        struct change change;
        /* Because of WNOWAIT, the rank is not reaped here. The loop of ddp_launch_supervise reads
         * the rank's channel and reaps the rank later. */
        if (run->child[r].alive &&
            wait_change(run->child[r].pid, WEXITED | WNOWAIT, &change) == 0 &&
            change.info.si_pid != 0)
            check_death(run, r, &change);
    }
    return ddp_segment_aborted(run->segment, NULL, NULL, NULL);
}

/* Ends the run because a rank stayed stopped. The report of waiting ranks is made before the run
 * ends, while these ranks still wait. */
static void end_stopped(struct ddp_launch_run *run, int rank)
{
    char report_text[sizeof run->cause.report_text] = "";
    ddp_launch_waiting_ranks(run, rank, report_text, sizeof report_text);
    if (!ddp_launch_find_cause(run, DDP_CAUSE_STOPPED, rank, DDP_ELOST))
        return;
    run->cause.signal = run->child[rank].stop_signal;
    memcpy(run->cause.report_text, report_text, sizeof report_text);
}

/* Returns whether any rank is in an operation. The waits in an operation have deadlines of their
 * own. A rank in ddp_comm_agree_idle does not count. */
static bool in_operation(const struct ddp_launch_run *run)
{
    uint64_t index;
    for (int r = 0; r < run->job->ranks; r++) {
        const struct ddp_segment_rank *block = ddp_segment_rank_of(run->segment, r);
        if (!run->child[r].alive)
            continue;
        if (atomic_load_explicit(&block->flight.working, memory_order_acquire) == 0 &&
            ddp_flight_busy(&block->flight, &index))
            return true;
        if (ddp_flight_busy(&block->progress, &index))
            return true;
    }
    return false;
}

/* Ends the run if a rank has computed for the whole timeout without progress. The time is reset
 * while any rank is in an operation. In that case the deadline of the operation ends the run,
 * because its error message says more. */
static void check_progress(struct ddp_launch_run *run, int64_t now)
{
    const bool waiting = in_operation(run);
    for (int r = 0; r < run->job->ranks; r++) {
        struct ddp_launch_child *child = &run->child[r];
        const struct ddp_flight *flight = &ddp_segment_rank_of(run->segment, r)->flight;
        const uint64_t progress = ddp_flight_progress(flight);
        if (progress != child->progress || !child->alive || child->stopped_at != 0 || waiting ||
            atomic_load_explicit(&flight->computing, memory_order_acquire) == 0) {
            child->progress = progress;
            child->progress_at = now;
        } else if (now - child->progress_at >= run->job->timeout_ns) {
            (void)ddp_launch_find_cause(run, DDP_CAUSE_STALLED, r, DDP_ELOST);
        }
    }
}

/* Handles timeouts: ranks that are stopped too long or make no progress, the end of the grace
 * period, and threads that do not end. */
static void check_time(struct ddp_launch_run *run, int64_t now)
{
    for (int r = 0; r < run->job->ranks; r++) {
        const struct ddp_launch_child *child = &run->child[r];
        if (child->alive && child->stopped_at != 0 &&
            now - child->stopped_at >= run->job->timeout_ns)
            end_stopped(run, r);
    }
    check_progress(run, now);
    bool aborted = ddp_segment_aborted(run->segment, NULL, NULL, NULL);
    if (run->end_at == 0 && aborted)
        run->end_at = now + DDP_LAUNCH_GRACE_NS;
    for (int r = 0; aborted && r < run->job->ranks; r++) {
        /* A stopped rank cannot end by itself, so it is killed at once. */
        if (run->child[r].alive && run->child[r].stopped_at != 0)
            kill_rank(run, r);
    }
    if (run->end_at == 0 || now < run->end_at)
        return;
    if (run->job->mode == DDP_LAUNCH_PROCESSES) {
        kill_all(run, SIGKILL);
        return;
    }
    /* A thread cannot be killed, but its waits have deadlines. A thread that still runs after these
     * deadlines, or after a signal, is abandoned. */
    if (run->signals != 0 || now >= run->end_at + run->job->timeout_ns) {
        run->abandoned = true;
        event(run, "%d ranks (threads) do not end; leaving them running", run->alive);
    }
}

/* Fills the poll set: the signal descriptor, then the pidfd and the channel of each rank. */
static void fill(const struct ddp_launch_run *run, struct pollfd *set)
{
    set[0] = (struct pollfd){.fd = run->watch->fd, .events = POLLIN};
    for (int r = 0; r < run->job->ranks; r++) {
        set[1 + 2 * r] = (struct pollfd){.fd = run->child[r].pidfd, .events = POLLIN};
        set[2 + 2 * r] = (struct pollfd){.fd = run->child[r].channel, .events = POLLIN};
    }
}

void ddp_launch_supervise(struct ddp_launch_run *run)
{
    struct pollfd set[1 + 2 * DDP_SHM_RANKS_MAX];
    fill(run, set);
    int64_t last = ddp_now_ns();
    while (run->alive > 0 && !run->abandoned) {
        int64_t now = ddp_now_ns();
        for (int r = 0; now - last > STOPPED_NS && r < run->job->ranks; r++) {
            if (run->child[r].stopped_at != 0)
                run->child[r].stopped_at += now - last;
            run->child[r].progress_at += now - last;
        }
        last = now;
        check_time(run, now);
        int64_t wait = TICK_NS;
        if (run->end_at > now)
            wait = DDP_MIN(wait, run->end_at - now);
        fill(run, set);
        int ready = poll(set, 1 + 2 * (nfds_t)run->job->ranks, (int)(wait / 1000000) + 1);
        if (ready == 0)
            continue;
        /* poll fails if the set has more entries than the limit on open files. In this case, check
         * all ranks after a pause. */
        if (ready < 0)
            ddp_sleep_ns(POLL_FAILED_NS);
        /* Handle signals first, so that a signal to the whole group is not reported as a rank's own
         * death. Handle deaths before messages, because the handler of a message may take long. */
        take_signals(run);
        reap(run);
        for (int r = 0; r < run->job->ranks; r++) {
            if ((ready < 0 || set[2 + 2 * r].revents != 0) && run->child[r].channel >= 0 &&
                !ddp_launch_channel_read(run, r))
                join(run, r);
        }
    }
    /* A signal to the whole process group may reach this process later than its ranks, so wait for
     * it briefly. */
    if (run->cause.kind == DDP_CAUSE_DIED && run->cause.signal > 0 &&
        sigismember(&run->watch->watched, run->cause.signal) == 1)
        (void)poll(set, 1, 50);
    take_signals(run);
}
