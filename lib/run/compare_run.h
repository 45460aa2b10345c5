/* Runs `ddpbench compare`: compares two stored result documents.
 *
 * The comparison of two stored results is weaker than the gate, because each side was measured only
 * once, and the two sides at different times. A cell counts as slower only if the whole interval of
 * its ratio shows a slow-down of more than the smallest effect that counts. This effect is at least
 * 10 %. If --min-effect is not given and the results come from this machine, the effect is also at
 * least the stored noise floor of this machine. */
#ifndef DDP_RUN_COMPARE_RUN_H
#define DDP_RUN_COMPARE_RUN_H

#include "record/result_file.h"
#include "record/verdict_record.h"
#include "run/command.h"
#include "run/outputs.h"

/* Smallest min_effect of a comparison. */
#define DDP_COMPARE_EFFECT 0.10

/* Judges the cells of base. The interval of a ratio contains all ratios that the 95 % intervals of
 * the two medians allow. The verdict is not PASS if a result is incomplete, or if a cell or a
 * training run of base was not judged. A cell stays undecided if its injected delays differ between
 * the results. min_effect: a value below DDP_COMPARE_EFFECT is raised to DDP_COMPARE_EFFECT. vary:
 * the --vary keys with which both results were read. accuracy_margin: see record/accuracy.h.
 * Release *out with ddp_verdict_record_release. Returns DDP_EMISMATCH if the fingerprints of the
 * results differ. The builds may differ. */
int ddp_compare_results(const struct ddp_result *base, const struct ddp_result *next, unsigned vary,
                        double min_effect, double accuracy_margin, struct ddp_verdict_record *out,
                        struct ddp_err *err) DDP_MUST_CHECK;

/* Largest number of documents. */
#define DDP_COMPARE_MAX 64

/* A comparison of stored results. */
struct ddp_compare {
    const char *const *path; /* [count] */
    size_t count;            /* 2, or with `across` from 2 to DDP_COMPARE_MAX */
    bool across;             /* show ratios to the first result, judge nothing */
    bool edited;             /* accept results that were changed after they were written */
    unsigned vary;           /* keys that are not part of a cell's identity (record/vary.h) */
    const struct ddp_verdict_outputs *outputs;
    double min_effect;      /* as a fraction; NaN: not given */
    double accuracy_margin; /* largest loss of accuracy that is accepted, as a fraction of 1 */
    const char *noise_file; /* NULL: not given */
};
/* Compares the results. Returns the same codes as ddp_gate_run. If c->across is set, returns 0 or
 * an error. */
int ddp_compare_run(struct ddp_app *app, const struct ddp_compare *c,
                    struct ddp_err *err) DDP_MUST_CHECK;

#endif
