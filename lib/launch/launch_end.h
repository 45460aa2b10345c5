/* Ends an mpiexec that does not end by itself. */
#ifndef DDP_LAUNCH_LAUNCH_END_H
#define DDP_LAUNCH_LAUNCH_END_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Looks for mpiexec or mpirun among the ancestors of this process. If there is one, starts a
 * process that waits for its end. If it still runs after grace_ns, the process sends it SIGTERM,
 * twice at most. mpiexec needs this if it has lost the connection to one of its hosts, because it
 * then waits minutes for that host. Call this function when this process is about to end. */
void ddp_launch_end_mpiexec(int64_t grace_ns);

#ifdef __cplusplus
}
#endif
#endif
