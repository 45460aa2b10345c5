/* Writes to open sinks; see report_sink.h. Every write, fsync, close and rename is checked, because
 * on a full disk write(2) may succeed and a later call may fail. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/rng.h"
#include "base/unit.h"
#include "report/report_sink.h"

#define TRIES 100

/* `error` is an errno value, such as those that ddp_write_before_deadline returns. */
static int cannot_write(struct ddp_sink *sink, int error, struct ddp_err *err)
{
    char time[32];
    sink->broken = sink->kind != DDP_SINK_REPLACE;
    if (error == ECANCELED)
        return ddp_fail(err, DDP_EIO, "the run ended while '%s' was blocked", sink->path);
    if (error != ETIMEDOUT)
        return ddp_fail_errno(err, DDP_EIO, error, "cannot write '%s'", sink->path);
    ddp_format_ns((double)sink->deadline_policy->timeout_ns, time, sizeof time);
    ddp_fail(err, DDP_EIO, "'%s' was blocked for %s: its reader takes no data", sink->path, time);
    return ddp_hint(err, "if the reader is only slow, use a longer --timeout");
}

/* True if `temp` still names the locked file `fd`. */
static bool is_named(const struct ddp_sink *sink, const char *temp, int fd)
{
    struct stat st, named;
    return fstat(fd, &st) == 0 && fstatat(sink->dir, temp, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_dev == named.st_dev && st.st_ino == named.st_ino;
}

/* Creates and locks the file `temp`. Returns its descriptor, or -1 with errno. errno is EEXIST if
 * another run has the file, or removed the file before this run locked it. */
static int create_locked(const struct ddp_sink *sink, const char *temp)
{
    int fd = openat(sink->dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return -1;
    /* If the file system has no locks, go on without one: remove_leftover() removes only files that
     * it can lock. */
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (locked ? !is_named(sink, temp, fd) : errno == EWOULDBLOCK) {
        close(fd);
        errno = EEXIST;
        return -1;
    }
    return fd;
}

/* Removes the file `temp` if a killed run left it. A run that is still writing holds the lock of
 * its file. Returns true if the file is gone. */
static bool remove_leftover(const struct ddp_sink *sink, const char *temp)
{
    struct stat st;
    int fd = openat(sink->dir, temp, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT;
    bool ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
                flock(fd, LOCK_EX | LOCK_NB) == 0;
    bool gone = ours && (!is_named(sink, temp, fd) || unlinkat(sink->dir, temp, 0) == 0);
    close(fd);
    return gone;
}

int ddp_sink_create_beside(const struct ddp_sink *sink, char *temp)
{
    snprintf(temp, NAME_MAX + 1, ".%.200s.ddpbench.tmp", sink->base);
    for (int i = 0; i < TRIES; i++) {
        int fd = create_locked(sink, temp);
        if (fd >= 0 || errno != EEXIST)
            return fd;
        if (!remove_leftover(sink, temp))
            break;
    }
    /* The file cannot be removed, usually because another run writes to the same target. This run
     * uses a name of its own. The run that renames its file last wins. */
    uint64_t seed = ddp_mix64((uint64_t)ddp_now_ns() ^ ((uint64_t)getpid() << 32));
    for (uint64_t i = 0; i < TRIES; i++) {
        snprintf(temp, NAME_MAX + 1, ".%.200s.%08x.tmp", sink->base, (unsigned)ddp_mix64(seed + i));
        int fd = create_locked(sink, temp);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Syncs fd. Ignores descriptors that cannot be synced, such as pipes. */
static int sync_fd(int fd)
{
    if (fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS || errno == EBADF)
        return 0;
    return -1;
}

int ddp_sink_write(struct ddp_sink *sink, const char *text, size_t n, struct ddp_err *err)
{
    int failed = 0;
    if (sink->broken)
        return ddp_fail(err, DDP_EIO, "an earlier write to '%s' failed", sink->path);
    if (sink->kind == DDP_SINK_FIFO && sink->fd < 0)
        failed =
            ddp_open_before_deadline(sink->target, sink->path, sink->deadline_policy, &sink->fd);
    if (!failed && sink->truncate && ftruncate(sink->fd, 0) != 0)
        failed = errno;
    sink->truncate = false;
    if (!failed)
        failed = ddp_write_before_deadline(sink->fd, text, n, sink->deadline_policy);
    return failed ? cannot_write(sink, failed, err) : 0;
}

int ddp_sink_replace(struct ddp_sink *sink, const char *text, size_t n, struct ddp_err *err)
{
    char temp[NAME_MAX + 1];
    if (sink->kind != DDP_SINK_REPLACE)
        return ddp_sink_write(sink, text, n, err);
    int fd = ddp_sink_create_beside(sink, temp);
    if (fd < 0)
        return cannot_write(sink, errno, err);
    int failed = ddp_write_before_deadline(fd, text, n, sink->deadline_policy);
    if (!failed && !sink->deadline_policy->no_fsync && sync_fd(fd) != 0)
        failed = errno;
    if (!failed && DDP_FAULT(COLLECTOR_WRITE, -1, NULL) != 0)
        failed = errno;
    if (!failed && renameat(sink->dir, temp, sink->dir, sink->base) != 0)
        failed = errno;
    if (failed)
        unlinkat(sink->dir, temp, 0);
    /* Close the file last, because the lock keeps other runs from removing the file before it is
     * renamed. */
    if (close(fd) != 0 && !failed)
        failed = errno;
    if (!failed && !sink->deadline_policy->no_fsync && sync_fd(sink->dir) != 0)
        failed = errno;
    return failed ? cannot_write(sink, failed, err) : 0;
}

int ddp_sink_finish(struct ddp_sink *sink, struct ddp_err *err)
{
    if (sink->fd < 0)
        return 0;
    int failed = !sink->deadline_policy->no_fsync && sync_fd(sink->fd) != 0 ? errno : 0;
    if (sink->kind != DDP_SINK_FD) {
        if (close(sink->fd) != 0 && !failed)
            failed = errno;
        sink->fd = -1;
    }
    return failed ? cannot_write(sink, failed, err) : 0;
}
