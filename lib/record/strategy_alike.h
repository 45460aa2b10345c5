/* Decides which training runs may share a row of the strategy table, and which may be compared.
 * Used by strategy_table.c. */
#ifndef DDP_RECORD_STRATEGY_ALIKE_H
#define DDP_RECORD_STRATEGY_ALIKE_H

#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True if the task (model, data, batch, optimiser and so on) is equal, so that accuracies and times
 * may be compared. */
bool ddp_runs_same_task(const struct ddp_train_run *a, const struct ddp_train_run *b);
/* Like ddp_runs_same_task, but ignores batch and steps, in which a run and its baseline on one rank
 * may differ. */
bool ddp_runs_same_net(const struct ddp_train_run *a, const struct ddp_train_run *b);
/* True if task, ranks, strategy and its options are equal. Such runs differ only in seed and
 * repetition. */
bool ddp_runs_same_row(const struct ddp_train_run *a, const struct ddp_train_run *b);
/* Appends the first difference between the runs to label, for example ", feedback off". Appends
 * nothing if the label already contains one of the differences. */
void ddp_runs_add_difference(const struct ddp_train_run *run, const struct ddp_train_run *other,
                             char *label, size_t label_bytes);

#ifdef __cplusplus
}
#endif
#endif
