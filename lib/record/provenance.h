/* Where a result comes from: the build, this host, the environment variables that matter.
 * Only allow-listed variables are taken, and none whose name looks like a secret, whatever the list
 * says. */
#ifndef DDP_RECORD_PROVENANCE_H
#define DDP_RECORD_PROVENANCE_H

#include <stdbool.h>

#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From the build: version ("0.1.0"), commit (git describe --always --dirty), compiler, cflags.
 * dirty: uncommitted changes. */
struct ddp_build {
    const char *version, *commit, *compiler, *cflags;
    bool dirty;
};
const struct ddp_build *ddp_build_info(void);

/* Fills command line, time, host 0 (this one, `ranks` ranks), environment, timer cost. argv is
 * borrowed for the record's life. */
int ddp_provenance_fill(struct ddp_record *record, const char *command, int argc, char *const *argv,
                        int ranks, struct ddp_err *err) DDP_MUST_CHECK;
/* May this variable be recorded? */
bool ddp_provenance_env_allowed(const char *variable);

#ifdef __cplusplus
}
#endif
#endif
