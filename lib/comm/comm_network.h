/* Finds the network interface of this host that carries a job's traffic. */
#ifndef DDP_COMM_COMM_NETWORK_H
#define DDP_COMM_COMM_NETWORK_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets world->host and world->nic. In a world of several hosts, the interface is the one that
 * backend ucx uses for TCP. If ucx does not use TCP, or with another backend, it is the interface
 * through which packets to the largest number of other hosts leave. If several interfaces have this
 * number, it is the fastest of them. On one host it is the interface of the default route. Groups
 * that are opened afterwards have the same values. Collective. */
int ddp_comm_find_nic(struct ddp_comm *world, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
