/* The watchdog: a sleeping thread that ends this process when one operation outlasts its deadline.
 * For calls that block inside a library and cannot poll (native MPI). It reads the flight recorder
 * every timeout/8 and acts when the newest operation has been ENTERED, with the same sequence
 * number, for longer than the timeout. It is one of the two places that may _exit. Before that it
 * calls `on_expire` with the line to say. */
#ifndef DDP_COMM_WATCHDOG_H
#define DDP_COMM_WATCHDOG_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_watchdog;
int ddp_watchdog_start(const struct ddp_flight *flight, int64_t timeout_ns,
                       void (*on_expire)(void *arg, const char *story), void *arg,
                       struct ddp_watchdog **out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_watchdog_stop(struct ddp_watchdog *dog); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
