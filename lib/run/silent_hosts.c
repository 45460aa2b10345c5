#include "run/silent_hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/network.h"
#include "base/strbuf.h"

#define HOSTS_MAX 512 /* Asking a host opens a socket, and a process may open 1,024 files. */
#define NAMED     4   /* A message names at most this many hosts, and ranks of a host. */

/* A host that this rank asks. */
struct asked {
    char name[64];
    char ranks[48]; /* "rank 2" or "ranks 2, 3" */
};

struct ddp_host_watch {
    char own[64];
    int count; /* hosts that answered when the run began */
    struct asked host[HOSTS_MAX];
    struct ddp_nic_address address[HOSTS_MAX];
};

/* The address of a rank's host, and an identity that ranks of one host share. */
struct place {
    uint64_t host;
    struct ddp_nic_address address;
};

/* Writes the ranks of the host of rank `first`. */
static void name_ranks(const struct place *all, int size, int first, char *out, size_t out_bytes)
{
    int n = 0;
    snprintf(out, out_bytes, "rank ");
    for (int r = first; r < size; r++) {
        if (all[r].host != all[first].host)
            continue;
        if (n == 1)
            snprintf(out, out_bytes, "ranks %d", first);
        if (n == 0)
            ddp_text_append(out, out_bytes, "%d", r);
        else if (n <= NAMED)
            ddp_text_append(out, out_bytes, n < NAMED ? ", %d" : ", ...", r);
        n++;
    }
}

/* Adds the hosts that this rank asks. */
static void add_hosts(struct ddp_host_watch *w, const struct ddp_comm *world,
                      const struct ddp_host *hosts, const struct place *all)
{
    const int end = world->rank == 0 ? world->size : 1;
    for (int r = 0; r < end && w->count < HOSTS_MAX; r++) {
        int first = 0;
        while (all[first].host != all[r].host)
            first++;
        if (first < r || all[r].host == all[world->rank].host || all[r].address.family == 0)
            continue;
        struct asked *host = &w->host[w->count];
        snprintf(host->name, sizeof host->name, "%s", hosts[r].name);
        name_ranks(all, world->size, r, host->ranks, sizeof host->ranks);
        w->address[w->count++] = all[r].address;
    }
}

/* Asks the hosts for the first time, and removes those that do not answer. */
static void keep_answering(struct ddp_host_watch *w)
{
    bool answers[HOSTS_MAX];
    int kept = 0;
    ddp_nic_answers(w->address, w->count, DDP_HOST_WATCH_NS, answers);
    for (int i = 0; i < w->count; i++) {
        if (!answers[i])
            continue;
        w->host[kept] = w->host[i];
        w->address[kept++] = w->address[i];
    }
    w->count = kept;
}

int ddp_host_watch_open(struct ddp_comm *world, const struct ddp_host *hosts,
                        struct ddp_host_watch **out, struct ddp_err *err)
{
    struct place mine, *all = NULL;
    struct ddp_host_watch *w = NULL;
    memset(&mine, 0, sizeof mine);
    mine.host = world->host;
    mine.address = world->nic;
    int rc = DDP_NEW(&w, 1, err);
    if (rc == 0)
        rc = DDP_NEW(&all, (size_t)world->size, err);
    DDP_TRY_GOTO(ddp_comm_agree(world, rc, err), out);
    DDP_TRY_GOTO(ddp_comm_allgather_bytes(world, &mine, all, sizeof mine, err), out);
    snprintf(w->own, sizeof w->own, "%s", hosts[world->rank].name);
    add_hosts(w, world, hosts, all);
    keep_answering(w);
out:
    free(all);
    if (rc != 0 || w->count == 0) {
        free(w);
        w = NULL;
    }
    *out = w;
    return rc;
}

/* Asks the hosts. Asks a second time if a host did not answer, because a question may be lost. */
static void ask(const struct ddp_host_watch *w, bool answers[HOSTS_MAX])
{
    bool again[HOSTS_MAX];
    int silent = 0;
    ddp_nic_answers(w->address, w->count, DDP_HOST_WATCH_NS / 2, answers);
    for (int i = 0; i < w->count; i++)
        silent += !answers[i];
    if (silent == 0)
        return;
    ddp_nic_answers(w->address, w->count, DDP_HOST_WATCH_NS / 2, again);
    for (int i = 0; i < w->count; i++)
        answers[i] |= again[i];
}

bool ddp_host_watch_report(const struct ddp_host_watch *w, char *out, size_t out_bytes)
{
    bool answers[HOSTS_MAX];
    int silent = 0;
    out[0] = '\0';
    if (w == NULL)
        return false;
    ask(w, answers);
    for (int i = 0; i < w->count; i++) {
        if (!answers[i] && silent < NAMED)
            ddp_text_append(out, out_bytes, "%shost %s (%s)", silent > 0 ? ", " : "",
                            w->host[i].name, w->host[i].ranks);
        silent += !answers[i];
    }
    if (silent > NAMED)
        ddp_text_append(out, out_bytes, " and %d other hosts", silent - NAMED);
    if (silent > 0)
        ddp_text_append(out, out_bytes, " no longer answer%s", silent == 1 ? "s" : "");
    if (silent > 0 && silent == w->count)
        ddp_text_append(out, out_bytes, ", or the link of this host, %s, is down", w->own);
    return silent > 0;
}

void ddp_host_watch_close(struct ddp_host_watch *w)
{
    free(w);
}
