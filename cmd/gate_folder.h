/* The folder in which a gate's launches write their results. Private to gate*.c.
 *
 * It is locked as long as its gate lives; what a gate that was killed has left, the next one
 * removes. What it does not do: touch folders of other users, or with other files in them. */
#ifndef DDP_CMD_GATE_FOLDER_H
#define DDP_CMD_GATE_FOLDER_H

#include <limits.h>

#include "base/err.h"

struct ddp_gate_folder {
    char path[PATH_MAX];
    int fd; /* holds the lock */
};
/* Below TMPDIR, else /tmp. DDP_ECREATE. Ended with ddp_gate_folder_remove. */
int ddp_gate_folder_make(struct ddp_gate_folder *out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_gate_folder_remove(struct ddp_gate_folder *f);

#endif
