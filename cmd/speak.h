/* Which rank says what when several processes of an outside launcher find something wrong. A
 * process that fails before there is a world cannot ask the others, so ranks of one host see
 * through a name in the kernel (an abstract socket) that another has said the same line already. */
#ifndef DDP_CMD_SPEAK_H
#define DDP_CMD_SPEAK_H

#include "cmd.h"

/* A head start for rank 0. Each rank but 0 waits this long before it speaks, and a rank that has
 * spoken lives on for twice as long: at the first rank that fails some launchers end the others. */
#define DDP_SPEAK_FIRST_US 300000

/* Was this process started with others, by an outside launcher? */
bool ddp_speak_is_shared(const struct ddp_app *app);
/* Is this the first rank on the host that claims this line? The claim holds until the process ends.
 * Ranks whose parents differ always may. */
bool ddp_speak_claim(const char *line);
/* Says why the program fails, on stderr: alone, as the rank that speaks for all, or with this rank
 * and its host. */
void ddp_speak_error(const struct ddp_app *app, struct ddp_err *err);
/* "rank 1 on node17" of this process. */
void ddp_speak_rank(const struct ddp_app *app, char *out, size_t out_bytes);

#endif
