/* The side channel over TCP: a backend with all-gathers of a few bytes, barriers and aborts, over
 * the connections of rendezvous.h. NCCL uses it if there is neither an MPI nor a segment of ours:
 * under torchrun, on one host or several.
 *
 * It is not in backend_list.h, because nobody measures it. Rank 0 collects and distributes each
 * all-gather with 2 (P - 1) messages. If a connection ends or a rank reports an abort, the waits of
 * all other ranks end. It has no point to point, no registered memory and no collectives. */
#ifndef DDP_COMM_CONTROL_TCP_H
#define DDP_COMM_CONTROL_TCP_H

#include "comm/backend.h"
#include "comm/rendezvous.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct ddp_backend ddp_control_tcp;

/* Opens the world over the given rendezvous. ddp_control_tcp.init calls it with the rendezvous from
 * torchrun's variables, and tests with one of their own. Collective. */
int ddp_control_tcp_open(struct ddp_comm *comm, const struct ddp_rendezvous_config *config,
                         struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
