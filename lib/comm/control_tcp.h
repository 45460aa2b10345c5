/* The side channel over TCP: a backend that supports only small all-gathers, barriers and aborts.
 * It uses the connections of rendezvous.h. Backends nccl and ucx use this side channel under
 * launchers that provide neither PMI nor a shared segment, such as torchrun.
 *
 * The backend is not in backend_list.h, because users cannot measure it. In an all-gather, rank 0
 * collects the data of all ranks and sends it to all ranks. This takes 2 (P - 1) messages for P
 * ranks. If a connection ends or a rank reports an abort, the waits of all other ranks end with an
 * error. */
#ifndef DDP_COMM_CONTROL_TCP_H
#define DDP_COMM_CONTROL_TCP_H

#include "comm/backend.h"
#include "launch/rendezvous.h"

#ifdef __cplusplus
extern "C" {
#endif

/* init reads the rendezvous configuration from the launcher's environment variables
 * (ddp_launcher_rendezvous). */
extern const struct ddp_backend ddp_control_tcp;

/* Returns this rank's listener. If this rank is rank 0 of a group, the other ranks of the group
 * connect to this listener. */
const struct ddp_listener *ddp_control_tcp_listener(const struct ddp_comm *comm);

/* Marks `rank` of comm as lost (-1: unknown), and sends `text` as the reason to the other ranks.
 * Does nothing if comm has failed before. */
void ddp_control_tcp_lost(struct ddp_comm *comm, int rank, const char *text);
/* Returns the world rank that caused the failure of comm, or -1 if comm has not failed or the rank
 * is unknown. */
int ddp_control_tcp_culprit(const struct ddp_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
