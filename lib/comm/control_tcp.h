/* Control traffic over TCP: a backend that can only exchange a few bytes, meet, and give up, over
 * the star of rendezvous.h. It is what a backend that moves data by itself (NCCL) stands on when
 * neither an MPI nor a segment of ours is there: ranks of torchrun, on one host or several.
 *
 * Not in backend_list.h: nobody measures on it. Rank 0 is the hub of each exchange: 2 (P - 1)
 * messages. A rank whose connection ends, or that says it gives up, ends the wait of all others.
 * What it does not do: point to point, registered memory, collectives. */
#ifndef DDP_COMM_CONTROL_TCP_H
#define DDP_COMM_CONTROL_TCP_H

#include "comm/backend.h"
#include "comm/rendezvous.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct ddp_backend ddp_control_tcp;

/* Opens the world over a meeting of its own: what init does with the one of torchrun's variables.
 * Collective. For ddp_control_tcp.init, and for tests. */
int ddp_control_tcp_open(struct ddp_comm *comm, const struct ddp_meeting *meeting,
                         struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
