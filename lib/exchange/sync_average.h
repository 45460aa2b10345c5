/* Periodic averaging of parameters: the common part of the strategies partial and local, in which
 * each rank takes its own optimiser steps between averages.
 *
 * The parameters are cut into K *chunks* of equal size, up to one cache line. Every H steps the
 * next chunk, in rotation, is averaged over the ranks in place; momentum is not averaged. A rank's
 * weight is its share of the images seen since this chunk was last averaged (w_r = m_r/n), so
 * uneven ranks count by the images they saw. */
#ifndef DDP_EXCHANGE_SYNC_AVERAGE_H
#define DDP_EXCHANGE_SYNC_AVERAGE_H

#include "exchange/sync.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates the strategy with `chunks` >= 1 chunks and one average in `every` >= 1 steps. Collective.
 * The other functions implement members of ddp_sync_class. */
int ddp_sync_average_create(const struct ddp_sync_setup *setup, int chunks, int64_t every,
                            struct ddp_sync **out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_sync_average_destroy(struct ddp_sync *s);
void ddp_sync_average_begin_step(struct ddp_sync *s, size_t images, size_t global);
int ddp_sync_average_on_grad_ready(struct ddp_sync *s, int param, struct ddp_err *err);
int ddp_sync_average_finish_backward(struct ddp_sync *s, struct ddp_err *err);
int ddp_sync_average_end_step(struct ddp_sync *s, struct ddp_err *err);
/* Averages every chunk that was trained since it was last averaged. */
int ddp_sync_average_all(struct ddp_sync *s, struct ddp_err *err);
void ddp_sync_average_counters(const struct ddp_sync *s, struct ddp_sync_counters *out);
/* Returns the chunk that the last step averaged, with *n = 0 if there was none. */
void ddp_sync_average_equal_part(const struct ddp_sync *s, size_t *first, size_t *n);

/* Computes the range [*first, *first + *n) of chunk c when `total` elements are cut into `chunks`
 * chunks at cache-line boundaries. */
void ddp_sync_average_chunk(size_t total, int chunks, int c, size_t *first, size_t *n);

#ifdef __cplusplus
}
#endif
#endif
