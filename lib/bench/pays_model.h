/* Predicts the time of a training step with each compression method on each link, and says which
 * methods pay. A method pays if it sends fewer bytes than bf16, and if its step is clearly faster
 * than with every method that does not send fewer bytes.
 *
 *   step time = compute + B * arithmetic + link,   link = N * steps * latency + B * bytes / speed
 *
 * B is the number of buckets, which need not be a whole number, and N is B rounded up. The
 * arithmetic of a bucket (encoding, summing, decoding) is the measured time of an exchange in
 * shared memory, where nothing crosses a link. The time of encoding does not depend on the number
 * of ranks. If a rank decodes the blocks of all ranks, the time of decoding is proportional to the
 * number of ranks. Otherwise it does not depend on this number. The rest of the time is
 * proportional to the bytes that a rank sends, so it is scaled from the measured number of ranks to
 * that of the training. `steps` and `bytes` come from the cost models of the algorithms. If a
 * method has several algorithms, the fastest one on this link counts. A compressor with rounds is
 * assumed to send each bucket as one matrix that is nearly square.
 *
 * Nothing overlaps by default. With `overlap`, the link transfers during the backward pass, which
 * is assumed to be two thirds of the compute time, and only the rest of the link's time counts.
 *
 * If the exchange was measured on the link itself (GBps is NaN), the step takes compute + B *
 * measured time. The break-even speeds are then computed for a link with the least bytes of the
 * method and no latency. If the ranks share memory, the arithmetic is the measured time of the
 * exchange. Otherwise it is only encoding and decoding.
 *
 * The interval of a step covers only the error of the measurement, not of the model. */
#ifndef DDP_BENCH_PAYS_MODEL_H
#define DDP_BENCH_PAYS_MODEL_H

#include "compress/compress.h"
#include "record/pays_record.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_PAYS_BASELINE "bf16"

/* A link as the user gave it. GBps is NaN if the exchange was measured on the link itself. */
struct ddp_pays_speed {
    double GBps, latency_ns;
};

struct ddp_pays_question {
    int64_t parameters;
    double step_ns;
    int ranks; /* Ranks of the training. The points may have fewer. */
    bool overlap;
    /* The points' exchange crossed no link. If this is false, only encoding and decoding count as
     * arithmetic when the break-even speed of a measured link is computed. */
    bool shared_memory;
    const struct ddp_pays_speed *speeds;
    int speed_count;
    const struct ddp_compress_list *methods;
    /* [methods->n]: accuracy minus that of dense training. NaN: not measured. */
    const double *accuracy_change;
    const struct ddp_point *points; /* One of each method, on the same number of ranks. */
    int point_count;
};

/* Fills *out, which the caller releases with ddp_pays_release. Methods without a point are left
 * out. Returns DDP_EUNAVAIL if the baseline has no point, or DDP_ENOMEM. */
int ddp_pays_answer(const struct ddp_pays_question *q, struct ddp_pays_record *out,
                    struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
