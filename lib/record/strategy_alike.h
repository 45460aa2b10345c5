/* Which training runs may stand in one row of the strategy table, or beside each other: those that
 * learn the same thing in the same way. For strategy_table.c; pure functions of the runs. */
#ifndef DDP_RECORD_STRATEGY_ALIKE_H
#define DDP_RECORD_STRATEGY_ALIKE_H

#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Same model, data, batch, optimiser, ...: their accuracies and times may be compared. */
bool ddp_runs_same_task(const struct ddp_train_run *a, const struct ddp_train_run *b);
/* The same but for batch and steps: one may be the other's run on one rank. */
bool ddp_runs_same_net(const struct ddp_train_run *a, const struct ddp_train_run *b);
/* The same task and strategy, with the same feedback, buckets, ...: they differ by seed only. */
bool ddp_runs_same_row(const struct ddp_train_run *a, const struct ddp_train_run *b);
/* Appends ", feedback off" and the like to label, the first thing in which `run` is not like
 * `other`; nothing where the label tells them apart already. */
void ddp_runs_add_difference(const struct ddp_train_run *run, const struct ddp_train_run *other,
                             char *label, size_t label_bytes);

#ifdef __cplusplus
}
#endif
#endif
