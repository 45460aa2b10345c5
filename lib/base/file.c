#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

int ddp_write_all(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : ENOSPC;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

bool ddp_file_is_unread(int fd)
{
    struct pollfd set = {.fd = fd, .events = POLLOUT};
    return poll(&set, 1, 0) > 0 && (set.revents & POLLERR) != 0;
}

static int open_error(const char *path, struct ddp_err *err)
{
    int e = errno;
    int code = e == EACCES || e == EPERM ? DDP_EPERM : e == ENOMEM ? DDP_ENOMEM : DDP_ENOINPUT;
    return ddp_fail_errno(err, code, e, "cannot open '%s'", path);
}

int ddp_file_open(const char *path, int *fd, size_t *bytes, struct ddp_err *err)
{
    int rc;
    struct stat st;
    /* O_NONBLOCK keeps open() from hanging if the path is a FIFO. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return open_error(path, err);
    if (fstat(file, &st) != 0) {
        rc = ddp_fail_errno(err, DDP_EIO, errno, "cannot read '%s'", path);
        goto err_file;
    }
    if (!S_ISREG(st.st_mode)) {
        rc = ddp_fail(err, DDP_EINPUT, "'%s' is not a regular file", path);
        goto err_file;
    }
    *fd = file;
    *bytes = (size_t)st.st_size;
    return 0;

err_file:
    close(file);
    return rc;
}

int ddp_file_read_from(int fd, const char *path, size_t bytes, char **data, struct ddp_err *err)
{
    char *text = ddp_calloc(bytes + 1, 1);
    int rc =
        text ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory for the %zu bytes of '%s'", bytes, path);
    for (size_t done = 0; rc == 0 && done < bytes;) {
        const ssize_t got = read(fd, text + done, bytes - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            rc = ddp_fail_errno(err, DDP_EIO, errno, "cannot read '%s'", path);
        else if (got == 0)
            rc = ddp_fail(err, DDP_EINPUT, "'%s' became shorter while it was read", path);
        else
            done += (size_t)got;
    }
    if (rc == 0)
        *data = text;
    else
        free(text);
    return rc;
}

int ddp_file_read(const char *path, size_t most, char **data, size_t *bytes, struct ddp_err *err)
{
    int fd;
    DDP_TRY(ddp_file_open(path, &fd, bytes, err));
    const int rc = *bytes > most ? ddp_fail(err, DDP_EINPUT, "'%s' has %zu bytes; the limit is %zu",
                                            path, *bytes, most)
                                 : ddp_file_read_from(fd, path, *bytes, data, err);
    close(fd);
    return rc;
}
