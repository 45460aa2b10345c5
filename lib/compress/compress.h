/* Compressors: how a rank's gradients become fewer bytes. One file and one line in
 * compress_list.h add one.
 *
 * A compressor works on one bucket of n floats of one rank. It never communicates: what is done
 * with the wire form is said by `combine` and done by exchange/compressed.h. Used there, by
 * `ddpbench allreduce --compress` and by `train --sync`. Error feedback is a decorator
 * (feedback.h): a compressor only promises that what it leaves out can be kept.
 *
 *   DDP_COMBINE_SUM     wire is [n] of wire_dtype, and all-reduce may sum it.
 *   DDP_COMBINE_GATHER  wire is an index-sorted list (device/sparse.h); the lists of all ranks are
 *                       combined. */
#ifndef DDP_COMPRESS_COMPRESS_H
#define DDP_COMPRESS_COMPRESS_H

#include <stdbool.h>

#include "base/err.h"
#include "device/device.h"
#include "device/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_combine { DDP_COMBINE_SUM, DDP_COMBINE_GATHER };

struct ddp_compressor;

/* What the user asked for, parsed: "topk:0.01" -> topk, 0.01. */
struct ddp_compress_spec {
    const struct ddp_compressor *compressor;
    double argument; /* density (0,1], threshold > 0, clip > 0; NaN when there is none */
    char text[32];   /* as typed */
};

/* One encoding: arrays are the caller's. residual [n] or NULL (no feedback). scale: what is encoded
 * is multiplied by it: 16-bit forms before they are rounded (1/P of an average: divide before the
 * sum), sparse ones after the selection, so that thresholds and residuals are in the input's unit.
 * A 16-bit form's residual is in the wire's unit, scale applied. scaled: what `in` was multiplied
 * with before, so that a clip is in the gradient's unit; 0: nothing. state: state_bytes, aligned to
 * 64, zeroed before the first call, kept between calls on the same bucket. */
struct ddp_encode {
    const struct ddp_device *device;
    const struct ddp_compress_spec *spec;
    const float *in; /* [n]; does not overlap an output, but `none` may have dense == in */
    float *residual;
    size_t n;
    float scale, scaled;
    void *state;
    /* out. SUM: dense [n]. GATHER: list, with room for `bound` entries. */
    void *dense;
    struct ddp_sparse list;
    uint64_t overflow_count; /* added to: finite values that the wire form made infinite */
};

struct ddp_compressor {
    const char *name, *summary;
    const char *argument_help; /* "D", "T", "[CLIP]" (optional), NULL: takes none */
    enum ddp_combine combine;
    enum ddp_dtype wire_dtype; /* SUM */
    bool feedback_default;     /* on for the sparse ones */
    bool fuses_feedback;       /* encode handles residual itself, in its one pass */
    bool fixed_count;          /* GATHER: always exactly `bound` entries */
    bool global_topk;          /* oktopk: the exchange selects again, globally */
    /* Range of the argument, DDP_EUSAGE. NULL: takes none. */
    int (*check)(double argument, struct ddp_err *err);
    /* GATHER: entries at most; SUM: n. */
    size_t (*bound)(const struct ddp_compress_spec *spec, size_t n);
    size_t (*state_bytes)(const struct ddp_compress_spec *spec, size_t n); /* NULL: none */
    void (*encode)(struct ddp_encode *e);
};

/* All of compress_list.h, in order; NULL-terminated. */
const struct ddp_compressor *const *ddp_compressors(void);
/* "topk:0.01" -> spec. DDP_EUSAGE names what is legal and the nearest. */
int ddp_compress_parse(const char *text, struct ddp_compress_spec *spec,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* k = ceil(D * n), at least 1 when n > 0. */
size_t ddp_compress_k(double density, size_t n);

#ifdef __cplusplus
}
#endif
#endif
