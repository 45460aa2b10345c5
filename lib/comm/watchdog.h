/* The watchdog: a sleeping thread that ends this process if one operation exceeds its deadline. It
 * is for calls that block inside a library and cannot poll (native MPI). It reads the flight
 * recorder every timeout / 8 and acts if the newest operation has been in state ENTERED, with the
 * same index, for longer than the timeout. It calls `on_expire` with a report and then _exit; only
 * the watchdog and the launcher may call _exit.
 *
 * While the rank is idle (ddp_comm_agree_idle), the watchdog acts if no working rank of this host
 * has entered an operation or changed its phase for the timeout and a grace of half of it (at least
 * 1 s), in which the watchdogs of the working ranks report first. */
#ifndef DDP_COMM_WATCHDOG_H
#define DDP_COMM_WATCHDOG_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_segment;
struct ddp_watchdog;
/* host: the segment of this host's ranks; NULL if there is none, and then an idle rank has no
 * deadline. */
int ddp_watchdog_start(const struct ddp_flight *flight, const struct ddp_segment *host,
                       int64_t timeout_ns, void (*on_expire)(void *arg, const char *report_text),
                       void *arg, struct ddp_watchdog **out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_watchdog_stop(struct ddp_watchdog *dog); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
