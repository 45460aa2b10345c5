/* Parses --hosts and --hostfile, and plans the signals that end a job (remote.h). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/unit.h"
#include "launch/tcp.h"
#include "run/remote.h"

#define FILE_MAX ((size_t)1 << 20)

/* Returns the position of the colon before the number of ranks in entry [n], or n if there is no
 * number. An address with several colons (IPv6) can have a number only if the address is in
 * brackets. */
static size_t find_colon(const char *entry, size_t n)
{
    const char *first = memchr(entry, ':', n), *last = memrchr(entry, ':', n);
    if (last == NULL || (first != last && !(last > entry && last[-1] == ']')))
        return n;
    return (size_t)(last - entry);
}

/* Adds the host of entry [n], which is "HOST" or "HOST:N". If `slots` is not empty, it is the
 * number of ranks of "HOST". */
static int add(struct ddp_remote_hosts *out, const char *entry, size_t n, const char *slots,
               int code, struct ddp_err *err)
{
    const size_t colon = slots[0] != '\0' ? n : find_colon(entry, n);
    const bool brackets = colon > 1 && entry[0] == '[' && entry[colon - 1] == ']';
    struct ddp_remote_host h = {.ranks = 1};
    char number[16];
    int64_t ranks = 1;
    snprintf(number, sizeof number, "%.*s", colon < n ? (int)(n - colon - 1) : 0,
             colon < n ? entry + colon + 1 : "");
    const char *count = colon < n ? number : slots;
    const int length = (int)colon - 2 * brackets;
    if (length < 1 || length >= (int)sizeof h.name || entry[0] == '-' ||
        ((colon < n || slots[0] != '\0') &&
         ddp_parse_int(count, 1, DDP_REMOTE_HOST_RANKS_MAX, &ranks, NULL) != 0)) {
        ddp_fail(err, code, "'%.*s%s%s' is not a host with a number of ranks", (int)n, entry,
                 slots[0] != '\0' ? " slots=" : "", slots);
        return ddp_hint(err, "for example: node1:4 (1 to %d ranks)", DDP_REMOTE_HOST_RANKS_MAX);
    }
    snprintf(h.name, sizeof h.name, "%.*s", length, entry + brackets);
    h.ranks = (int)ranks;
    for (int i = 0; i < out->count; i++)
        if (strcmp(out->host[i].name, h.name) == 0)
            return ddp_fail(err, code, "host '%s' is listed twice", h.name);
    out->ranks += h.ranks;
    if (out->ranks > DDP_REMOTE_RANKS_MAX)
        return ddp_fail(err, code, "the hosts have more than %d ranks", DDP_REMOTE_RANKS_MAX);
    DDP_TRY(DDP_RESIZE(&out->host, (size_t)out->count + 1, err));
    out->host[out->count++] = h;
    return 0;
}

static int add_list(struct ddp_remote_hosts *out, const char *list, struct ddp_err *err)
{
    for (;; list++) {
        const size_t n = strcspn(list, ",");
        DDP_TRY(add(out, list, n, "", DDP_EUSAGE, err));
        list += n;
        if (*list == '\0')
            return 0;
    }
}

/* Adds the host of a line of a hostfile, unless the line is empty. The caller has removed the
 * comment. */
static int add_line(struct ddp_remote_hosts *out, const char *line, struct ddp_err *err)
{
    char host[320], slots[16] = "", rest[2];
    const int n = sscanf(line, "%319s slots=%15s %1s", host, slots, rest);
    char word[2];
    if (n < 1)
        return 0;
    if (n == 3 || (n == 1 && sscanf(line, "%*s %1s", word) == 1))
        return ddp_fail(err, DDP_ECONFIG, "'%.200s' is not a line 'HOST:N' or 'HOST slots=N'",
                        line);
    return add(out, host, strlen(host), slots, DDP_ECONFIG, err);
}

static int add_file(struct ddp_remote_hosts *out, const char *path, struct ddp_err *err)
{
    char *data, *rest = NULL;
    size_t bytes;
    int rc = 0;
    DDP_TRY(ddp_file_read(path, FILE_MAX, &data, &bytes, err));
    for (char *line = strtok_r(data, "\r\n", &rest); line != NULL && rc == 0;
         line = strtok_r(NULL, "\r\n", &rest)) {
        line[strcspn(line, "#")] = '\0';
        rc = add_line(out, line, err);
    }
    free(data);
    if (rc == 0 && out->count == 0)
        rc = ddp_fail(err, DDP_ECONFIG, "'%.300s' lists no host", path);
    return rc;
}

int ddp_remote_parse(const char *text, bool is_file, struct ddp_remote_hosts *out,
                     struct ddp_err *err)
{
    *out = (struct ddp_remote_hosts){0};
    int rc = is_file ? add_file(out, text, err) : add_list(out, text, err);
    for (int i = 0; i < out->count && rc == 0; i++)
        if (out->count > 1 && ddp_tcp_is_loopback(out->host[i].name))
            rc = ddp_fail(err, is_file ? DDP_ECONFIG : DDP_EUSAGE,
                          "'%s' means a different machine on each host; use the name of this host",
                          out->host[i].name);
    if (rc != 0) {
        free(out->host);
        *out = (struct ddp_remote_hosts){0};
    }
    return rc;
}

void ddp_remote_add_code(int *code, int failure)
{
    if (*code == 0 || (*code == DDP_ELOST && failure != 0 && !ddp_code_is_signal(failure)))
        *code = failure;
}

void ddp_remote_plan(struct ddp_remote_end *end, int signal, int64_t delay_ns)
{
    if (end->signal == 0)
        *end = (struct ddp_remote_end){.signal = signal, .at_ns = ddp_now_ns() + delay_ns};
}

int ddp_remote_due(struct ddp_remote_end *end)
{
    const int signal = end->signal;
    if (signal == 0 || ddp_now_ns() < end->at_ns)
        return 0;
    *end = (struct ddp_remote_end){.signal = SIGKILL, .at_ns = ddp_now_ns() + DDP_REMOTE_GRACE_NS};
    return signal;
}

int ddp_remote_poll_ms(const struct ddp_remote_end *end)
{
    return ddp_tcp_poll_ms(end->signal != 0 ? end->at_ns : INT64_MAX, 1000);
}
