/* Two ranks share a host if their boot ids and host names are equal. This file finds the hosts and
 * groups the ranks of each host. hosts_share.c makes the memory that these ranks share. */
#include "comm/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/sysinfo.h"
#include "comm/backend.h"
#include "launch/segment.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* Kernels that booted separately have different boot ids. A container with its own host name counts
 * as a host, because its ranks may be unable to see the processes of other containers. */
uint64_t ddp_hosts_identity(const struct ddp_sysinfo *info)
{
    char boot[64] = "";
    FILE *f = fopen(BOOT_ID, "re");
    if (f != NULL) {
        if (fgets(boot, sizeof boot, f) == NULL)
            boot[0] = '\0';
        fclose(f);
    }
    const uint64_t hash = ddp_fnv1a(DDP_FNV_INIT, boot, strlen(boot) + 1);
    return ddp_fnv1a(hash, info->host, strlen(info->host));
}

static int simulate_error(const char *text, int size, struct ddp_err *err)
{
    ddp_fail(err, DDP_EUSAGE,
             "DDPBENCH_SIMULATE_HOSTS is '%.40s', which does not distribute %d ranks over hosts",
             text, size);
    return ddp_hint(err,
                    "use '2' for two hosts of equal size, '1+3' for hosts of these sizes, '2*' for "
                    "ranks on alternating hosts");
}

/* Parses decimal digits at `text`. If there are no digits, returns -1 and sets *end to `text`. */
static long number(const char *text, char **end)
{
    *end = (char *)(uintptr_t)text;
    return *text >= '0' && *text <= '9' ? strtol(text, end, 10) : -1;
}

/* Parses the host sizes "A+B+...". Their sum must be the number of ranks. */
static int parse_sizes(const char *text, int size, uint64_t *of, struct ddp_err *err)
{
    int placed = 0;
    uint64_t host = 0;
    const char *at = text;
    for (;; host++) {
        char *end;
        long n = number(at, &end);
        if (end == at || n < 1 || n > size - placed)
            return simulate_error(text, size, err);
        for (; n > 0; n--)
            of[placed++] = host;
        at = end + 1;
        if (*end == '\0')
            break;
        if (*end != '+')
            return simulate_error(text, size, err);
    }
    return placed == size ? 0 : simulate_error(text, size, err);
}

int ddp_hosts_parse(const char *text, int size, uint64_t *of, struct ddp_err *err)
{
    char *end;
    if (strchr(text, '+') != NULL)
        return parse_sizes(text, size, of, err);
    long n = number(text, &end);
    const bool turns = *end == '*';
    if (end == text || end[turns] != '\0' || n < 1 || n > size || (!turns && size % n != 0))
        return simulate_error(text, size, err);
    for (int r = 0; r < size; r++)
        of[r] = (uint64_t)(turns ? r % n : r / (size / n));
    return 0;
}

const char *const ddp_subset_names[] = {
    [DDP_SUBSET_SPREAD] = "spread", [DDP_SUBSET_PACK] = "pack", NULL};

int ddp_hosts_subset(enum ddp_subset how, const uint64_t *of, int size, int n, int *members,
                     struct ddp_err *err)
{
    int *local, chosen = 0, kept = 0;
    if (how == DDP_SUBSET_PACK) {
        for (int r = 0; r < n; r++)
            members[r] = r;
        return 0;
    }
    /* number of each rank among the ranks of its host */
    DDP_TRY(DDP_NEW(&local, (size_t)size, err));
    for (int r = 0; r < size; r++)
        for (int q = r - 1; q >= 0 && local[r] == 0; q--)
            local[r] = of[q] == of[r] ? local[q] + 1 : 0;
    /* local[r] == -1 marks rank r as chosen. */
    for (int turn = 0; chosen < n; turn++)
        for (int r = 0; r < size && chosen < n; r++)
            if (local[r] == turn) {
                local[r] = -1;
                chosen++;
            }
    for (int r = 0; r < size; r++)
        if (local[r] < 0)
            members[kept++] = r;
    free(local);
    return 0;
}

/* Creates the struct ddp_hosts of `comm`. The array `of` [size] holds one number per rank. Two
 * ranks share a host if and only if their numbers are equal. */
static int hosts_make(const struct ddp_comm *comm, const uint64_t *of, struct ddp_hosts **out,
                      struct ddp_err *err)
{
    struct ddp_hosts *hosts;
    const size_t size = (size_t)comm->size;
    DDP_TRY(DDP_NEW(&hosts, 1, err));
    const int rc = DDP_NEW(&hosts->of, 4 * size, err); /* one block for all four arrays */
    if (rc != 0) {
        free(hosts);
        return rc;
    }
    hosts->leader = hosts->of + size;
    hosts->ranks = hosts->leader + size;
    hosts->local_rank = hosts->ranks + size;
    for (int r = 0; r < comm->size; r++) {
        int h = 0;
        while (h < hosts->count && of[hosts->leader[h]] != of[r])
            h++;
        if (h == hosts->count)
            hosts->leader[hosts->count++] = r;
        hosts->of[r] = h;
        hosts->local_rank[r] = hosts->ranks[h]++;
    }
    hosts->mine = hosts->of[comm->rank];
    *out = hosts;
    return 0;
}

/* Makes `comm`, which is the world or a group, use the communicator of this host, hosts->local.
 *
 * A wait on hosts->local does not notice that a rank of another host is lost. Therefore such a wait
 * also calls the backend function `look` for `comm`, if the backend has this function.
 *
 * If all ranks of the world share the memory of one host, `comm` gets the shm context of
 * hosts->local. A backend that maps memory itself has its own context. In a world of several hosts,
 * the numbers of the ranks in the segment may differ from their world ranks. Therefore `comm` gets
 * no shm context, even if it is a group on one host. */
static void use_local(struct ddp_comm *comm, const struct ddp_comm *world)
{
    struct ddp_comm *local = comm->hosts->local;
    if (local != NULL && comm->backend->look != NULL)
        local->watched = comm;
    if (local == NULL || world->hosts->count > 1 || (comm->backend->caps & DDP_CAP_MAP) != 0)
        return;
    comm->rank_info.segment = local->rank_info.segment;
    comm->shm = local->shm;
}

/* Finds the hosts of the world, or simulates the hosts of DDPBENCH_SIMULATE_HOSTS. Does not share
 * memory. */
static int find_hosts(struct ddp_comm *world, struct ddp_hosts **out, struct ddp_err *err)
{
    const char *text = ddp_conf_get(DDP_CONF_SIMULATE_HOSTS);
    uint64_t *of;
    int rc;
    DDP_TRY(DDP_NEW(&of, (size_t)world->size, err));
    if (text != NULL) {
        rc = ddp_hosts_parse(text, world->size, of, err);
    } else {
        struct ddp_sysinfo info;
        ddp_sysinfo_read(&info);
        const uint64_t mine = ddp_hosts_identity(&info);
        rc = world->backend->exchange(world, &mine, of, sizeof mine, err);
    }
    if (rc == 0)
        rc = hosts_make(world, of, out, err);
    free(of);
    return rc;
}

int ddp_hosts_open(struct ddp_comm *world, const struct ddp_comm_options *options,
                   struct ddp_err *err)
{
    if (world->size == 1)
        return 0;
    int rc = find_hosts(world, &world->hosts, err);
    if (rc == 0)
        rc = ddp_hosts_share(world, options, err);
    if (rc == 0)
        use_local(world, world);
    else
        ddp_hosts_close(world);
    return rc;
}

/* Makes a group of `parent_local` from the child's ranks on this host. If a host has no room for
 * another shm group, no rank of the child uses shared memory. This is not an error. Collective over
 * the child. */
static int group_local(struct ddp_comm *parent_local, struct ddp_comm *child, const int *members,
                       int n, struct ddp_err *err)
{
    struct ddp_hosts *hosts = child->hosts;
    struct ddp_err reason = DDP_ERR_INIT;
    int32_t mine = ddp_comm_group(parent_local, members, n, &hosts->local, &reason);
    int32_t *all;
    DDP_TRY(ddp_comm_abort_if(child, DDP_NEW(&all, (size_t)child->size, err)));
    int rc = child->backend->exchange(child, &mine, all, sizeof mine, err);
    int32_t first = 0;
    int failed = 0;
    for (; failed < child->size && first == 0; failed++)
        first = all[failed];
    free(all);
    if (rc != 0 || first == 0)
        return rc;
    if (mine != 0)
        snprintf(hosts->why, sizeof hosts->why, "%.200s", reason.text);
    else if (first == DDP_EUNAVAIL)
        snprintf(hosts->why, sizeof hosts->why,
                 "a host of the group has no room for another group in shared memory");
    else
        snprintf(hosts->why, sizeof hosts->why,
                 "rank %d of the group could not join its group in shared memory", failed - 1);
    ddp_comm_destroy(hosts->local);
    hosts->local = NULL;
    return first == DDP_EUNAVAIL ? 0 : ddp_fail(err, (int)first, "%s", hosts->why);
}

int ddp_hosts_within(struct ddp_comm *world, struct ddp_comm *shared, struct ddp_err *err)
{
    if (world->size == 1)
        return 0;
    struct ddp_hosts *hosts = NULL;
    int *members;
    DDP_TRY(DDP_NEW(&members, (size_t)world->size, err));
    int rc = find_hosts(world, &hosts, err), n = 0;
    for (int r = 0; rc == 0 && r < world->size; r++) {
        if (hosts->of[r] == hosts->mine)
            members[n++] = r;
    }
    if (rc == 0)
        rc = ddp_comm_group(shared, members, n, &hosts->local, err);
    world->hosts = hosts;
    free(members);
    if (rc == 0)
        use_local(world, world);
    return rc;
}

int ddp_hosts_simulate(struct ddp_comm *world, struct ddp_err *err)
{
    return ddp_conf_get(DDP_CONF_SIMULATE_HOSTS) != NULL ? ddp_hosts_within(world, world, err) : 0;
}

int ddp_hosts_group(struct ddp_comm *parent, struct ddp_comm *child, const int *ranks,
                    struct ddp_err *err)
{
    const struct ddp_hosts *above = parent->hosts;
    const size_t size = (size_t)child->size;
    uint64_t *of = NULL;
    int *members = NULL, n = 0, rc;
    DDP_TRY_GOTO(DDP_NEW(&of, size, err), out);
    DDP_TRY_GOTO(DDP_NEW(&members, size, err), out);
    for (size_t i = 0; i < size; i++) {
        of[i] = (uint64_t)above->of[ranks[i]];
        if (above->of[ranks[i]] == above->mine)
            members[n++] = above->local_rank[ranks[i]];
    }
    DDP_TRY_GOTO(hosts_make(child, of, &child->hosts, err), out);
    memcpy(child->hosts->why, above->why, sizeof child->hosts->why);
    if (above->local == NULL)
        goto out;
    rc = group_local(above->local, child, members, n, err);
    if (rc == 0)
        use_local(child, ddp_comm_world(parent));
out:
    free(members);
    free(of);
    return rc;
}

void ddp_hosts_close(struct ddp_comm *comm)
{
    struct ddp_hosts *hosts = comm->hosts;
    if (hosts == NULL)
        return;
    if ((comm->backend->caps & DDP_CAP_MAP) == 0)
        comm->shm = NULL;
    ddp_comm_destroy(hosts->local);
    if (hosts->own_flight != NULL)
        comm->flight = hosts->own_flight;
    if (hosts->segment != NULL) {
        comm->rank_info.segment = NULL;
        ddp_segment_destroy(hosts->segment, -1);
    }
    comm->hosts = NULL;
    free(hosts->of);
    free(hosts);
}
