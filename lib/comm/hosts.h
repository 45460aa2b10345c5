/* Finds out which ranks of a communicator share a host, and makes the memory that these ranks
 * share.
 *
 * An outside launcher makes no shared segment, so the ranks of each host make one. The host's
 * lowest rank creates a memory file, and the other ranks open it as /proc/<pid>/fd/<n>. The file
 * has no name and disappears with the last process that maps it. A container or a system call
 * filter may forbid the other ranks to open the file. If one host cannot share memory, no host
 * shares memory. `local` is then NULL, `why` has the reason, and the backend moves all data by
 * messages.
 *
 * If all ranks of a world share the memory of one host, the world and its groups get shm contexts
 * (comm_shm.h). In worlds of several hosts, algorithms such as allreduce "hier" use shared memory
 * inside a host and messages between hosts.
 *
 * DDPBENCH_SIMULATE_HOSTS simulates several hosts on one host, for tests. "2" makes two hosts of
 * equal size in rank order, "1+3" makes hosts of 1 and 3 ranks, and "2*" makes two hosts whose
 * ranks alternate. On backend shm, the world keeps its shm context, because its ranks do share
 * memory. */
#ifndef DDP_COMM_HOSTS_H
#define DDP_COMM_HOSTS_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_segment;
struct ddp_sysinfo;

struct ddp_hosts {
    /* The number of hosts (at least 1), and this rank's host. Hosts are numbered in the order of
     * their lowest ranks. */
    int count, mine;
    /* `of` [size]: the host of each rank. `leader` [count]: the lowest rank of each host. `ranks`
     * [count]: the number of ranks of each host. `local_rank` [size]: the number of each rank among
     * the ranks of its host. */
    int *of, *leader, *ranks, *local_rank;
    /* The shm communicator of this host's ranks, in the order of their ranks. Owned by this struct.
     * NULL if the ranks cannot share memory. */
    struct ddp_comm *local;
    /* Only hosts*.c uses these two members, which are set only for the world. `segment` is this
     * host's segment. `own_flight` is the flight recorder that the world used before it used the
     * recorder of `local`. */
    struct ddp_segment *segment;
    struct ddp_flight *own_flight;
    char why[256]; /* the reason why `local` is NULL */
};

/* Finds the hosts of a world and shares memory inside each host. Does nothing in a world of one
 * rank. The init function of a backend calls this function when the all-gather of the backend
 * works. Collective over the world. Fails only if the run must end, for example because a rank is
 * lost or DDPBENCH_SIMULATE_HOSTS has an illegal value. It is not an error if memory cannot be
 * shared. */
int ddp_hosts_open(struct ddp_comm *world, const struct ddp_comm_options *options,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Does the same as ddp_hosts_open for ranks that already share memory. The shm communicator
 * `shared` has the same ranks as `world`. */
int ddp_hosts_within(struct ddp_comm *world, struct ddp_comm *shared,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Applies DDPBENCH_SIMULATE_HOSTS to the world of a backend that maps memory itself (DDP_CAP_MAP).
 * Does nothing if the variable is not set. Collective. */
int ddp_hosts_simulate(struct ddp_comm *world, struct ddp_err *err) DDP_MUST_CHECK;
/* Sets child->hosts for a group whose parent has hosts. Collective over the group. */
int ddp_hosts_group(struct ddp_comm *parent, struct ddp_comm *child, const int *ranks,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Frees comm->hosts. Collective over the ranks of a host unless the run failed. comm->hosts and its
 * members may be NULL. */
void ddp_hosts_close(struct ddp_comm *comm);

/* Returns a hash of the boot id and the host name. Ranks with equal hashes share a host. */
uint64_t ddp_hosts_identity(const struct ddp_sysinfo *info);

/* Defined in hosts_share.c. Shares memory between the world's ranks of this host. Sets `segment`
 * and `local` of world->hosts, or `why` if memory cannot be shared. Collective over the world. */
int ddp_hosts_share(struct ddp_comm *world, const struct ddp_comm_options *options,
                    struct ddp_err *err) DDP_MUST_CHECK;

/* Parses the value of DDPBENCH_SIMULATE_HOSTS for `size` ranks and writes the host of each rank to
 * the array `of` [size]. Returns DDP_EUSAGE if the value is illegal. */
int ddp_hosts_parse(const char *text, int size, uint64_t *of, struct ddp_err *err) DDP_MUST_CHECK;

/* Ways to choose n ranks of a world. SPREAD takes one rank from each host in turn, beginning with
 * the lowest rank of each host. PACK takes ranks 0 to n - 1. Both ways include rank 0. */
enum ddp_subset { DDP_SUBSET_SPREAD, DDP_SUBSET_PACK };
extern const char *const ddp_subset_names[]; /* indexed by the enum; the last entry is NULL */
/* Chooses n of `size` ranks, n <= size. The array `of` [size] holds the host of each rank. Writes
 * the chosen ranks to `members` [n] in ascending order. */
int ddp_hosts_subset(enum ddp_subset how, const uint64_t *of, int size, int n, int *members,
                     struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
