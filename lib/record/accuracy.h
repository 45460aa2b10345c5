/* The accuracies of the training runs of base and new, and the verdict on them.
 *
 * A group consists of the runs whose names differ only in the seed. Each seed that both base and
 * new have in a group gives one difference: the accuracy of new minus the accuracy of base
 * (stats/noninferior.h). If a run is repeated, as in the pairs of a gate, its accuracies are
 * averaged first, because the same seed gives nearly the same accuracy again. A run that diverged
 * has the accuracy 0. */
#ifndef DDP_RECORD_ACCURACY_H
#define DDP_RECORD_ACCURACY_H

#include "record/result_file.h"
#include "record/verdict_record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The runs of a group with one seed. The arrays are indexed by side: 0 is base, 1 is new. */
struct ddp_accuracy_seed {
    char group[DDP_RESULT_RUN_NAME];
    double seed;
    double sum[2]; /* Sum of the accuracies of the repetitions. */
    int count[2];  /* Number of repetitions. */
    bool diverged[2];
    double eval_images; /* Smallest number of evaluation images. NaN: unknown. */
};

struct ddp_accuracy_list {
    struct ddp_accuracy_seed *items; /* [count], released with free(). */
    size_t count, room;              /* room: number of elements for which `items` has memory. */
};

/* Adds the accuracies of a result. side: 0 is base, 1 is new. Skips runs without a seed, and runs
 * that have no accuracy although they did not diverge. Returns 0 or DDP_ENOMEM. */
int ddp_accuracy_add(struct ddp_accuracy_list *list, const struct ddp_result *result, int side,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Judges each group that base has. margin: the largest loss of accuracy that is accepted, as a
 * fraction of 1. Fills v->accuracy, and appends to v->reason. Changes v->outcome: a group that is
 * worse makes it FAIL, and an uncertain group turns a PASS into INCONCLUSIVE. A group is worse if
 * the upper bound of its mean difference is below -margin. The level of this bound is corrected for
 * the number of groups (Bonferroni), so a false FAIL is no more likely than with a single group. A
 * group is also worse if new diverged with a seed with which base did not diverge. Seeds with which
 * base diverged are ignored. Returns 0 or DDP_ENOMEM. */
int ddp_accuracy_judge(const struct ddp_accuracy_list *list, double margin,
                       struct ddp_verdict_record *v, struct ddp_err *err) DDP_MUST_CHECK;
/* Writes the result as a text: the difference with its bounds, or the number of seeds that are
 * needed. If new diverged, or if no seed is in both base and new, the text states this fact
 * instead. */
void ddp_accuracy_text(const struct ddp_verdict_accuracy *a, char *out, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
