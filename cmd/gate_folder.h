/* The folder in which a gate's child processes write their results. Private to gate*.c.
 *
 * A gate holds a lock on its folder while it runs. Each gate removes the folders of this user's
 * killed gates, unless other files are in them. */
#ifndef DDP_CMD_GATE_FOLDER_H
#define DDP_CMD_GATE_FOLDER_H

#include <limits.h>

#include "base/err.h"

struct ddp_gate_folder {
    char path[PATH_MAX];
    int fd; /* holds the lock */
};
/* Creates and locks a folder in $TMPDIR, else in /tmp. Returns DDP_ECREATE if that fails. The
 * caller releases it with ddp_gate_folder_remove. */
int ddp_gate_folder_make(struct ddp_gate_folder *out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_gate_folder_remove(struct ddp_gate_folder *f);

#endif
