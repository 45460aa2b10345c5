#include "rank_error.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/strbuf.h"

bool ddp_rank_error_is_shared(const struct ddp_app *app)
{
    return app->launcher.kind != DDP_LAUNCHER_NONE && app->launcher.rank_info.size > 1;
}

/* The kernel frees the socket's name when the process ends, so no file is left behind. */
bool ddp_rank_error_claim(const char *line)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    uint64_t hash = (uint64_t)getuid();
    for (const char *c = line; *c; c++)
        hash = ddp_mix64(hash + (unsigned char)*c);
    const int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "ddpbench-error-%ld-%016llx",
                           (long)getppid(), (unsigned long long)hash);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    return fd < 0 || bind(fd, (const struct sockaddr *)&at, bytes) == 0;
}

void ddp_rank_error_origin(const struct ddp_app *app, char *out, size_t out_bytes)
{
    char host[256] = "", clean[256];
    (void)gethostname(host, sizeof host - 1);
    ddp_printable(host, clean, sizeof clean);
    snprintf(out, out_bytes, "rank %d on %.200s", app->launcher.rank_info.rank, clean);
}

/* Prints an error that only this rank knows, as far as it can tell. Rank 0 prints a usage error
 * without rank and host, because all ranks have the same command line. */
static void report_alone(const struct ddp_app *app, const struct ddp_err *err)
{
    char who[256];
    const bool every = app->cmd && app->cmd->flags & (DDP_CMD_NEEDS_WORLD | DDP_CMD_EVERY_RANK);
    const int rank = app->launcher.rank_info.rank;
    if (rank > 0)
        usleep(DDP_RANK_ERROR_DELAY_US);
    if (ddp_rank_error_claim(err->text)) {
        ddp_rank_error_origin(app, who, sizeof who);
        ddp_log_err_of(&app->log, rank > 0 || (every && err->code != DDP_EUSAGE) ? who : NULL, err);
    }
    usleep(2 * DDP_RANK_ERROR_DELAY_US);
}

/* If an error is not agreed and has a rank, world_launched.c has printed it already. */
void ddp_rank_error_report(const struct ddp_app *app, struct ddp_err *err)
{
    const bool printed = err->rank >= 0 && !err->agreed;
    if (app->launcher.kind == DDP_LAUNCHER_NONE)
        ddp_log_err(&app->log, err);
    else if (printed || (err->agreed && app->launcher.rank_info.rank > 0))
        usleep(DDP_RANK_ERROR_DELAY_US);
    else if (err->agreed || !ddp_rank_error_is_shared(app))
        ddp_log_err(&app->log, err);
    else
        report_alone(app, err);
}
