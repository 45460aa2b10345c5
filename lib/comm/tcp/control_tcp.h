/* The side channel over TCP: a backend with all-gathers of a few bytes, barriers and aborts. It
 * uses the connections of rendezvous.h. Backend nccl uses this side channel under torchrun, where
 * there is neither MPI nor a shared segment.
 *
 * The backend is not in backend_list.h, because it is never measured. Rank 0 collects and
 * distributes each all-gather with 2 (P - 1) messages for P ranks. If a connection ends or a rank
 * reports an abort, the waits of all other ranks end. */
#ifndef DDP_COMM_TCP_CONTROL_TCP_H
#define DDP_COMM_TCP_CONTROL_TCP_H

#include "comm/backend.h"
#include "launch/rendezvous.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct ddp_backend ddp_control_tcp;

/* Opens the world with the given rendezvous configuration. ddp_control_tcp.init reads the
 * configuration from torchrun's variables; tests pass their own. Collective. */
int ddp_control_tcp_open(struct ddp_comm *comm, const struct ddp_rendezvous_config *config,
                         struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
