#include "rank_error.h"

#include <errno.h>
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

/* Claims place number `place` for the line with this hash, by binding an abstract socket. Returns
 * false if another process holds the place. The kernel frees the socket's name when the process
 * ends, so no file is left behind. */
static bool bind_place(uint64_t hash, int place)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "ddpbench-error-%ld-%016llx-%d",
                           (long)getppid(), (unsigned long long)hash, place);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    return fd < 0 || bind(fd, (const struct sockaddr *)&at, bytes) == 0 || errno != EADDRINUSE;
}

int ddp_rank_error_claim(const char *line)
{
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1);
    const uint64_t hash = mix(mix((uint64_t)getuid(), host), line);
    int place = 0;
    while (place < DDP_RANK_ERROR_LINES && !bind_place(hash, place))
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

/* Prints an error that the ranks have not agreed on. Rank 0 prints a usage error without its rank
 * and host, and for all ranks of its host, because all have the same command line. */
static void report_alone(const struct ddp_app *app, const struct ddp_err *err)
{
    char who[256];
    const bool every = app->cmd && app->cmd->flags & (DDP_CMD_NEEDS_WORLD | DDP_CMD_EVERY_RANK);
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

/* If an error is not agreed and has a rank, world_launched.c has printed it already. */
void ddp_rank_error_report(const struct ddp_app *app, struct ddp_err *err)
{
    const bool printed = err->rank >= 0 && !err->agreed;
    const bool shared = ddp_rank_error_is_shared(app);
    const bool launcher_failed =
        app->launcher_error.code != 0 && app->launcher_error.code == err->code;
    if (app->launcher.kind == DDP_LAUNCHER_NONE && !shared && !launcher_failed)
        ddp_log_err(&app->log, err);
    else if (printed || (err->agreed && app->launcher.rank_info.rank > 0))
        usleep(DDP_RANK_ERROR_DELAY_US);
    else if (err->agreed || (!shared && !launcher_failed))
        ddp_log_err(&app->log, err);
    else
        report_alone(app, err);
}
