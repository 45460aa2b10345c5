/* The verdict on a compressed or partial exchange: a sentence that compares its time with the dense
 * exchanges that were measured beside it (struct ddp_point, dense_ns). */
#ifndef DDP_RECORD_POINT_VERDICT_H
#define DDP_RECORD_POINT_VERDICT_H

#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The name of a baseline in sentences: "dense f32" or "dense fp16". */
const char *ddp_baseline_name(enum ddp_baseline baseline);
/* Writes one sentence without a full stop, for example "topk:0.01, 16 MiB on 2 ranks: 6.0x slower
 * than dense f32 (4.35 ms against 726 us by direct): it does not pay here; it would pay on links
 * below about 4.5 GB/s (36 Gbit/s) per rank". If the point has quality codes, the sentence ends
 * with them. Writes "" for dense exchanges, if ranks shared a GPU, and if no time of dense f32 was
 * measured. out_bytes >= 512. */
void ddp_point_verdict(const struct ddp_point *p, char *out, unsigned long out_bytes);
/* True if a summary of the record shows the verdict of this point. For each combination of
 * compressor, chunks, algorithm, operation, ranks and groups, a summary shows only the verdict of
 * the point with the largest size. If several points have this size, it shows the verdict of the
 * last one. If the record has an answer of `pays`, a summary shows that instead of verdicts. */
bool ddp_point_verdict_in_summary(const struct ddp_record *record, int index);

/* Completes a verdict in `out` which says that an exchange is not faster than a dense one. Appends
 * the link speed below which it would be faster, or that no link makes it faster, because it sends
 * at least as many bytes as `reference`. Appends nothing if pays_below_GBps is not finite. */
void ddp_verdict_add_link(double pays_below_GBps, const char *reference, char *out,
                          unsigned long out_bytes);

#ifdef __cplusplus
}
#endif
#endif
