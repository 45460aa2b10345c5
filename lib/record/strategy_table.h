/* What a record's training runs say about each strategy: `ddpbench train --compare`.
 *
 * Runs of one strategy on one rank count, one a seed, make a row; a sweep's may differ by model,
 * batch, feedback, ... as well, and then make rows of their own. Accuracy of a run is the mean of
 * its last (at most) three epochs, so that one lucky epoch does not decide. The reference is the
 * first row of the same task and rank count that is 'dense', else the first; differences to it and
 * speeds against it are paired by seed, for seeds vary more than strategies do. Pure functions of
 * the record; NaN where a figure does not exist. */
#ifndef DDP_RECORD_STRATEGY_TABLE_H
#define DDP_RECORD_STRATEGY_TABLE_H

#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_STRATEGY_EPOCHS 3 /* averaged for the accuracy of a run */

struct ddp_spread {
    double mean, min, max;
};

/* Does it make a step faster than the reference? By more than 5 % with every seed; slower: the same
 * the other way; neither is UNCLEAR. */
enum ddp_pays { DDP_PAYS_UNKNOWN, DDP_PAYS_YES, DDP_PAYS_NO, DDP_PAYS_UNCLEAR };

struct ddp_strategy_row {
    char sync[96],
        reference[96]; /* their names; "topk:0.01, feedback off" where one is not enough */
    const struct ddp_train_run *run, *reference_run; /* the first of each; borrowed of the record */
    int ranks, runs;                                 /* runs: seeds */
    struct ddp_spread accuracy;
    struct ddp_spread
        difference;           /* accuracy minus the reference's, by seed; NaN: is the reference */
    double images_per_second; /* of all runs: images over seconds */
    double step_seconds, exposed_step_seconds, wire_bytes_per_step; /* means; bytes of a rank */
    struct ddp_spread reference_speedup; /* the reference's step time over this one's, over seeds */
    double speedup, efficiency; /* images/s over those of the runs on one rank, and by ranks */
    double achieved_density;
    enum ddp_pays pays;
    double target_accuracy;                   /* NaN: none was set */
    int target_reached;                       /* runs that did */
    double target_seconds, target_wire_bytes; /* means over those */
    int64_t peak_memory_bytes;                /* largest; -1 unknown */
};

/* Rows in order of first appearance; NULL and 0 when there are fewer than two runs that are not
 * baselines. *rows: free(). DDP_ENOMEM. */
int ddp_strategy_table(const struct ddp_record *record, struct ddp_strategy_row **rows, int *count,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* For people: whether it pays, one sentence without a full stop. out >= 320 bytes; "" for the
 * reference. */
void ddp_strategy_verdict(const struct ddp_strategy_row *row, char *out, unsigned long out_bytes);

#ifdef __cplusplus
}
#endif
#endif
