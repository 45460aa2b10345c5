/* Finds the network interface of this host that carries a job's traffic. */
#ifndef DDP_COMM_COMM_NETWORK_H
#define DDP_COMM_COMM_NETWORK_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets world->host and world->nic. On one host, the interface is that of the default route. In a
 * world of several hosts, it is the interface that backend ucx uses for TCP. If ucx does not use
 * TCP, or with another backend, it is the interface that carries the packets to the largest number
 * of other hosts. If there are several such interfaces, the fastest one is chosen. Groups that are
 * opened afterwards have the same values. Collective. */
int ddp_comm_find_nic(struct ddp_comm *world, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
