/* Two stored results compared: weaker than the gate, for there is one launch each, at different
 * times. A cell is slower only if the interval of the ratio of its medians lies above the larger of
 * 10 % and the machine's noise floor. */
#ifndef DDP_BENCH_GATE_COMPARE_H
#define DDP_BENCH_GATE_COMPARE_H

#include "record/result_file.h"
#include "record/verdict_record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_COMPARE_EFFECT 0.10

/* Cells are base's. The interval: of the medians' own 95 % intervals, widest combination.
 * There is no PASS when a result was cut off, or when a cell or a training run of base was not
 * judged; a cell with an injected delay on one side alone is not. min_effect: raised to
 * DDP_COMPARE_EFFECT when below. out->cells, out->unjudged.items: free(). DDP_EMISMATCH: other
 * machines. */
int ddp_compare_results(const struct ddp_result *base, const struct ddp_result *next,
                        double min_effect, struct ddp_verdict_record *out,
                        struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
