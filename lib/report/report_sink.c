/* Resolves the path of a sink, checks that the target can be written, and writes. Every write,
 * fsync, close and rename is checked, because on a full disk write(2) may succeed and a later call
 * may fail. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/rng.h"
#include "base/unit.h"
#include "report/report_sink.h"

#define TRIES     100 /* Attempts to find a name for a temporary file. */
#define LINKS_MAX 40  /* The kernel's limit on symbolic links in a path. */

/* Returns true if `temp` still names the locked file `fd`. */
static bool is_named(const struct ddp_sink *sink, const char *temp, int fd)
{
    struct stat st, named;
    return fstat(fd, &st) == 0 && fstatat(sink->dir, temp, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_dev == named.st_dev && st.st_ino == named.st_ino;
}

/* Creates and locks the file `temp`. Returns its descriptor, or -1 with errno. errno is EEXIST if
 * the file exists already, or if another run locked or removed the file before this run could lock
 * it. */
static int create_locked(const struct ddp_sink *sink, const char *temp)
{
    int fd = openat(sink->dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return -1;
    /* If the file system has no locks, continue without a lock. Other runs then leave this file
     * alone, because remove_leftover() removes only files that it can lock. */
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (locked ? !is_named(sink, temp, fd) : errno == EWOULDBLOCK) {
        close(fd);
        errno = EEXIST;
        return -1;
    }
    return fd;
}

/* Removes the file `temp` if a killed run left it. A run that is still writing holds the lock of
 * its file, so a file that is not locked was left behind. Returns true if the file is gone. */
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

/* Creates an empty temporary file beside the target, and stores the name of the file in
 * temp[NAME_MAX + 1]. The file stays locked (flock) until it is closed. Returns its descriptor, or
 * -1 with errno. */
static int create_beside(const struct ddp_sink *sink, char *temp)
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

static int cannot_create(const struct ddp_sink *sink, int error, struct ddp_err *err)
{
    return ddp_fail_errno(err, DDP_ECREATE, error, "cannot create '%s'", sink->path);
}

/* Returns the descriptor that a path such as "-" or /dev/fd/3 stands for, or -1. */
static int descriptor_of(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(folders[i]);
        char *end;
        if (strncmp(path, folders[i], n) != 0 || path[n] < '0' || path[n] > '9')
            continue;
        long fd = strtol(path + n, &end, 10);
        if (*end == '\0' && fd <= INT_MAX)
            return (int)fd;
    }
    return -1;
}

static int check_descriptor(struct ddp_sink *sink, int fd, struct ddp_err *err)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return cannot_create(sink, errno, err);
    if ((flags & O_ACCMODE) == O_RDONLY)
        return cannot_create(sink, EBADF, err);
    sink->kind = DDP_SINK_FD;
    sink->fd = fd;
    sink->once = true;
    return 0;
}

/* Follows symbolic links in the last component of the path, including links to files that do not
 * exist. Writes the result into target[PATH_MAX]. Returns 0 or DDP_ECREATE. */
static int follow_links(struct ddp_sink *sink, char *target, struct ddp_err *err)
{
    size_t bytes = strlen(sink->path) + 1;
    if (bytes > PATH_MAX)
        return cannot_create(sink, ENAMETOOLONG, err);
    memcpy(target, sink->path, bytes);
    for (int i = 0; i < LINKS_MAX; i++) {
        char link[PATH_MAX];
        ssize_t n = readlink(target, link, sizeof link - 1);
        if (n < 0)
            return 0; /* Not a link, or nothing exists there. */
        link[n] = '\0';
        char *slash = strrchr(target, '/');
        size_t keep = link[0] == '/' || !slash ? 0 : (size_t)(slash + 1 - target);
        if (keep + (size_t)n >= PATH_MAX)
            return cannot_create(sink, ENAMETOOLONG, err);
        memcpy(target + keep, link, (size_t)n + 1);
    }
    return cannot_create(sink, ELOOP, err);
}

/* Opens the folder of the target and stores the last component of the target in sink->base. */
static int open_folder(struct ddp_sink *sink, struct ddp_err *err)
{
    char *slash = strrchr(sink->target, '/');
    const char *base = slash ? slash + 1 : sink->target;
    struct stat st;
    if (base[0] == '\0')
        return cannot_create(sink, EISDIR, err);
    size_t bytes = strlen(base) + 1;
    if (bytes > sizeof sink->base)
        return cannot_create(sink, ENAMETOOLONG, err);
    memcpy(sink->base, base, bytes);
    char saved = '\0';
    if (slash) {
        saved = slash[1];
        slash[1] = '\0';
    }
    const char *folder = slash ? sink->target : ".";
    sink->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (sink->dir < 0 && errno == EACCES)
        sink->dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int error = sink->dir >= 0 && fstat(sink->dir, &st) == 0 ? 0 : errno;
    if (slash)
        slash[1] = saved;
    if (error != 0)
        return cannot_create(sink, error, err);
    sink->dir_device = st.st_dev;
    sink->dir_inode = st.st_ino;
    return 0;
}

/* Checks that a file can be created in the target's folder. */
static int try_folder(struct ddp_sink *sink, struct ddp_err *err)
{
    char temp[NAME_MAX + 1];
    int fd = create_beside(sink, temp);
    if (fd < 0)
        return cannot_create(sink, errno, err);
    int error = unlinkat(sink->dir, temp, 0) == 0 ? 0 : errno;
    close(fd);
    return error == 0 ? 0 : cannot_create(sink, error, err);
}

static int check_file(struct ddp_sink *sink, bool document, bool exists, struct ddp_err *err)
{
    sink->kind = document ? DDP_SINK_REPLACE : DDP_SINK_STREAM;
    sink->truncate = !document;
    if (exists && faccessat(sink->dir, sink->base, W_OK, AT_EACCESS) != 0)
        return cannot_create(sink, errno, err);
    return document || !exists ? try_folder(sink, err) : 0;
}

/* Stores the identity of the target, by which ddp_sink_same compares sinks. */
static void note_file(struct ddp_sink *sink, const struct stat *st)
{
    sink->device = st->st_dev;
    sink->inode = st->st_ino;
}

/* Returns true for /dev/null. Several outputs may write to /dev/null. */
static bool is_null_device(const struct stat *st)
{
    struct stat null;
    return stat("/dev/null", &null) == 0 && S_ISCHR(null.st_mode) && st->st_rdev == null.st_rdev &&
           S_ISCHR(st->st_mode);
}

static int check_in_place(struct ddp_sink *sink, const struct stat *st, struct ddp_err *err)
{
    sink->once = true;
    if (!is_null_device(st))
        note_file(sink, st);
    if (S_ISFIFO(st->st_mode)) {
        /* The pipe is opened at the first write, because its reader may come later. */
        sink->kind = DDP_SINK_FIFO;
        return access(sink->target, W_OK) == 0 ? 0 : cannot_create(sink, errno, err);
    }
    if (S_ISBLK(st->st_mode))
        return ddp_fail(err, DDP_ECREATE, "'%s' is a block device; nothing was written to it",
                        sink->path);
    sink->kind = DDP_SINK_STREAM;
    sink->fd = open(sink->target, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    return sink->fd >= 0 ? 0 : cannot_create(sink, errno, err);
}

static int check_path(struct ddp_sink *sink, bool document, struct ddp_err *err)
{
    struct stat st, out;
    char target[PATH_MAX];
    DDP_TRY(follow_links(sink, target, err));
    sink->target = strdup(target);
    if (!sink->target)
        return ddp_fail(err, DDP_ENOMEM, "no memory for an output");
    bool exists = stat(target, &st) == 0;
    if (!exists && errno != ENOENT)
        return cannot_create(sink, errno, err);
    if (exists && S_ISDIR(st.st_mode))
        return cannot_create(sink, EISDIR, err);
    if (exists && !S_ISREG(st.st_mode))
        return check_in_place(sink, &st, err);
    if (exists && fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == st.st_dev &&
        out.st_ino == st.st_ino)
        return check_descriptor(sink, STDOUT_FILENO, err);
    if (exists)
        note_file(sink, &st);
    DDP_TRY(open_folder(sink, err));
    return check_file(sink, document, exists, err);
}

int ddp_sink_init(struct ddp_sink *sink, const char *path, bool document,
                  const struct ddp_write_deadline *deadline_policy, struct ddp_err *err)
{
    memset(sink, 0, sizeof *sink);
    sink->fd = sink->dir = -1;
    sink->deadline_policy = deadline_policy;
    if (path[0] == '\0')
        return ddp_fail(err, DDP_EUSAGE, "the name of an output file is empty");
    sink->path = strdup(strcmp(path, "-") == 0 ? "stdout" : path);
    if (!sink->path)
        return ddp_fail(err, DDP_ENOMEM, "no memory for an output");
    int fd = descriptor_of(path);
    int rc = fd >= 0 ? check_descriptor(sink, fd, err) : check_path(sink, document, err);
    if (rc != 0)
        ddp_sink_release(sink);
    return rc;
}

int ddp_sink_open(struct ddp_sink *sink, struct ddp_err *err)
{
    if (sink->kind != DDP_SINK_STREAM || sink->fd >= 0)
        return 0;
    sink->fd = openat(sink->dir, sink->base, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    return sink->fd >= 0 ? 0 : cannot_create(sink, errno, err);
}

bool ddp_sink_same(const struct ddp_sink *a, const struct ddp_sink *b)
{
    if (a->kind == DDP_SINK_FD || b->kind == DDP_SINK_FD)
        return a->kind == b->kind && a->fd == b->fd;
    if (a->inode != 0 && a->inode == b->inode && a->device == b->device)
        return true;
    return a->dir >= 0 && b->dir >= 0 && a->dir_inode == b->dir_inode &&
           a->dir_device == b->dir_device && strcmp(a->base, b->base) == 0;
}

bool ddp_sink_hits(const struct ddp_sink *sink, const char *path)
{
    struct ddp_err cannot = DDP_ERR_INIT; /* The code that opens `path` reports the error. */
    struct ddp_sink named;
    struct stat st;
    if (stat(path, &st) == 0)
        return sink->inode != 0 && sink->inode == st.st_ino && sink->device == st.st_dev;
    if (ddp_sink_init(&named, path, true, sink->deadline_policy, &cannot) != 0)
        return false;
    bool same = ddp_sink_same(sink, &named);
    ddp_sink_release(&named);
    return same;
}

/* Fills *err for a failed write. `error` is an errno value. */
static int cannot_write(struct ddp_sink *sink, int error, struct ddp_err *err)
{
    char time[32];
    sink->broken = sink->kind != DDP_SINK_REPLACE;
    if (error == EPIPE && sink->kind == DDP_SINK_FD && sink->fd == STDOUT_FILENO)
        return ddp_fail(err, DDP_ECLOSED, "the reader of stdout closed the pipe");
    if (error == ECANCELED)
        return ddp_fail(err, DDP_EIO, "the run ended while '%s' was blocked", sink->path);
    if (error != ETIMEDOUT)
        return ddp_fail_errno(err, DDP_EIO, error, "cannot write '%s'", sink->path);
    ddp_format_ns((double)sink->deadline_policy->timeout_ns, time, sizeof time);
    ddp_fail(err, DDP_EIO, "'%s' was blocked for %s: its reader takes no data", sink->path, time);
    return ddp_hint(err, "if the reader is only slow, use a longer --timeout");
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
    int fd = create_beside(sink, temp);
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
    /* Close the file only after the rename, because the lock keeps other runs from removing the
     * file. */
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
    if (sink->truncate && ftruncate(sink->fd, 0) != 0)
        return cannot_write(sink, errno, err);
    int failed = !sink->deadline_policy->no_fsync && sync_fd(sink->fd) != 0 ? errno : 0;
    if (sink->kind != DDP_SINK_FD) {
        if (close(sink->fd) != 0 && !failed)
            failed = errno;
        sink->fd = -1;
    }
    return failed ? cannot_write(sink, failed, err) : 0;
}

void ddp_sink_release(struct ddp_sink *sink)
{
    if (sink->fd >= 0 && sink->kind != DDP_SINK_FD)
        close(sink->fd);
    if (sink->dir >= 0)
        close(sink->dir);
    free(sink->path);
    free(sink->target);
    memset(sink, 0, sizeof *sink);
    sink->fd = sink->dir = -1;
}
