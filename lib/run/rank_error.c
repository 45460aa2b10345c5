#include "run/rank_error.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/strbuf.h"

/* Interval at which a rank checks for the other ranks of its host. */
#define POLL_US 50000

bool ddp_rank_error_is_shared(const struct ddp_app *app)
{
    const struct ddp_rank_info *rank_info = &app->launcher.rank_info;
    if (app->launcher.kind == DDP_LAUNCHER_NONE && app->launcher_error.code == 0)
        return false;
    return rank_info->size > 1 || rank_info->rank > 0;
}

static uint64_t mix(uint64_t hash, const char *text)
{
    for (const char *c = text; *c; c++)
        hash = ddp_mix64(hash + (unsigned char)*c);
    return hash;
}

/* Writes an abstract socket address. For one subject and index, the address is the same in all
 * processes of this host with the same user and parent. The kernel frees an abstract address when
 * the process that bound it ends, so no file is left behind. */
static socklen_t name_socket(struct sockaddr_un *out, const char *subject, int index)
{
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1);
    const uint64_t hash = mix(mix((uint64_t)getuid(), host), subject);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int n = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "ddpbench-%ld-%016llx-%d",
                           (long)getppid(), (unsigned long long)hash, index);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Binds a socket to the name and keeps it open until this process ends. Returns false if another
 * socket is already bound to the name. */
static bool bind_name(const char *subject, int index)
{
    struct sockaddr_un at;
    const socklen_t bytes = name_socket(&at, subject, index);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return true;
    if (bind(fd, (const struct sockaddr *)&at, bytes) == 0)
        return listen(fd, SOMAXCONN) == 0 || errno != EADDRINUSE;
    const bool taken = errno == EADDRINUSE;
    close(fd);
    return !taken;
}

/* Returns true if a process has bound a socket to the name. */
static bool name_is_bound(const char *subject, int index)
{
    struct sockaddr_un at;
    const socklen_t bytes = name_socket(&at, subject, index);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool bound =
        fd >= 0 && (connect(fd, (const struct sockaddr *)&at, bytes) == 0 || errno == EAGAIN);
    if (fd >= 0)
        close(fd);
    return bound;
}

bool ddp_rank_error_wait(const struct ddp_app *app, int64_t limit_us)
{
    const struct ddp_rank_info *rank_info = &app->launcher.rank_info;
    const char *subject = "arrived";
    int next = 0;
    if (app->launcher_error.code != 0)
        return false;
    (void)bind_name(subject, rank_info->local_rank);
    for (int64_t waited_us = 0; next < rank_info->local_size; waited_us += POLL_US) {
        while (next < rank_info->local_size && name_is_bound(subject, next))
            next++;
        if (next < rank_info->local_size && waited_us >= limit_us)
            return false;
        /* The longer pause at the end gives the other ranks time to see this rank's name. */
        usleep(next < rank_info->local_size ? POLL_US : 4 * POLL_US);
    }
    return true;
}

bool ddp_rank_error_vote(const struct ddp_app *app, bool yes, int64_t limit_us)
{
    const struct ddp_rank_info *rank_info = &app->launcher.rank_info;
    const bool knows_place = app->launcher_error.code == 0;
    int next = 0;
    (void)bind_name(!knows_place ? "no place"
                    : yes        ? "yes"
                                 : "no",
                    knows_place ? rank_info->local_rank : 0);
    if (!knows_place)
        return false;
    for (int64_t waited_us = 0; next < rank_info->local_size; waited_us += POLL_US) {
        while (next < rank_info->local_size && name_is_bound("yes", next))
            next++;
        if (next == rank_info->local_size)
            break;
        if (name_is_bound("no", next) || name_is_bound("no place", 0) || waited_us >= limit_us)
            return false;
        usleep(POLL_US);
    }
    return true;
}

int ddp_rank_error_claim(const char *line)
{
    int place = 0;
    while (place < DDP_RANK_ERROR_LINES && !bind_name(line, place))
        place++;
    return place;
}

void ddp_rank_error_claim_all(const char *line)
{
    for (int i = 0; i < DDP_RANK_ERROR_LINES; i++)
        (void)ddp_rank_error_claim(line);
}

void ddp_rank_error_origin(const struct ddp_app *app, char *out, size_t out_bytes)
{
    char host[256] = "", clean[256];
    (void)gethostname(host, sizeof host - 1);
    ddp_printable(host, clean, sizeof clean);
    if (app->launcher_error.code != 0 && !ddp_rank_error_is_shared(app))
        snprintf(out, out_bytes, "a rank on %.200s", clean);
    else
        snprintf(out, out_bytes, "rank %d on %.200s", app->launcher.rank_info.rank, clean);
}

const char *ddp_rank_error_same(int place)
{
    return place == DDP_RANK_ERROR_LINES - 1
               ? "the same error; further ranks of this host may have it too"
               : "the same error";
}

/* Prints an error on which the ranks have not agreed. Rank 0 prints an error for all ranks of its
 * host, without naming a rank, in two cases: (1) the error is a usage error, (2) only rank 0 does
 * the command's work. */
static void report_alone(const struct ddp_app *app, const struct ddp_err *err)
{
    char who[256];
    const bool every = app->cmd && (app->cmd->job || app->cmd->flags & DDP_CMD_EVERY_RANK);
    const int rank = app->launcher.rank_info.rank;
    const bool named = rank > 0 || (every && err->code != DDP_EUSAGE);
    if (rank > 0)
        usleep(DDP_RANK_ERROR_DELAY_US);
    const int place = ddp_rank_error_claim(err->text);
    ddp_rank_error_origin(app, who, sizeof who);
    if (place == 0)
        ddp_log_err_of(&app->log, named ? who : NULL, err);
    else if (place < DDP_RANK_ERROR_LINES)
        ddp_logf(&app->log, DDP_LOG_ERROR, "%s: %s", who, ddp_rank_error_same(place));
    if (!named)
        ddp_rank_error_claim_all(err->text);
    usleep(2 * DDP_RANK_ERROR_DELAY_US);
}

void ddp_rank_error_report(const struct ddp_app *app, struct ddp_err *err)
{
    /* If a rank is set and the ranks have not agreed, world_launched.c has printed the error. */
    const bool printed = err->rank >= 0 && !err->agreed;
    const bool shared = ddp_rank_error_is_shared(app);
    const bool launcher_failed =
        app->launcher_error.code != 0 && app->launcher_error.code == err->code;
    if (app->launcher.kind == DDP_LAUNCHER_NONE && !shared && !launcher_failed)
        ddp_log_err(&app->log, err);
    else if (err->agreed && app->launcher.rank_info.rank > 0)
        usleep(DDP_RANK_ERROR_AGREED_US);
    else if (printed)
        usleep(DDP_RANK_ERROR_DELAY_US);
    else if (err->agreed || (!shared && !launcher_failed))
        ddp_log_err(&app->log, err);
    else
        report_alone(app, err);
}
