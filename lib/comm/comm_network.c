#include "comm/comm_network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/network.h"
#include "base/sysinfo.h"
#include "comm/backend.h"
#include "comm/hosts.h"

#define ADDRESSES_MAX 12 /* largest number of addresses that a rank sends */
#define PEERS_MAX     16 /* largest number of other hosts whose routes a rank looks up */

/* The addresses of a rank's host. */
struct place {
    uint64_t host;
    int64_t count;
    struct ddp_nic_address address[ADDRESSES_MAX];
};

/* Returns the index of the first address of an interface, or -1. */
static int find_name(const struct place *own, const char *name)
{
    for (int i = 0; i < own->count; i++)
        if (strcmp(own->address[i].name, name) == 0)
            return i;
    return -1;
}

/* Adds 1 to votes[i] if packets to the host of `peer` leave from own->address[i]. If an interface
 * has several addresses, the vote goes to its first address, and the interface gets at most one
 * vote. */
static void vote(const struct place *own, const struct place *peer, int *votes)
{
    bool voted[ADDRESSES_MAX] = {false};
    for (int64_t k = 0; k < peer->count; k++) {
        int i = ddp_nic_route(&peer->address[k], own->address, (int)own->count), first;
        if (i < 0)
            continue;
        first = find_name(own, own->address[i].name);
        votes[first] += voted[first] ? 0 : 1;
        voted[first] = true;
    }
}

static int64_t speed_of(const char *nic)
{
    struct ddp_network_facts facts;
    ddp_network_facts_read("", nic, &facts);
    return facts.nic.speed_Mbps;
}

/* Returns the index of the address whose interface has the most votes, or -1 if there are no votes.
 * If several interfaces have the most votes, the fastest of them wins. */
static int elect(const struct place *own, const int *votes)
{
    int best = -1;
    for (int i = 0; i < own->count; i++) {
        if (votes[i] == 0 || (best >= 0 && votes[i] < votes[best]))
            continue;
        if (best < 0 || votes[i] > votes[best] ||
            speed_of(own->address[i].name) > speed_of(own->address[best].name))
            best = i;
    }
    return best;
}

/* Returns the index of the first address of the interface that the backend uses for TCP, or -1.
 * Backend ucx names this interface among its transports, as in "tcp/eth0". */
static int find_transport(struct ddp_comm *world, const struct place *own)
{
    char text[160] = "", *rest = NULL;
    int found = -1;
    if (world->backend->transports != NULL)
        world->backend->transports(world, text, sizeof text);
    for (char *entry = strtok_r(text, ", ", &rest); entry != NULL && found < 0;
         entry = strtok_r(NULL, ", ", &rest))
        if (strncmp(entry, "tcp/", 4) == 0)
            found = find_name(own, entry + 4);
    return found;
}

/* Chooses among the interfaces of this host. all [size]: the addresses of all ranks. Looks up the
 * routes to at most PEERS_MAX other hosts, beginning with the host of the rank after this one, so
 * that the ranks of a large job look up routes to different hosts. */
static void choose(struct ddp_comm *world, const struct place *all)
{
    const struct place *own = &all[world->rank];
    uint64_t seen[PEERS_MAX];
    int votes[ADDRESSES_MAX] = {0}, peers = 0, best;
    for (int k = 1; k < world->size && peers < PEERS_MAX; k++) {
        const struct place *peer = &all[(world->rank + k) % world->size];
        bool is_new = peer->host != own->host;
        for (int i = 0; i < peers; i++)
            is_new = is_new && seen[i] != peer->host;
        if (!is_new)
            continue;
        seen[peers++] = peer->host;
        vote(own, peer, votes);
    }
    if (peers == 0) {
        ddp_nic_default(world->nic.name);
        return;
    }
    best = find_transport(world, own);
    if (best < 0)
        best = elect(own, votes);
    if (best >= 0)
        world->nic = own->address[best];
}

int ddp_comm_find_nic(struct ddp_comm *world, struct ddp_err *err)
{
    struct ddp_sysinfo info;
    struct place mine, *all;
    int rc = DDP_NEW(&all, (size_t)world->size, err);
    rc = ddp_comm_agree(world, rc, err);
    if (rc != 0) {
        free(all);
        return rc;
    }
    ddp_sysinfo_read(&info);
    memset(&mine, 0, sizeof mine);
    mine.host = ddp_hosts_identity(&info);
    mine.count = ddp_nic_addresses(mine.address, ADDRESSES_MAX);
    rc = ddp_comm_allgather_bytes(world, &mine, all, sizeof mine, err);
    if (rc == 0) {
        world->host = mine.host;
        choose(world, all);
    }
    free(all);
    return rc;
}
