/* Inherited descriptors are usually blocking, and making them non-blocking would affect every
 * process that shares them. Each write therefore waits until poll() reports room, and is small
 * enough to fit. A write into a pipe has at most PIPE_BUF bytes (pipe(7)), and a write to a
 * terminal has fewer. */
#include "report/write_deadline.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define SLICE_NS       100000000 /* Longest interval between two calls of give_up. */
#define TERMINAL_BYTES 256       /* Most bytes of one write to a terminal. */

/* A wait in progress. */
struct wait {
    const struct ddp_write_deadline *deadline_policy;
    int64_t waited_ns, last_ns; /* waited_ns: time since the output last took a byte. */
};

static void start(struct wait *w, const struct ddp_write_deadline *deadline_policy)
{
    *w = (struct wait){.deadline_policy = deadline_policy, .last_ns = ddp_now_ns()};
}

/* Called after each slice of waiting. Returns 0, ETIMEDOUT or ECANCELED. */
static int wait_on(struct wait *w)
{
    int64_t now = ddp_now_ns();
    /* If much more than a slice has passed, this process was stopped. At most two slices count as
     * waiting. */
    w->waited_ns += DDP_MIN(now - w->last_ns, 2 * (int64_t)SLICE_NS);
    w->last_ns = now;
    if (w->deadline_policy->give_up != NULL && w->deadline_policy->give_up(w->deadline_policy->arg))
        return ECANCELED;
    return w->waited_ns > w->deadline_policy->timeout_ns ? ETIMEDOUT : 0;
}

/* Waits until fd has room, or has an error that write(2) will report. Returns 0, ETIMEDOUT,
 * ECANCELED, or the errno value of poll(2). */
static int wait_for_room(struct wait *w, int fd)
{
    struct pollfd set = {.fd = fd, .events = POLLOUT};
    for (;;) {
        int n = poll(&set, 1, SLICE_NS / 1000000);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return errno;
        int rc = wait_on(w);
        if (rc != 0)
            return rc;
    }
}

/* Returns the maximum size of one write. Writes to regular files have no limit, because they do not
 * wait for a reader. */
static size_t most_bytes(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return SIZE_MAX;
    return isatty(fd) ? TERMINAL_BYTES : PIPE_BUF;
}

int ddp_write_before_deadline(int fd, const char *text, size_t n,
                              const struct ddp_write_deadline *deadline_policy)
{
    const size_t most = most_bytes(fd);
    struct wait w;
    start(&w, deadline_policy);
    while (n > 0) {
        int rc = most < SIZE_MAX ? wait_for_room(&w, fd) : 0;
        if (rc != 0)
            return rc;
        ssize_t done = write(fd, text, DDP_MIN(n, most));
        if (done > 0) {
            text += done;
            n -= (size_t)done;
            start(&w, deadline_policy);
        } else if (done < 0 && errno == EAGAIN) {
            /* Another writer used the room. */
            ddp_sleep_ns(1000000);
            rc = wait_on(&w);
            if (rc != 0)
                return rc;
        } else if (done < 0 && errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

int ddp_open_before_deadline(const char *path, const char *name,
                             const struct ddp_write_deadline *deadline_policy, int *fd)
{
    struct wait w;
    bool reported = deadline_policy->on_wait == NULL;
    start(&w, deadline_policy);
    for (;;) {
        *fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (*fd >= 0)
            return 0;
        if (errno != ENXIO && errno != EINTR)
            return errno;
        if (!reported) {
            char line[256];
            snprintf(line, sizeof line, "waiting for a reader of the pipe '%.200s'", name);
            deadline_policy->on_wait(deadline_policy->arg, line);
            reported = true;
        }
        ddp_sleep_ns(5000000);
        int rc = wait_on(&w);
        if (rc != 0)
            return rc;
    }
}
