/* Reports the first failure of a run as text. A dead rank is described by its flight recorder, and
 * a failed rank by its own error. Later failures are not reported. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "diag/flight_report.h"
#include "launch/launch_impl.h"

#define CGROUP_MEMBERSHIP "/proc/self/cgroup"
#define CGROUP_MOUNT      "/sys/fs/cgroup"
#define CPU_SLACK_NS      500000000
#define CPU_SLACK_SHARE   16 /* 1/16 of the limit; see used_up_cpu_time */

int64_t ddp_launch_oom_kills(void)
{
    return ddp_cgroup_oom_kills(CGROUP_MEMBERSHIP, CGROUP_MOUNT);
}

static void name_rank(const struct ddp_launch_run *run, int rank, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "rank %d (pid %d, host %s)", rank, (int)run->child[rank].pid,
             run->host);
}

/* Reports a rank that died, stayed stopped or made no progress. The text of *outcome also becomes
 * the text of *err. */
static void report_lost(const struct ddp_launch_run *run, const char *what, const char *waits,
                        int rank, int signal, int code, struct ddp_launch_outcome *outcome,
                        struct ddp_err *err)
{
    char who[160], where[384];
    name_rank(run, rank, who, sizeof who);
    ddp_segment_describe(run->segment, rank, where, sizeof where);
    outcome->code = code;
    outcome->rank = rank;
    outcome->signal = signal;
    snprintf(outcome->report_text, sizeof outcome->report_text, "%s %s in %s%s%s", who, what, where,
             waits[0] != '\0' ? "; " : "", waits);
    ddp_fail(err, code, "%s", outcome->report_text);
}

/* Reports a rank that the kernel killed because memory ran out. */
static void report_no_memory(const struct ddp_launch_run *run, struct ddp_launch_outcome *outcome,
                             struct ddp_err *err)
{
    struct ddp_cgroup group;
    char limit[32];
    report_lost(run, "was killed because memory ran out", "", run->cause.rank, SIGKILL, DDP_ENOMEM,
                outcome, err);
    ddp_cgroup_read(CGROUP_MEMBERSHIP, CGROUP_MOUNT, &group);
    if (group.memory_bytes < 0) {
        ddp_hint(err, "use fewer --ranks, or smaller messages or batches");
        return;
    }
    ddp_format_size((uint64_t)group.memory_bytes, limit, sizeof limit);
    ddp_hint(err, "raise the memory limit of the control group, which is %s, or use fewer --ranks",
             limit);
}

/* Returns whether the kernel probably killed the rank because it reached the limit of its processor
 * time (RLIMIT_CPU). *seconds becomes this limit. The kernel counts the processor time in clock
 * ticks, and charges each tick to the process that runs when the tick ends. The counted time may
 * therefore be larger than the used time in cause->cpu_ns, so this function accepts times somewhat
 * below the limit. */
static bool used_up_cpu_time(const struct ddp_cause *cause, long long *seconds)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CPU, &limit) != 0)
        return false;
    const rlim_t most = cause->signal == SIGKILL ? limit.rlim_max : limit.rlim_cur;
    if (most == RLIM_INFINITY || (cause->signal != SIGKILL && cause->signal != SIGXCPU))
        return false;
    *seconds = (long long)most;
    const rlim_t used_ns = (rlim_t)cause->cpu_ns + CPU_SLACK_NS;
    return used_ns / 1000000000 + most / CPU_SLACK_SHARE >= most;
}

static void report_death(const struct ddp_launch_run *run, struct ddp_launch_outcome *outcome,
                         struct ddp_err *err)
{
    const struct ddp_cause *cause = &run->cause;
    char what[128];
    long long seconds;
    if (cause->signal == SIGKILL && run->oom_kills >= 0 &&
        ddp_launch_oom_kills() > run->oom_kills) {
        report_no_memory(run, outcome, err);
        return;
    }
    const bool no_time = used_up_cpu_time(cause, &seconds);
    if (no_time)
        snprintf(what, sizeof what, "used up its %lld s of processor time", seconds);
    else if (cause->signal > 0)
        snprintf(what, sizeof what, "was killed by signal %d (%s)", cause->signal,
                 sigdescr_np(cause->signal) != NULL ? sigdescr_np(cause->signal) : "?");
    else
        snprintf(what, sizeof what, "exited with code %d without a result", cause->status);
    report_lost(run, what, "", cause->rank, cause->signal, DDP_ELOST, outcome, err);
    if (no_time)
        ddp_hint(err, "raise ulimit -t");
    else if (cause->signal == SIGKILL && run->oom_kills < 0)
        ddp_hint(err, "if nobody killed it, memory may have run out: see dmesg");
    if (cause->signal == SIGBUS)
        ddp_hint(err, "most likely, shared memory or a mapped file ran out of space");
}

void ddp_launch_waiting_ranks(const struct ddp_launch_run *run, int rank, char *out,
                              size_t out_bytes)
{
    const struct ddp_flights all = {.first = &ddp_segment_rank_of(run->segment, 0)->flight,
                                    .stride = sizeof(struct ddp_segment_rank),
                                    .ranks = run->job->ranks};
    out[0] = '\0';
    for (int r = 0; r < run->job->ranks; r++) {
        uint64_t index;
        if (r != rank && ddp_flight_busy(&ddp_segment_rank_of(run->segment, r)->flight, &index) &&
            ddp_flight_report(&all, r, rank, out, out_bytes))
            return;
    }
}

/* Reports a rank that stayed stopped. `waits` is a report of the ranks that wait for `rank`. */
static void report_stopped(const struct ddp_launch_run *run, int rank, const char *waits,
                           struct ddp_launch_outcome *outcome, struct ddp_err *err)
{
    char what[128], time[32];
    int signal = run->child[rank].stop_signal;
    ddp_format_ns((double)run->job->timeout_ns, time, sizeof time);
    snprintf(what, sizeof what, "was stopped by signal %d (%s) and did not continue within %s",
             signal, sigdescr_np(signal) != NULL ? sigdescr_np(signal) : "?", time);
    report_lost(run, what, waits, rank, signal, DDP_ELOST, outcome, err);
}

/* Reports a rank that computed without progress. */
static void report_stalled(const struct ddp_launch_run *run, int rank,
                           struct ddp_launch_outcome *outcome, struct ddp_err *err)
{
    char what[128], time[32];
    ddp_format_ns((double)run->job->timeout_ns, time, sizeof time);
    snprintf(what, sizeof what, "made no progress for %s", time);
    report_lost(run, what, "", rank, 0, DDP_ELOST, outcome, err);
    ddp_hint(err, "if one step can take this long, raise --timeout");
}

static void report_signal(const struct ddp_launch_run *run, int signal,
                          struct ddp_launch_outcome *outcome, struct ddp_err *err)
{
    char where[384];
    ddp_segment_describe(run->segment, 0, where, sizeof where);
    outcome->code = -(128 + signal);
    snprintf(outcome->report_text, sizeof outcome->report_text,
             "ended by signal %d (%s) on host %s; rank 0 was in %s", signal, sigdescr_np(signal),
             run->host, where);
    ddp_fail(err, outcome->code, "%s", outcome->report_text);
}

static void report_handler_error(const struct ddp_launch_run *run,
                                 struct ddp_launch_outcome *outcome, struct ddp_err *err)
{
    const struct ddp_err *error = &run->cause.err;
    outcome->code = error->code;
    outcome->rank = run->cause.rank;
    snprintf(outcome->report_text, sizeof outcome->report_text, "%s", error->text);
    (void)ddp_fail_copy(err, error);
}

/* Returns the error of rank `setter`, or NULL if the rank has not ended or has no error. */
static const struct ddp_err *error_of(const struct ddp_launch_run *run, int setter)
{
    const struct ddp_segment_rank *block = ddp_segment_rank_of(run->segment, setter);
    bool done = atomic_load_explicit(&block->state, memory_order_acquire) == DDP_RANK_DONE;
    return done && block->err.code != 0 ? &block->err : NULL;
}

/* Reports a failure that rank `setter` recorded. Either `setter` failed itself, or its wait for
 * rank `culprit` expired. */
static void report_failed(const struct ddp_launch_run *run, int culprit, int setter, int code,
                          struct ddp_launch_outcome *outcome, struct ddp_err *err)
{
    const struct ddp_err *error = error_of(run, setter);
    char who[160], where[384], time[32];
    int named = culprit >= 0 ? culprit : setter;
    name_rank(run, named, who, sizeof who);
    ddp_segment_describe(run->segment, named, where, sizeof where);
    outcome->code = code;
    outcome->rank = named;
    if (culprit != setter && culprit >= 0) {
        ddp_format_ns((double)run->job->timeout_ns, time, sizeof time);
        snprintf(outcome->report_text, sizeof outcome->report_text,
                 "%s did not reach the operation within %s; it is in %.300s%s%.400s", who, time,
                 where, error != NULL ? "; " : "", error != NULL ? error->text : "");
    } else {
        snprintf(outcome->report_text, sizeof outcome->report_text,
                 "%s failed with code %d in %.300s%s%.400s", who, -code, where,
                 error != NULL ? ": " : "", error != NULL ? error->text : "");
    }
    if (error != NULL && err != NULL && err->code == 0) {
        *err = *error;
        err->rank = error->rank >= 0 ? error->rank : setter;
    }
    if (error == NULL)
        ddp_fail(err, code, "%s", outcome->report_text);
}

/* Returns the stopped rank that explains a failed wait: `culprit` if that rank is stopped, else the
 * lowest stopped rank, else -1. */
static int stopped_rank(const struct ddp_launch_run *run, int culprit)
{
    if (culprit >= 0 && run->child[culprit].stopped_at != 0)
        return culprit;
    for (int r = 0; r < run->job->ranks; r++) {
        if (run->child[r].stopped_at != 0)
            return r;
    }
    return -1;
}

void ddp_launch_report_failure(const struct ddp_launch_run *run, struct ddp_launch_outcome *outcome,
                               struct ddp_err *err)
{
    int culprit, setter, code;
    *outcome = (struct ddp_launch_outcome){.rank = -1};
    if (!ddp_segment_aborted(run->segment, &culprit, &setter, &code))
        return;
    const struct ddp_cause *cause = &run->cause;
    switch (cause->kind) {
    case DDP_CAUSE_DIED:
        /* If the parent got the same signal as the rank, the signal was sent to the whole process
         * group. The signal, not the death of the rank, is then the cause. */
        if (cause->signal > 0 && cause->signal < 64 && (run->signals >> cause->signal & 1) != 0)
            report_signal(run, cause->signal, outcome, err);
        else
            report_death(run, outcome, err);
        return;
    case DDP_CAUSE_STOPPED:
        report_stopped(run, cause->rank, cause->report_text, outcome, err);
        return;
    case DDP_CAUSE_STALLED:
        report_stalled(run, cause->rank, outcome, err);
        return;
    case DDP_CAUSE_SIGNAL:
        report_signal(run, cause->signal, outcome, err);
        return;
    case DDP_CAUSE_HANDLER:
        report_handler_error(run, outcome, err);
        return;
    case DDP_CAUSE_NONE:
        break;
    }
    setter = setter >= 0 ? setter : DDP_MAX(culprit, 0);
    int stopped = code == DDP_ELOST ? stopped_rank(run, culprit) : -1;
    const struct ddp_err *error = error_of(run, setter);
    if (stopped >= 0)
        report_stopped(run, stopped, error != NULL ? error->text : "", outcome, err);
    else
        report_failed(run, culprit, setter, code, outcome, err);
}
