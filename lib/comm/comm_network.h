/* Finds the network interface of this host that carries a job's traffic. */
#ifndef DDP_COMM_COMM_NETWORK_H
#define DDP_COMM_COMM_NETWORK_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets world->host and world->nic. With several hosts, the interface is that of a TCP connection of
 * backend ucx. Without such a connection it is the one over which packets to most of the other
 * hosts leave, and the fastest one if there are several. On one host it is the interface of the
 * default route. Groups that are opened afterwards have the same values. Collective. */
int ddp_comm_find_nic(struct ddp_comm *world, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
