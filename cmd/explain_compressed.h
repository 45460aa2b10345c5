/* Topics of `ddpbench explain` that are about compressed exchanges. */
#ifndef DDP_CMD_EXPLAIN_COMPRESSED_H
#define DDP_CMD_EXPLAIN_COMPRESSED_H

#include <stdio.h>

void ddp_explain_effective(FILE *out);
void ddp_explain_break_even(FILE *out);

#endif
