#include "base/file.h"

#include <errno.h>
#include <unistd.h>

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
