/* Bootstrap: the side channel of a backend such as NCCL, which moves data itself but needs another
 * connection until its communicator exists. The side channel sends the library's id to all ranks,
 * and carries barriers, agreement and aborts as long as the world lives.
 *
 * The launcher decides its kind: the shared segment with our own launcher, TCP (control_tcp.h) with
 * torchrun, on one host or several, and MPI with mpiexec and srun. The backend's init and group
 * call these functions. */
#ifndef DDP_COMM_BOOTSTRAP_H
#define DDP_COMM_BOOTSTRAP_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens comm->control for comm->place. comm->flight becomes the side channel's recorder.
 * Collective. */
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
