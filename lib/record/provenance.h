/* The origin of a result: the build, this host and the relevant environment variables. Only
 * allow-listed variables are recorded. A variable whose name suggests a secret is never recorded.
 */
#ifndef DDP_RECORD_PROVENANCE_H
#define DDP_RECORD_PROVENANCE_H

#include <stdbool.h>

#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the facts about this program's build. */
const struct ddp_build *ddp_build_info(void);

/* Fills in the command line, the SIMD level, the start time, the environment and the cost and
 * resolution of the timer. Adds this host with `ranks` ranks as host 0. argv must live as long as
 * the record. */
int ddp_provenance_fill(struct ddp_record *record, const char *command, int argc, char *const *argv,
                        int ranks, struct ddp_err *err) DDP_MUST_CHECK;
/* Fills *out with the facts about this machine, except those about its GPUs. `nic` is the name of
 * the network interface to describe, or "". */
void ddp_provenance_host(int ranks, const char *nic, struct ddp_host *out);
/* True if this variable may be recorded. */
bool ddp_provenance_env_allowed(const char *variable);

#ifdef __cplusplus
}
#endif
#endif
