/* Sentences about late ranks, for the foot of a table. */
#ifndef DDP_RECORD_STRAGGLER_TEXT_H
#define DDP_RECORD_STRAGGLER_TEXT_H

#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* At most this number of points have a sentence of their own. */
#define DDP_STRAGGLER_LINES 8

/* Writes the next sentence about a straggler, for example "straggler, allreduce 4 MiB in place,
 * direct: rank 1 on host a came last in 97 % of the iterations, by 210 us to 240 us (95 % interval
 * of the median), and cost 20 % of their time; cause: compute". *next is 0 in the first call.
 * Returns false past the last sentence. */
bool ddp_straggler_line(const struct ddp_record *r, int *next, char *out, size_t out_bytes);
/* Writes the next sentence about --arrival: which algorithm ends soonest after the last rank has
 * entered the operation. There is a sentence for each set of points that differ only in the
 * algorithm. *next is 0 in the first call. Returns false past the last sentence. */
bool ddp_arrival_line(const struct ddp_record *r, int *next, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
