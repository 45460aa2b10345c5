/* Compressors encode a rank's gradients in fewer bytes. To add one, write one file and add one line
 * to compress_list.h.
 *
 * A compressor works on one bucket of n floats of one rank and never communicates. Its `combine`
 * says how the encoded buckets of all ranks are combined; exchange/compressed.h does that, for
 * `ddpbench allreduce --compress` and `train --sync`. Error feedback (feedback.h) is a decorator
 * around a compressor.
 *   DDP_COMBINE_SUM     The encoded bucket is an array [n] of wire_dtype; all-reduce may sum it.
 *   DDP_COMBINE_GATHER  The encoded bucket is an index-sorted list (device/sparse.h); the lists of
 *                       all ranks are combined. */
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

/* A compressor with its argument, parsed from text such as "topk:0.01". */
struct ddp_compress_spec {
    const struct ddp_compressor *compressor;
    double argument; /* density (0,1], threshold > 0, clip > 0; NaN if absent */
    char text[32];   /* as the user typed it */
};

/* The arguments of one encoding. The caller owns all arrays. */
struct ddp_encode {
    const struct ddp_device *device;
    const struct ddp_compress_spec *spec;
    const float *in; /* [n]; overlaps no output, but `none` allows dense == in */
    /* [n], or NULL: no error feedback. The residual of a 16-bit form is in the unit of the wire,
     * after `scale`. */
    float *residual;
    size_t n;
    /* Factor of the encoded values. 16-bit forms apply it before rounding (1/P for an average).
     * Sparse forms apply it after the selection, so that thresholds and residuals are in the unit
     * of the input. */
    float scale;
    /* Factor that `in` was already multiplied by; 0: none. It converts a clip, which is given in
     * the unit of the gradient. */
    float scaled;
    /* [state_bytes], aligned to 64, zeroed before the first call and kept between calls for the
     * same bucket. */
    void *state;
    /* The output: for SUM the array dense [n], for GATHER the list, with room for `bound` entries.
     */
    void *dense;
    struct ddp_sparse list;
    uint64_t overflow_count; /* in/out: adds the finite values that became infinite */
};

struct ddp_compressor {
    const char *name, *summary;
    const char *argument_help; /* "D", "T", "[CLIP]" (optional); NULL: takes no argument */
    enum ddp_combine combine;
    enum ddp_dtype wire_dtype; /* for SUM */
    bool feedback_default;     /* error feedback by default: the sparse ones */
    bool fuses_feedback;       /* encode() updates the residual itself, in its one pass */
    bool fixed_count;          /* GATHER: always exactly `bound` entries */
    bool global_topk;          /* oktopk: the sparse all-reduce selects again, globally */
    /* Checks the range of the argument; DDP_EUSAGE. NULL if the compressor takes none. */
    int (*check)(double argument, struct ddp_err *err);
    /* Returns the largest number of entries (GATHER), or n (SUM). */
    size_t (*bound)(const struct ddp_compress_spec *spec, size_t n);
    size_t (*state_bytes)(const struct ddp_compress_spec *spec, size_t n); /* NULL: none */
    void (*encode)(struct ddp_encode *e);
};

/* Returns all compressors of compress_list.h, in order; the array ends with NULL. */
const struct ddp_compressor *const *ddp_compressors(void);
/* Parses text such as "topk:0.01". DDP_EUSAGE: the message lists the legal names and suggests the
 * nearest. */
int ddp_compress_parse(const char *text, struct ddp_compress_spec *spec,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Returns k = ceil(density * n), at least 1 if n > 0. */
size_t ddp_compress_k(double density, size_t n);

#ifdef __cplusplus
}
#endif
#endif
