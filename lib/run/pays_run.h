/* `ddpbench pays` uses the job of the collectives (run/points.h). These functions choose the points
 * to measure, and predict from them how long a training step takes (bench/pays_model.h). */
#ifndef DDP_RUN_PAYS_RUN_H
#define DDP_RUN_PAYS_RUN_H

#include "bench/pays_model.h"
#include "run/points.h"

/* The methods that are measured if --compress is not given. If --gradients is not given either,
 * DDP_PAYS_THRESHOLD is added. It suits only the random gradients, which are normally distributed:
 * one value in a hundred has a magnitude of at least 2.576. */
#define DDP_PAYS_METHODS   "fp16, q8, q4, fp8-e4m3, sign, powersgd:2, topk:0.01, oktopk:0.01"
#define DDP_PAYS_THRESHOLD "threshold:2.576"

/* The largest number of ranks of the predicted training run. */
#define DDP_PAYS_RANKS_MAX 65536

struct ddp_pays_values {
    struct ddp_collective_values c; /* must be first */
    const char *parameters_text, *step_text, *gradients, *accuracy;
    struct ddp_string_list links;
    uint64_t bucket_bytes;
    bool overlap, table;
    /* ddp_pays_check fills the members below. */
    int64_t parameters;
    double step_ns;
    int ranks; /* ranks of the predicted run; 0: the ranks that measure */
    struct ddp_pays_speed speed[DDP_PAYS_MAX];
    int speed_count;
    double accuracy_change[DDP_OPT_LIST_MAX]; /* of each method; set if ddp_app_is_root */
};

/* Completes and checks the values, and sets what the job measures. Reads the files of recorded
 * gradients and of accuracies. */
int ddp_pays_check(const struct ddp_app *app, struct ddp_pays_values *v,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* The function `show` of the command (run/command.h). Prints nothing. Returns DDP_EUSAGE for fewer
 * than two ranks, and for a link if the ranks do not share memory. */
int ddp_pays_check_ranks(struct ddp_app *app, const void *values, const char *backend, int ranks,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* The function `conclude` of the command: adds the answer to the record. */
int ddp_pays_conclude(const void *values, struct ddp_record *record,
                      struct ddp_err *err) DDP_MUST_CHECK;

#endif
