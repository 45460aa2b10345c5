/* The state of a sweep's collector. Private to sweep_collector.c, sweep_restore.c and
 * sweep_facts.c. */
#ifndef DDP_CMD_SWEEP_COLLECTOR_H
#define DDP_CMD_SWEEP_COLLECTOR_H

#include "sweep.h"

/* The repetition and the item that a training run of the record belongs to. */
struct ddp_sweep_trained {
    int launch, item;
};

struct ddp_sweep_collector {
    struct ddp_journal *journal;       /* NULL if there is none */
    int launch, item;                  /* the repetition and item that run now */
    struct ddp_sweep_trained *trained; /* one entry per training run of the record */
    int trained_count;
    int left_out;  /* number of items that could not run */
    char why[192]; /* why the first of these items could not run */
    bool whole;    /* all items of all repetitions are finished */
};

/* Stores the repetition and item of one more training run of the record. */
int ddp_sweep_collector_trained(struct ddp_sweep_collector *collector, int launch, int item,
                                struct ddp_err *err) DDP_MUST_CHECK;

/* sweep_facts.c: collects the facts that the journal must agree with. The record must already name
 * the backend, the launcher and the hosts. */
void ddp_sweep_facts(const struct ddp_sweep_values *v, const struct ddp_record *record,
                     struct ddp_journal_facts *facts);

/* sweep_restore.c: opens the journal at `path` and adds its points and training runs to the record.
 * Training runs of an unfinished item are left out, because the item runs again. */
int ddp_sweep_restore(struct ddp_sweep_values *v, const char *path, struct ddp_record *record,
                      struct ddp_err *err) DDP_MUST_CHECK;

#endif
