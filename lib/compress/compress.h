/* Compressors encode a rank's gradients in fewer bytes. To add one, write one file and add one line
 * to compress_list.h.
 *
 * A compressor encodes one bucket of n floats of one rank and does not communicate. `combine` says
 * how the encoded buckets of all ranks are combined. exchange/compressed.h combines them, for
 * `ddpbench allreduce --compress` and `train --sync`. Error feedback (feedback.h) can be added to
 * any compressor.
 *   DDP_COMBINE_SUM     The encoded bucket is an array [n] of wire_dtype. All-reduce sums the
 *                       arrays.
 *   DDP_COMBINE_GATHER  The encoded bucket is an index-sorted list (device/sparse.h). A sparse
 *                       all-reduce sums the lists. */
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
    double argument; /* a density in (0, 1], a threshold > 0 or a clip > 0; NaN if absent */
    char text[32];   /* as the user typed it */
};

/* The arguments of one encoding. The caller owns all arrays. */
struct ddp_encode {
    const struct ddp_device *device;
    const struct ddp_compress_spec *spec;
    const float *in; /* [n]; must not overlap an output, except that `none` allows dense == in */
    /* [n], or NULL for no error feedback. The residual of a 16-bit compressor is already multiplied
     * by `scale`. The residual of a sparse compressor is not. */
    float *residual;
    size_t n;
    /* Factor of the encoded values, for example 1/P for an average over P ranks. 16-bit compressors
     * multiply before they round. Sparse compressors multiply after the selection, so that
     * thresholds and residuals have the unit of the input. */
    float scale;
    /* Factor that `in` has already been multiplied by, or 0 for none. A clip is multiplied by this
     * factor too, because the user gives the clip in the unit of the gradient. */
    float scaled;
    /* [state_bytes], aligned to 64. It is zeroed before the first call and kept between calls for
     * the same bucket. */
    void *state;
    /* The output. SUM: the array dense [n]. GATHER: the list, which has memory for `bound` entries.
     */
    void *dense;
    struct ddp_sparse list;
    uint64_t overflow_count; /* encode() adds the number of finite values that became infinite */
};

struct ddp_compressor {
    const char *name, *summary;
    const char *argument_help; /* "D", "T" or "[CLIP]" (optional); NULL if there is none */
    enum ddp_combine combine;
    enum ddp_dtype wire_dtype; /* for SUM */
    bool feedback_default;     /* true for sparse compressors: error feedback is on by default */
    bool fuses_feedback;       /* encode() updates the residual itself */
    bool fixed_count;          /* GATHER: a list always has exactly `bound` entries */
    bool global_topk;          /* oktopk: the sparse all-reduce also selects among the sums */
    /* Returns DDP_EUSAGE if the argument is out of range. NULL if there is no argument. */
    int (*check)(double argument, struct ddp_err *err);
    /* Returns the largest number of entries of a list (GATHER), or n (SUM). */
    size_t (*bound)(const struct ddp_compress_spec *spec, size_t n);
    size_t (*state_bytes)(const struct ddp_compress_spec *spec, size_t n); /* NULL: none */
    void (*encode)(struct ddp_encode *e);
};

/* Returns all compressors in the order of compress_list.h. The array ends with NULL. */
const struct ddp_compressor *const *ddp_compressors(void);
/* Parses text such as "topk:0.01". Returns DDP_EUSAGE if the text is not valid. For an unknown
 * name, the message lists the legal names and suggests the nearest one. */
int ddp_compress_parse(const char *text, struct ddp_compress_spec *spec,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Returns k = ceil(density * n), at least 1 if n > 0. */
size_t ddp_compress_k(double density, size_t n);

#ifdef __cplusplus
}
#endif
#endif
