/* Compares two stored results. This is weaker than the gate: each side was measured only once, and
 * at different times. A cell is slower only if the interval of the ratio of its medians lies above
 * the larger of 10 % and the machine's noise floor. */
#ifndef DDP_BENCH_GATE_COMPARE_H
#define DDP_BENCH_GATE_COMPARE_H

#include "record/result_file.h"
#include "record/verdict_record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Smallest min_effect of a comparison. */
#define DDP_COMPARE_EFFECT 0.10

/* Judges the cells of base. The interval of a ratio is the widest combination of both medians' 95 %
 * intervals. A result that was cut off, or a cell or a training run of base that was not judged,
 * prevents a PASS. A cell with an injected delay on one side only is not judged. min_effect: raised
 * to DDP_COMPARE_EFFECT if it is below. Release out->cells and out->unjudged.items with free().
 * Returns DDP_EMISMATCH for results of different machines. */
int ddp_compare_results(const struct ddp_result *base, const struct ddp_result *next,
                        double min_effect, struct ddp_verdict_record *out,
                        struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
