/* Runs `ddpbench compare`: compares two stored result documents.
 *
 * The comparison of two stored results is weaker than the gate, because each side was measured only
 * once, and at another time. A cell counts as slower only if the whole interval of its ratio shows
 * a slow-down of more than 10 % and of more than the machine's noise floor. */
#ifndef DDP_RUN_COMPARE_RUN_H
#define DDP_RUN_COMPARE_RUN_H

#include "record/result_file.h"
#include "record/verdict_record.h"
#include "run/command.h"
#include "run/outputs.h"

/* Smallest min_effect of a comparison. */
#define DDP_COMPARE_EFFECT 0.10

/* Judges the cells of base. The interval of a ratio contains all ratios that the 95 % intervals of
 * the two medians allow. There is no PASS if a result was cut off, or if a cell or a training run
 * of base was not judged. A cell whose injected delays differ stays undecided. min_effect: raised
 * to DDP_COMPARE_EFFECT if it is smaller. accuracy_margin: see record/accuracy.h. Release *out with
 * ddp_verdict_record_release. Returns DDP_EMISMATCH for results of different machines or ranks. */
int ddp_compare_results(const struct ddp_result *base, const struct ddp_result *next,
                        double min_effect, double accuracy_margin, struct ddp_verdict_record *out,
                        struct ddp_err *err) DDP_MUST_CHECK;

/* A comparison of two stored results. */
struct ddp_compare {
    const char *path[2];
    const struct ddp_verdict_outputs *outputs;
    double min_effect;      /* as a fraction; NaN: not given */
    double accuracy_margin; /* largest loss of accuracy that is accepted, as a fraction of 1 */
    unsigned vary;          /* keys that are no part of a cell's id (record/vary.h) */
    const char *noise_file; /* NULL: not given */
};
/* Compares the results. Returns the same as ddp_gate_run. */
int ddp_compare_run(struct ddp_app *app, const struct ddp_compare *c,
                    struct ddp_err *err) DDP_MUST_CHECK;

#endif
