/* Hosts: which ranks of a communicator share one, and the memory these share.
 *
 * Under mpiexec nobody hands the ranks of a host a shared segment, so they make one: its lowest
 * rank creates a memory file, the others open it as /proc/<pid>/fd/<n>. It has no name anywhere and
 * is gone with the last process that maps it, whatever kills them. All hosts of the world can, or
 * none does (a container or a system call filter may refuse): then `local` is NULL and `why` says
 * why, and everything goes through the backend as if there were no hosts.
 *
 * A world whose ranks all share one host, and its groups, get its shm face (comm_shm.h), so that
 * all algorithms on shared memory run on them. One of several hosts has algorithms made for that
 * (allreduce "hier"): shared memory inside a host, messages between them.
 *
 * DDPBENCH_HOSTS pretends several hosts where there is one, for tests: "2" two of equal size, in
 * order of rank; "1+3" of these sizes; "2*" two, whose ranks take turns. It works on backend shm,
 * too; there the communicator keeps the face it has.
 * What this does not do: communicate between hosts. For lib/comm, and algorithms that read it. */
#ifndef DDP_COMM_HOSTS_H
#define DDP_COMM_HOSTS_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_segment;
struct ddp_sysinfo;

/* count: hosts, 1 and up, numbered by their lowest ranks; mine: this rank's. of [size]: each
 * rank's. leader [count]: the lowest rank of each. local: the ranks of this host, ascending, over
 * shared memory; owned; NULL where they cannot share. segment, own_flight: of the world, hosts.c's.
 */
struct ddp_hosts {
    int count, mine;
    int *of, *leader;
    struct ddp_comm *local;
    struct ddp_segment *segment;
    struct ddp_flight *own_flight;
    char why[256];
};

/* Finds the hosts of a world and shares memory inside each. Collective over the world; for a
 * backend's init, when exchange works. Nothing to do for one rank. An error is a real one (a rank
 * was lost, DDPBENCH_HOSTS is wrong); memory that cannot be shared is none. */
int ddp_hosts_open(struct ddp_comm *world, const struct ddp_comm_options *options,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* DDPBENCH_HOSTS on a backend that maps memory of its own. Collective. Nothing without it. */
int ddp_hosts_pretend(struct ddp_comm *world, struct ddp_err *err) DDP_MUST_CHECK;
/* The same of a group whose parent has hosts. Collective over the group. */
int ddp_hosts_group(struct ddp_comm *parent, struct ddp_comm *child, const int *ranks,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Collective over the ranks of a host when healthy. NULL members are fine. */
void ddp_hosts_close(struct ddp_comm *comm);

/* A word for a host, by its boot and name: ranks with equal ones share it. */
uint64_t ddp_hosts_identity(const struct ddp_sysinfo *info);

/* hosts_share.c: shares memory between members[n], the world's ranks of this host, ascending: fills
 * segment and local of world->hosts, or why. Collective over the world. */
int ddp_hosts_share(struct ddp_comm *world, const int *members, int n,
                    const struct ddp_comm_options *options, struct ddp_err *err) DDP_MUST_CHECK;

/* DDPBENCH_HOSTS for `size` ranks: of [size]. DDP_EUSAGE. */
int ddp_hosts_parse(const char *text, int size, int *of, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
