/* The watchdog: a sleeping thread that ends this process if the process makes no progress. It is
 * needed for calls that block inside a library and cannot check a deadline, such as MPI's
 * collectives. The watchdog reads the flight recorder 8 times per timeout. It acts if the newest
 * operation has been in state ENTERED, with the same index, for longer than 1.25 times the timeout.
 * When the watchdog acts, it calls `on_expire` with a report and then _exit. A wait that checks the
 * timeout itself begins a little later than its operation, but fails before 1.25 times the timeout
 * has passed. The error of such a wait is the better report, because the error names the rank that
 * is waited for.
 *
 * While this rank is idle (ddp_comm_agree_idle), the watchdog watches the working ranks of this
 * host. It acts if none of these ranks has entered an operation, set a phase or called
 * ddp_flight_beat for the timeout plus a grace period. The grace period is half the timeout, but at
 * least 1 s, so that the watchdogs of the working ranks report first.
 *
 * While this rank computes outside operations (ddp_flight_compute), the watchdog acts if the rank's
 * recorder has not changed for the timeout plus the same grace period. Ranks that wait for this
 * rank therefore report first. */
#ifndef DDP_LAUNCH_WATCHDOG_H
#define DDP_LAUNCH_WATCHDOG_H

#include "base/err.h"
#include "diag/flight.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_segment;
struct ddp_watchdog;
/* `host` is the segment of this host's ranks, or NULL if there is none. Without a segment an idle
 * rank has no deadline. `on_expire` may be NULL. Returns DDP_ENOMEM if the thread cannot be
 * started. */
int ddp_watchdog_start(const struct ddp_flight *flight, const struct ddp_segment *host,
                       int64_t timeout_ns, void (*on_expire)(void *arg, const char *report_text),
                       void *arg, struct ddp_watchdog **out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_watchdog_stop(struct ddp_watchdog *dog); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
