/* Hosts: which ranks of a communicator share a host, and the memory that they share.
 *
 * Under mpiexec the ranks of a host get no shared segment from the launcher, so they make one: the
 * host's lowest rank creates a memory file and the others open it as /proc/<pid>/fd/<n>. The file
 * has no name and disappears with the last process that maps it. Either all hosts of the world
 * share memory or none does (a container or a system call filter may forbid it). In that case
 * `local` is NULL, `why` has the reason, and the backend carries everything.
 *
 * A world whose ranks all share one host, and its groups, get the shm context of that host
 * (comm_shm.h), so all algorithms on shared memory run there. Worlds of several hosts have
 * algorithms of their own (allreduce "hier"): shared memory inside a host, messages between hosts.
 *
 * DDPBENCH_HOSTS simulates several hosts on one, for tests: "2" makes two hosts of equal size in
 * rank order, "1+3" hosts of these sizes, and "2*" two hosts whose ranks alternate. It also works
 * on backend shm, where the communicator keeps its shm context. This module does not communicate
 * between hosts. Users: lib/comm, and algorithms that read struct ddp_hosts. */
#ifndef DDP_COMM_HOSTS_H
#define DDP_COMM_HOSTS_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_segment;
struct ddp_sysinfo;

struct ddp_hosts {
    /* The number of hosts (at least 1), and this rank's host. Hosts are numbered by their lowest
     * ranks. */
    int count, mine;
    /* of [size]: the host of each rank. leader [count]: the lowest rank of each host. */
    int *of, *leader;
    /* The ranks of this host in ascending order, over shared memory. Owned; NULL if they cannot
     * share memory. */
    struct ddp_comm *local;
    /* World only, private to hosts.c: this host's segment, and the recorder that world->flight
     * replaced. */
    struct ddp_segment *segment;
    struct ddp_flight *own_flight;
    char why[256]; /* the reason if `local` is NULL */
};

/* Finds the hosts of a world and shares memory inside each. Does nothing for one rank. The
 * backend's init calls it once its all-gather works. Collective over the world. Errors are those
 * that end the run, such as a lost rank or a wrong DDPBENCH_HOSTS; memory that cannot be shared is
 * not an error. */
int ddp_hosts_open(struct ddp_comm *world, const struct ddp_comm_options *options,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Applies DDPBENCH_HOSTS to a backend that maps memory itself (DDP_CAP_MAP); does nothing if the
 * variable is not set. Collective. */
int ddp_hosts_simulate(struct ddp_comm *world, struct ddp_err *err) DDP_MUST_CHECK;
/* Makes the hosts of a group whose parent has hosts. Collective over the group. */
int ddp_hosts_group(struct ddp_comm *parent, struct ddp_comm *child, const int *ranks,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Frees comm->hosts. Collective over the ranks of a host unless the run failed. comm->hosts may be
 * NULL, and so may its members. */
void ddp_hosts_close(struct ddp_comm *comm);

/* Returns a hash of the boot id and the host name. Ranks with equal hashes share a host. */
uint64_t ddp_hosts_identity(const struct ddp_sysinfo *info);

/* hosts_share.c. Shares memory between members [n], the world's ranks of this host in ascending
 * order. Fills world->hosts: segment and local, or why. Collective over the world. */
int ddp_hosts_share(struct ddp_comm *world, const int *members, int n,
                    const struct ddp_comm_options *options, struct ddp_err *err) DDP_MUST_CHECK;

/* Parses the value of DDPBENCH_HOSTS for `size` ranks and writes the host of each rank to of
 * [size]. Returns DDP_EUSAGE if it is wrong. */
int ddp_hosts_parse(const char *text, int size, int *of, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
