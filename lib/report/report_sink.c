/* Resolves the path of a sink and checks that it can be written. sink_write.c writes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/report_sink.h"

#define LINKS_MAX 40 /* The kernel's limit. */

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

/* Follows symbolic links in the last component of the path, even dangling links. Writes the result
 * into target[PATH_MAX]. */
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
    int fd = ddp_sink_create_beside(sink, temp);
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

static int check_in_place(struct ddp_sink *sink, const struct stat *st, struct ddp_err *err)
{
    sink->once = true;
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
    if (exists) {
        sink->device = st.st_dev;
        sink->inode = st.st_ino;
    }
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
    struct ddp_err cannot = DDP_ERR_INIT; /* The code that opens the file reports the error. */
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
