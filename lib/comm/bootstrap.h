/* Bootstrap: opens the side channel of a backend such as nccl. The library of such a backend moves
 * data itself, but the ranks need another connection to open the library's communicator. With
 * backend nccl, the side channel sends the id of NCCL's communicator to all ranks, and it carries
 * barriers, agreements on errors and aborts until the world is closed. With backend ucx, the ranks
 * exchange the addresses of UCX workers over the side channel, which then carries aborts.
 *
 * The launcher determines which connection the side channel uses: the shared segment under our own
 * launcher, MPI under a launcher with PMI (mpiexec, srun), and TCP (control_tcp.h) under all
 * others, such as torchrun. The backend's init and group call these functions. */
#ifndef DDP_COMM_BOOTSTRAP_H
#define DDP_COMM_BOOTSTRAP_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens comm->control for the ranks of comm->rank_info. comm->flight becomes the flight recorder of
 * the side channel. Collective. */
int ddp_bootstrap_open(struct ddp_comm *comm, const struct ddp_comm_options *options,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Opens child->control as a group of the parent's side channel. Collective over the group's
 * ranks. */
int ddp_bootstrap_group(struct ddp_comm *parent, struct ddp_comm *child,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Closes comm->control; NULL is allowed. */
void ddp_bootstrap_close(struct ddp_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
