/* Bootstrap: the control communicator of a backend that moves data by itself but cannot say a word
 * before it is set up (NCCL). It tells all ranks the library's id, and carries barriers, agreement
 * and aborts as long as the world lives.
 *
 * What it is follows from who started the ranks: our own launcher: the shared segment; torchrun:
 * TCP (control_tcp.h), on one host or several; mpiexec and srun: MPI. For the backend's init. */
#ifndef DDP_COMM_BOOTSTRAP_H
#define DDP_COMM_BOOTSTRAP_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens comm->control for comm->place; comm->flight becomes its recorder. Collective. */
int ddp_bootstrap_open(struct ddp_comm *comm, const struct ddp_comm_options *options,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* The same of a group: its parent's control, these ranks of it. Collective over them. */
int ddp_bootstrap_group(struct ddp_comm *parent, struct ddp_comm *child,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* NULL control is fine. */
void ddp_bootstrap_close(struct ddp_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
