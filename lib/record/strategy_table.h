/* The strategy table of `ddpbench train --compare`, computed from a record's training runs.
 *
 * A row contains the runs of one strategy on one number of ranks, one run per seed and repetition.
 * Runs that differ in another setting, such as model, batch or feedback, are in separate rows. The
 * accuracy of a run is the mean over at most its last three epochs, so that one lucky epoch does
 * not decide. The reference of a row is the first 'dense' row of the same task and number of ranks.
 * If there is none, it is the first row of that task and number of ranks. Each run is compared with
 * the reference's run of the same seed and repetition, because results vary more between seeds than
 * between strategies. Missing figures are NaN. */
#ifndef DDP_RECORD_STRATEGY_TABLE_H
#define DDP_RECORD_STRATEGY_TABLE_H

#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_STRATEGY_EPOCHS 3 /* Number of epochs in the accuracy of a run. */

/* Mean, minimum and maximum over runs, or over pairs of runs (a run and the reference's run). */
struct ddp_spread {
    double mean, min, max;
};

/* Whether a step is faster than with the reference. YES: it is faster by more than 5 % in every
 * pair of runs. NO: it is slower by more than 5 % in every pair. UNCLEAR: neither holds. UNKNOWN:
 * there are no pairs. */
enum ddp_pays { DDP_PAYS_NO, DDP_PAYS_YES, DDP_PAYS_UNCLEAR, DDP_PAYS_UNKNOWN };

struct ddp_strategy_row {
    /* Names of this row and of its reference row, for example "topk:0.01, feedback off". */
    char sync[96], reference[96];
    /* First run of this row and of its reference row, borrowed from the record. */
    const struct ddp_train_run *run, *reference_run;
    int ranks;
    int runs; /* Number of runs with at least one finished epoch. */
    struct ddp_spread accuracy;
    /* Over the pairs: accuracy minus the accuracy of the reference. NaN for the reference. */
    struct ddp_spread difference;
    double images_per_second; /* Images of all runs divided by their seconds. */
    /* Means over steps. exposed_step_seconds: time in which computation waits for the exchange. */
    double step_seconds, exposed_step_seconds;
    double wire_bytes_per_step; /* Bytes that a rank sends, as a mean over steps. */
    /* Over the pairs: step time of the reference divided by the step time of this row. */
    struct ddp_spread reference_speedup;
    double speedup;    /* images_per_second divided by the images per second of one rank. */
    double efficiency; /* speedup / ranks */
    double achieved_density;
    enum ddp_pays pays;
    /* The link speed of a rank, in GB/s, below which a step takes less time than with the
     * reference: the bytes saved per step divided by the additional time per step, as means over
     * the pairs. In shared memory nothing crosses a link, so the additional time is the difference
     * between the step times. With other backends it is the difference between the times of encode
     * plus decode. 0: no bytes are saved. INFINITY: there is no additional time. NaN: the speed is
     * unknown, there is one rank, or an exchange overlaps with computation, so that its bytes need
     * not delay a step. */
    double pays_below_GBps;
    double target_accuracy;                   /* NaN: no target. */
    int target_reached;                       /* Runs that reached the target. */
    double target_seconds, target_wire_bytes; /* Means over the runs that reached the target. */
    int64_t peak_memory_bytes;                /* Maximum. -1: unknown. */
};

/* The table of the members of a row (record/field.h). */
struct ddp_fields;
extern const struct ddp_fields ddp_strategy_fields;

/* Computes the rows in order of first appearance. *rows is NULL and *count 0 if there are fewer
 * than two runs that are not baselines. The caller frees *rows with free(). Returns 0 or
 * DDP_ENOMEM. */
int ddp_strategy_table(const struct ddp_record *record, struct ddp_strategy_row **rows, int *count,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Like ddp_strategy_table, but returns a row even if there is only one run. */
int ddp_strategy_rows(const struct ddp_record *record, struct ddp_strategy_row **rows, int *count,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* Returns whether the run belongs to the row. */
bool ddp_strategy_has_run(const struct ddp_strategy_row *row, const struct ddp_train_run *run);
/* Writes one sentence without a full stop that says whether the strategy makes a step faster. If it
 * does not, the sentence names the link speed below which it would. Writes "" if there are no pairs
 * of runs. out_bytes >= 512. */
void ddp_strategy_verdict(const struct ddp_strategy_row *row, char *out, unsigned long out_bytes);

#ifdef __cplusplus
}
#endif
#endif
