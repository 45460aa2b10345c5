/* The strategy table of `ddpbench train --compare`, computed from a record's training runs.
 *
 * A row contains the runs of one strategy on one number of ranks, one run per seed and repetition.
 * Runs with different models, batches, feedback and so on are in separate rows. The accuracy of a
 * run is the mean over at most its last three epochs, so that one lucky epoch does not decide. The
 * reference of a row is the first 'dense' row of the same task and number of
 * ranks. If there is none, it is the first row of that task and number of ranks. Differences and
 * speeds relative to the reference are paired by seed and repetition, because seeds vary more than
 * strategies do. Missing figures are NaN. */
#ifndef DDP_RECORD_STRATEGY_TABLE_H
#define DDP_RECORD_STRATEGY_TABLE_H

#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_STRATEGY_EPOCHS 3 /* Number of epochs in the accuracy of a run. */

/* Mean and range over runs, or over pairs of runs. */
struct ddp_spread {
    double mean, min, max;
};

/* Whether a step is faster than with the reference. YES: by more than 5 % in every pair of runs.
 * NO: slower by more than 5 % in every pair. UNCLEAR: neither. UNKNOWN: there are no pairs. */
enum ddp_pays { DDP_PAYS_NO, DDP_PAYS_YES, DDP_PAYS_UNCLEAR, DDP_PAYS_UNKNOWN };

struct ddp_strategy_row {
    char sync[96], reference[96]; /* Names of the rows, for example "topk:0.01, feedback off". */
    /* First run of each row, borrowed from the record. */
    const struct ddp_train_run *run, *reference_run;
    int ranks;
    int runs; /* Number of runs with at least one finished epoch. */
    struct ddp_spread accuracy;
    /* Accuracy minus that of the reference, by pairs. NaN for the reference. */
    struct ddp_spread difference;
    double images_per_second; /* Images of all runs divided by their seconds. */
    /* Means over steps. exposed_step_seconds: time in which computation waits for the exchange. */
    double step_seconds, exposed_step_seconds;
    double wire_bytes_per_step; /* Bytes that a rank sends, as a mean over steps. */
    /* Step time of the reference divided by that of this row, by pairs. */
    struct ddp_spread reference_speedup;
    double speedup;    /* images_per_second divided by that of one rank. */
    double efficiency; /* speedup / ranks */
    double achieved_density;
    enum ddp_pays pays;
    /* The link speed of a rank, in GB/s, below which a step takes less time than with the
     * reference: the bytes saved per step divided by the additional time per step, as means over
     * the pairs. In shared memory nothing crosses a link, so the additional time is the difference
     * between the step times. Elsewhere it is the difference between the times of encode plus
     * decode. 0: no bytes are saved. INFINITY: there is no additional time. NaN: unknown, one
     * rank, or an exchange overlapped with computation, whose bytes need not delay a step. */
    double pays_below_GBps;
    double target_accuracy;                   /* NaN: no target. */
    int target_reached;                       /* Runs that reached the target. */
    double target_seconds, target_wire_bytes; /* Means over these runs. */
    int64_t peak_memory_bytes;                /* Maximum. -1: unknown. */
};

/* The table of a row (record/field.h). */
struct ddp_fields;
extern const struct ddp_fields ddp_strategy_fields;

/* Computes the rows in order of first appearance. *rows is NULL and *count 0 if there are fewer
 * than two runs that are not baselines. The caller passes *rows to free(). Returns DDP_ENOMEM. */
int ddp_strategy_table(const struct ddp_record *record, struct ddp_strategy_row **rows, int *count,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Like ddp_strategy_table, but also returns the row of a single run. */
int ddp_strategy_rows(const struct ddp_record *record, struct ddp_strategy_row **rows, int *count,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* Returns whether the run belongs to the row. */
bool ddp_strategy_has_run(const struct ddp_strategy_row *row, const struct ddp_train_run *run);
/* Writes one sentence without a full stop that says whether the strategy makes a step faster; "" if
 * there are no pairs of runs. If it does not, the sentence names the link speed below which it
 * would. out_bytes >= 512. */
void ddp_strategy_verdict(const struct ddp_strategy_row *row, char *out, unsigned long out_bytes);

#ifdef __cplusplus
}
#endif
#endif
