/* Periodic averaging of parameters: the common part of the strategies partial and local. Between
 * averages each rank takes its own optimiser steps.
 *
 * The parameters are cut into K *chunks*, whose sizes differ by at most one cache line. Every H
 * steps the next chunk, in rotation, is averaged over the ranks in place. Momentum is not averaged.
 * The weight of a rank is m/n: m images of this rank and n images of all ranks since this chunk was
 * last averaged. */
#ifndef DDP_EXCHANGE_SYNC_AVERAGE_H
#define DDP_EXCHANGE_SYNC_AVERAGE_H

#include "exchange/sync.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates the strategy. It has `chunks` >= 1 chunks and averages one chunk every `every` >= 1
 * steps. Collective. The other functions implement members of ddp_sync_class. */
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
