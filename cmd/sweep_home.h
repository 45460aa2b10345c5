/* What the home of a sweep keeps. Private to sweep_home.c, sweep_restore.c and sweep_facts.c. */
#ifndef DDP_CMD_SWEEP_HOME_H
#define DDP_CMD_SWEEP_HOME_H

#include "sweep.h"

/* Where a training run of the record belongs. */
struct ddp_sweep_trained {
    int launch, item;
};

/* launch, item: what runs now. trained [record->train_count]. ended_here: items that ended in this
 * run. left_out: items that could not be run, the first of which said why. */
struct ddp_sweep_home {
    struct ddp_journal *journal;
    int launch, item;
    struct ddp_sweep_trained *trained;
    int trained_count;
    int left_out;
    char why[192];
    bool whole;
};

/* Adds where the record's last training run belongs. DDP_ENOMEM. */
int ddp_sweep_home_trained(struct ddp_sweep_home *home, int launch, int item,
                           struct ddp_err *err) DDP_MUST_CHECK;

/* sweep_facts.c. record: its head is filled in. */
void ddp_sweep_facts(const struct ddp_sweep_values *v, const struct ddp_record *record,
                     struct ddp_journal_facts *facts);

/* sweep_restore.c: opens the journal at `path` and adds to the record what it says. A training run
 * whose item did not end is no part of it: it begins again. */
int ddp_sweep_restore(struct ddp_sweep_values *v, const char *path, struct ddp_record *record,
                      struct ddp_err *err) DDP_MUST_CHECK;

#endif
