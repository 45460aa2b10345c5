/* Parameters averaged now and then, each rank taking optimiser steps of its own in between: what
 * partial and local are made of.
 *
 * The parameters are cut into K *chunks*, equal to within a cache line. Every H-th step the next
 * chunk, rotating, is averaged over ranks, in place; momentum is not. A rank's weight in the
 * average is its share of the images since that chunk was averaged last (w_r = m_r/n), so ranks
 * with uneven parts count for what they saw. */
#ifndef DDP_EXCHANGE_SYNC_AVERAGE_H
#define DDP_EXCHANGE_SYNC_AVERAGE_H

#include "exchange/sync.h"

#ifdef __cplusplus
extern "C" {
#endif

/* chunks >= 1; every >= 1: averages once in so many steps. Collective. The other functions are
 * members of ddp_sync_class. */
int ddp_sync_average_create(const struct ddp_sync_setup *setup, int chunks, int64_t every,
                            struct ddp_sync **out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_sync_average_destroy(struct ddp_sync *s);
void ddp_sync_average_begin_step(struct ddp_sync *s, size_t images, size_t global);
int ddp_sync_average_on_grad_ready(struct ddp_sync *s, int param, struct ddp_err *err);
int ddp_sync_average_finish_backward(struct ddp_sync *s, struct ddp_err *err);
int ddp_sync_average_end_step(struct ddp_sync *s, struct ddp_err *err);
/* Averages every chunk that was trained since its last averaging. */
int ddp_sync_average_all(struct ddp_sync *s, struct ddp_err *err);
void ddp_sync_average_counters(const struct ddp_sync *s, struct ddp_sync_counters *out);
/* The chunk that the last step averaged; n 0: none. */
void ddp_sync_average_equal_part(const struct ddp_sync *s, size_t *first, size_t *n);

/* Chunk c of `chunks` of total elements: [*first, *first + *n). Boundaries at cache lines. */
void ddp_sync_average_chunk(size_t total, int chunks, int c, size_t *first, size_t *n);

#ifdef __cplusplus
}
#endif
#endif
