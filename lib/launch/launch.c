/* Our own launcher: sets up the run, starts the ranks as processes or threads and cleans up. This
 * file also contains the rank's side of the launcher, which runs rank_main and sends messages to
 * the parent.
 *
 * The parent reads the signals that would end it from a descriptor (signal_watch.h). It forwards
 * the first signal to the ranks, and it kills the ranks at a second signal. Ranks keep the default
 * actions of signals, so the first signal ends them at once. No result is lost, because the parent
 * owns the record. The run is reported as interrupted, and the exit code is 128 + signal. The same
 * happens if a terminal sends the signal to the whole process group. */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpuinfo.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "launch/launch_impl.h"
#include "launch/tcp.h"

const char *const ddp_launch_names[] = {
    [DDP_LAUNCH_PROCESSES] = "processes", [DDP_LAUNCH_THREADS] = "threads", NULL};

/* Exit handlers of coverage and leak checkers; NULL if the checkers are not linked. Ranks call the
 * handlers themselves, because ranks end with _exit, which does not call exit handlers. Ranks do
 * not use exit, because it would write the contents of the stdio buffers that fork copied from the
 * parent. */
void __gcov_dump(void) __attribute__((weak));
void __lsan_do_leak_check(void) __attribute__((weak));

static void read_cores(struct ddp_launch_run *run)
{
    CPU_ZERO(&run->cores);
    if (sched_getaffinity(0, sizeof run->cores, &run->cores) != 0)
        CPU_ZERO(&run->cores); /* more than 1024 processors: ranks are not pinned */
    run->core_count = CPU_COUNT(&run->cores);
    if (run->core_count == 0)
        run->core_count = ddp_cpu_usable_cores();
}

/* Stores the core of `rank` in *set. Returns false if ranks are not pinned. */
static bool choose_core(const struct ddp_launch_run *run, int rank, cpu_set_t *set)
{
    if (run->job->unpinned || run->job->ranks > CPU_COUNT(&run->cores))
        return false;
    int left = rank;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &run->cores) || left-- > 0)
            continue;
        CPU_ZERO(set);
        CPU_SET(cpu, set);
        return true;
    }
    return false;
}

static void fill(const struct ddp_launch_run *run, int rank, int channel_fd,
                 struct ddp_rank_start *start)
{
    int ranks = run->job->ranks;
    *start = (struct ddp_rank_start){
        .job = run->job,
        .segment = run->segment,
        .rank =
            {
                .rank_info =
                    {
                        .rank = rank,
                        .size = ranks,
                        .local_rank = rank,
                        .local_size = ranks,
                        .oversubscribed = ranks > run->core_count,
                        .segment_fd = run->segment_fd,
                        .segment = run->segment,
                    },
                .flight = &ddp_segment_rank_of(run->segment, rank)->flight,
                .channel_fd = channel_fd,
            },
    };
}

/* Runs rank_main and stores its result in the segment. */
static void run_rank(struct ddp_rank_start *start)
{
    int me = start->rank.rank_info.rank;
    struct ddp_segment_rank *block = ddp_segment_rank_of(start->segment, me);
    struct ddp_err err = DDP_ERR_INIT;
    ddp_flight_phase(start->rank.flight, "start");
    atomic_store_explicit(&block->state, DDP_RANK_RUNNING, memory_order_release);

    int rc = DDP_FAULT(RANK_START, me, &err);
    if (rc == 0)
        rc = start->job->rank_main(start->job->arg, &start->rank, &err);
    if (rc == 0)
        rc = DDP_FAULT(EXIT, me, &err);

    block->code = rc;
    block->err = err;
    /* The other ranks must not wait for a rank that left with an error. */
    if (rc != 0)
        ddp_segment_abort(start->segment, me, me, rc);
    atomic_store_explicit(&block->state, DDP_RANK_DONE, memory_order_release);
}

/* Makes the kernel's out-of-memory killer prefer this rank to the parent, which can then report the
 * death. */
static void offer_to_oom_killer(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!write(fd, "500", 3);
    close(fd);
}

_Noreturn static void child_main(struct ddp_launch_run *run, int rank, int channel_fd, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(ddp_exit_code(DDP_ELOST));
    for (int r = 0; r <= rank; r++) {
        close(run->child[r].channel);
        if (run->child[r].pidfd >= 0)
            close(run->child[r].pidfd);
    }
    ddp_signal_watch_leave(run->watch);
    offer_to_oom_killer();
    cpu_set_t core;
    if (choose_core(run, rank, &core))
        (void)sched_setaffinity(0, sizeof core, &core);
    char name[16];
    snprintf(name, sizeof name, "ddp rank %u", (unsigned)rank % 1000);
    prctl(PR_SET_NAME, name);

    struct ddp_rank_start start;
    fill(run, rank, channel_fd, &start);
    run_rank(&start);
    if (__gcov_dump != NULL)
        __gcov_dump();
    if (__lsan_do_leak_check != NULL)
        __lsan_do_leak_check();
    _exit(ddp_exit_code(ddp_segment_rank_of(run->segment, rank)->code));
}

static int start_process(struct ddp_launch_run *run, int rank, int channel_fd, struct ddp_err *err)
{
    struct ddp_launch_child *child = &run->child[rank];
    pid_t parent = getpid();
    child->pid = fork();
    if (child->pid < 0)
        return ddp_fail_errno(err, DDP_ENOMEM, errno, "cannot start a process for rank %d", rank);
    if (child->pid == 0)
        child_main(run, rank, channel_fd, parent);
    close(channel_fd);
    /* Before Linux 5.3 there are no pidfds. The parent then learns of deaths from SIGCHLD. */
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    return 0;
}

static void *thread_main(void *arg)
{
    struct ddp_rank_start *start = arg;
    run_rank(start);
    /* The closed channel tells the parent that the thread has ended, as a pidfd does for a
     * process. */
    close(start->rank.channel_fd);
    return NULL;
}

/* Starts a rank as a thread of this process, for ThreadSanitizer and debuggers. */
static int start_thread(struct ddp_launch_run *run, int rank, int channel_fd, struct ddp_err *err)
{
    struct ddp_rank_start *start = &run->start[rank];
    fill(run, rank, channel_fd, start);
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc != 0)
        return ddp_fail_errno(err, DDP_ENOMEM, rc, "cannot start rank %d", rank);
    cpu_set_t core;
    if (choose_core(run, rank, &core))
        (void)pthread_attr_setaffinity_np(&attr, sizeof core, &core);
    rc = pthread_create(&run->child[rank].thread, &attr, thread_main, start);
    pthread_attr_destroy(&attr);
    if (rc != 0)
        return ddp_fail_errno(err, DDP_ENOMEM, rc, "cannot start a thread for rank %d", rank);
    char name[16];
    snprintf(name, sizeof name, "ddp rank %u", (unsigned)rank % 1000);
    pthread_setname_np(run->child[rank].thread, name);
    return 0;
}

static int start_rank(struct ddp_launch_run *run, int rank, struct ddp_err *err)
{
    struct ddp_launch_child *child = &run->child[rank];
    int pair[2];
    DDP_TRY(DDP_FAULT(FORK, -1, err));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return ddp_fail_errno(err, DDP_EINTERNAL, errno, "cannot create a channel for rank %d",
                              rank);
    child->channel = pair[0];
    int rc;
    if (run->job->mode == DDP_LAUNCH_THREADS) {
        child->pid = getpid();
        rc = start_thread(run, rank, pair[1], err);
    } else {
        rc = start_process(run, rank, pair[1], err);
    }
    if (rc != 0) {
        close(pair[0]);
        close(pair[1]);
        child->channel = -1;
        return rc;
    }
    child->alive = true;
    run->alive++;
    return 0;
}

static int run_create(const struct ddp_launch_job *job, struct ddp_launch_run *run,
                      struct ddp_err *err)
{
    int rc = 0;
    *run = (struct ddp_launch_run){.job = job, .segment_fd = -1};
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    ddp_printable(host, run->host, sizeof run->host);
    read_cores(run);
    run->oom_kills = ddp_launch_oom_kills();
    DDP_TRY_GOTO(DDP_NEW(&run->child, (size_t)job->ranks, err), err_arrays);
    DDP_TRY_GOTO(DDP_NEW(&run->start, (size_t)job->ranks, err), err_arrays);
    for (int r = 0; r < job->ranks; r++) {
        run->child[r].channel = -1;
        run->child[r].pidfd = -1;
    }
    DDP_TRY_GOTO(DDP_FAULT(SEGMENT, -1, err), err_arrays);
    DDP_TRY_GOTO(
        ddp_segment_create(job->ranks, job->heap_bytes, &run->segment, &run->segment_fd, err),
        err_arrays);
    run->segment->oversubscribed = job->ranks > run->core_count;
    run->watch = job->watch;
    if (run->watch == NULL) {
        run->watch = &run->own_watch;
        DDP_TRY_GOTO(ddp_signal_watch_open(run->watch, err), err_segment);
    }
    return 0;

err_segment:
    ddp_segment_destroy(run->segment, run->segment_fd);
err_arrays:
    free(run->child);
    free(run->start);
    return rc;
}

static void run_release(struct ddp_launch_run *run)
{
    if (run->watch == &run->own_watch)
        ddp_signal_watch_close(run->watch);
    /* Abandoned threads still use the segment and both arrays, so these are not freed. */
    if (run->abandoned)
        return;
    ddp_segment_destroy(run->segment, run->segment_fd);
    free(run->child);
    free(run->start);
}

int ddp_launch(const struct ddp_launch_job *job, struct ddp_launch_outcome *outcome,
               struct ddp_err *err)
{
    *outcome = (struct ddp_launch_outcome){.rank = -1};
    if (job->ranks < 1 || job->ranks > DDP_SHM_RANKS_MAX)
        return ddp_fail(err, DDP_EUSAGE,
                        "cannot start %d ranks: ddpbench starts 1 to %d ranks on one host",
                        job->ranks, DDP_SHM_RANKS_MAX);
    struct ddp_launch_run run;
    DDP_TRY(run_create(job, &run, err));
    int rc = 0;
    for (int r = 0; r < job->ranks && rc == 0; r++)
        rc = start_rank(&run, r, err);
    if (rc != 0) {
        ddp_segment_abort(run.segment, -1, -1, rc);
        run.end_at = ddp_now_ns();
    }
    if (job->running != NULL)
        *job->running = &run;
    ddp_launch_supervise(&run);
    if (job->running != NULL)
        *job->running = NULL;
    if (rc == 0)
        ddp_launch_report_failure(&run, outcome, err);
    run_release(&run);
    return rc;
}

int ddp_launch_send(struct ddp_launch_rank *rank, uint32_t type, const void *payload, size_t bytes,
                    struct ddp_err *err)
{
    if (bytes > DDP_MESSAGE_MAX)
        return ddp_fail(err, DDP_EINTERNAL,
                        "a message of %zu bytes to the parent is too long: the limit is %u", bytes,
                        DDP_MESSAGE_MAX);
    struct ddp_channel_request request = {.type = type, .bytes = bytes};
    struct ddp_channel_answer answer;
    int rc = ddp_tcp_send(rank->channel_fd, &request, sizeof request, INT64_MAX);
    if (rc == 0)
        rc = ddp_tcp_send(rank->channel_fd, payload, bytes, INT64_MAX);
    if (rc == 0)
        rc = ddp_tcp_receive(rank->channel_fd, &answer, sizeof answer, INT64_MAX);
    if (rc != 0)
        return ddp_fail_errno(err, DDP_EIO, rc, "rank %d cannot reach its parent process",
                              rank->rank_info.rank);
    return answer.code != 0 ? ddp_fail_copy(err, &answer.err) : 0;
}
