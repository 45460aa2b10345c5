/* Compressors encode a rank's gradients in fewer bytes. To add a compressor, write one file and add
 * one line to compress_list.h. `ddpbench allreduce --compress` then offers the compressor.
 * `ddpbench train --sync` also offers it if it is lossy.
 *
 * A compressor encodes one bucket (an array of n gradients) of one rank, and does not communicate.
 * The member `combine` says how exchange/compressed.h combines the encoded buckets of all ranks.
 * Error feedback (ddp_feedback_encode) can be added to any lossy compressor.
 *   DDP_COMBINE_SUM     The encoded bucket is an array [n] of wire_dtype. All-reduce sums the
 *                       arrays.
 *   DDP_COMBINE_BLOCKS  The encoded bucket is a sequence of quantised blocks (device/quant.h).
 *                       exchange/block_exchange.h sums the decoded blocks.
 *   DDP_COMBINE_ROUNDS  The bucket is encoded in several rounds. Each round writes an array of f32,
 *                       and all-reduce sums the arrays. The next round reads the sums.
 *   DDP_COMBINE_GATHER  The encoded bucket is an index-sorted list (device/sparse.h). A sparse
 *                       all-reduce sums the lists. `reference` computes which entries a correct
 *                       list has. */
#ifndef DDP_COMPRESS_COMPRESS_H
#define DDP_COMPRESS_COMPRESS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/opt.h"
#include "device/device.h"
#include "device/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_combine { DDP_COMBINE_SUM, DDP_COMBINE_BLOCKS, DDP_COMBINE_GATHER, DDP_COMBINE_ROUNDS };

/* Error feedback keeps the part of the values that was not sent (the *residual*), and adds it to
 * the next gradient. AUTO stands for the default of the compressor. */
enum ddp_feedback { DDP_FEEDBACK_AUTO, DDP_FEEDBACK_ON, DDP_FEEDBACK_OFF, DDP_FEEDBACK_COUNT };

struct ddp_compressor;

/* A compressor with its argument, parsed from text such as "topk:0.01". */
struct ddp_compress_spec {
    const struct ddp_compressor *compressor;
    /* A density in (0, 1], a threshold > 0, a clip > 0, the number of elements of a block, or the
     * rank of the factors. NaN if absent. */
    double argument;
    int64_t dense_runs; /* number of exchanges that are dense before the first compressed one */
    bool stochastic;    /* +sr: stochastic rounding (device/quant.h) */
    char text[32];      /* the text that the user typed, or that ddp_compress_with made */
};
extern const struct ddp_compress_spec ddp_compress_none; /* sends everything unchanged */

struct ddp_compress_list {
    int n;
    struct ddp_compress_spec v[DDP_OPT_LIST_MAX];
};

/* The shape of a tensor: a matrix of `count` elements with `cols` columns, or a vector if cols is
 * 0. The last row of the matrix may be incomplete. */
struct ddp_tensor {
    size_t count, cols;
};
/* The tensors v [n] of a bucket, in order. */
struct ddp_tensors {
    const struct ddp_tensor *v;
    int n;
};
#define DDP_ROUNDS_MAX  2  /* the largest number of rounds of a compressor */
#define DDP_FACTORS_MAX 64 /* the largest rank R of powersgd */
/* Floats [first, first + count) of an array. */
struct ddp_span {
    size_t first, count;
};

/* The arguments of one encoding. The caller owns all arrays. */
struct ddp_encode {
    const struct ddp_device *device;
    const struct ddp_compress_spec *spec;
    const float *in; /* [n]; must not overlap an output, except that "none" allows dense == in */
    /* [n], or NULL for no error feedback. With GATHER and ROUNDS, the residual has the unit of the
     * input. With SUM and BLOCKS, the residual is already multiplied by `scale`. */
    float *residual;
    size_t n;
    /* The encoded values are multiplied by this factor, for example 1/P for an average over P
     * ranks. SUM and BLOCKS multiply before they round. GATHER multiplies after the selection, so
     * that thresholds and residuals have the unit of the input. */
    float scale;
    /* The factor by which `in` was multiplied before the call, or 0 if `in` was not multiplied.
     * encode() multiplies a clip by this factor, because the user gives the clip in the unit of the
     * gradient. */
    float scaled;
    /* [state_bytes], aligned to 64. The caller zeroes the state before the first call and keeps it
     * between calls for the same bucket. */
    void *state;
    /* ROUNDS: the tensors of the bucket, the number of ranks, whether the result is an average, and
     * the result [n], which may be the same array as `in`. `scale` is not used. */
    const struct ddp_tensors *tensors;
    int ranks;
    bool average;
    float *out;
    /* The output. SUM: the array `dense` [n]. BLOCKS: the blocks, at `dense`. GATHER: `list`, which
     * has memory for `bound` entries. ROUNDS: the arrays of the rounds (`span`), at `dense`. Here,
     * the caller zeroes `dense` before the first call and keeps the contents between calls for the
     * same bucket. */
    void *dense;
    struct ddp_sparse list;
    /* Stochastic rounding: the key of this encoding (ddp_compress_key), and the index of in[0] in
     * its bucket, which is a multiple of the block size. */
    uint64_t key;
    size_t first;
    uint64_t overflow_count; /* encode() adds the number of finite values that became infinite */
};

struct ddp_compressor {
    const char *name, *summary;
    const char *train_summary; /* summary as a strategy of `train --sync`; NULL if lossless */
    const char *argument_help; /* "D", "T" or, if optional, "[CLIP]"; NULL: no argument */
    bool dense_start;          /* an optional second argument sets dense_runs of the spec */
    enum ddp_combine combine;
    enum ddp_dtype wire_dtype; /* SUM: type of the encoded elements */
    struct ddp_quant quant;    /* BLOCKS: the type of the codes; see ddp_compress_quant */
    bool two_phase;            /* BLOCKS: the sums are quantised, too (exchange/block_exchange.h) */
    bool feedback_default;     /* error feedback is on by default */
    bool fuses_feedback;       /* encode() updates the residual itself */
    bool fixed_count;          /* GATHER: a list always has exactly `bound` entries */
    bool global_topk;          /* oktopk: the sparse all-reduce also selects among the sums */
    /* Returns DDP_EUSAGE if the argument is out of range. NULL if there is no argument. */
    int (*check)(double argument, struct ddp_err *err);
    /* GATHER: returns the largest number of entries of a list. All others return n. */
    size_t (*bound)(const struct ddp_compress_spec *spec, size_t n);
    size_t (*state_bytes)(const struct ddp_compress_spec *spec, size_t n); /* NULL: none */
    /* NULL for ROUNDS. */
    void (*encode)(struct ddp_encode *e);
    /* ROUNDS: the number of rounds. span() returns the part of `dense` that all-reduce sums after
     * `round`. For round == rounds, `first` is the length of `dense`, and count is 0. round() runs
     * one round. It is called once more with round == rounds, to compute the result and the
     * residual. */
    int rounds;
    struct ddp_span (*span)(const struct ddp_compress_spec *spec, const struct ddp_tensors *tensors,
                            int round);
    void (*round)(struct ddp_encode *e, int round);
    /* GATHER: computes which elements a correct encode() sends. `acc` [n]: the sums of input and
     * residual. `calls`: number of earlier encodings with this state. Sets sent[i] to true if the
     * list must contain acc[i], and to false otherwise. bench/verify_exchange.c verifies exchanges
     * with reference(), which must therefore not share code with encode() and the kernels. NULL for
     * SUM, BLOCKS and ROUNDS. */
    void (*reference)(const struct ddp_compress_spec *spec, const float *acc, size_t n,
                      uint64_t calls, bool *sent);
    /* SUM and BLOCKS: stores in `sent` [n] the values that a correct encode() sends for `acc` [n],
     * the sums of scaled input and residual. `scale`: the factor by which the input was multiplied.
     * rounded() must multiply a clip by this factor, too. For BLOCKS, acc[0] is the first element
     * of a block. `key`, `first`: as in struct ddp_encode. rounded() must not share code with
     * encode() and the kernels. NULL for GATHER, for ROUNDS, and for SUM without rounding.
     * bench/verify_factors.c checks ROUNDS. */
    void (*rounded)(const struct ddp_compress_spec *spec, float scale, uint64_t key, size_t first,
                    const float *acc, size_t n, float *sent);
};

#define DDP_COMPRESSOR(symbol) extern const struct ddp_compressor ddp_comp_##symbol;
#include "compress/compress_list.h"
#undef DDP_COMPRESSOR

/* Returns all compressors in the order of compress_list.h. The array ends with NULL. */
const struct ddp_compressor *const *ddp_compressors(void);
/* Parses text such as "topk:0.01". Returns DDP_EUSAGE if the text is not valid. */
int ddp_compress_parse(const char *text, struct ddp_compress_spec *spec,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Parses every text of a list. Returns DDP_EUSAGE if a text is not valid or is given twice. */
int ddp_compress_parse_list(const struct ddp_string_list *texts, struct ddp_compress_list *out,
                            struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the specification of a compressor with a legal argument, or without an argument if
 * `argument` is NaN. */
struct ddp_compress_spec ddp_compress_with(const struct ddp_compressor *compressor,
                                           double argument);
/* Returns the compressor of this name, or NULL. */
const struct ddp_compressor *ddp_compressor_find(const char *name);
/* Returns the largest magnitude to which fp16 may clip values that were multiplied by `scale`. fp16
 * reduces a larger clip to this limit. If `scale` is 1/P, the sum of P values within the limit is
 * finite in f16, even if every partial sum is rounded. If `scale` is 1, the limit is the largest
 * finite f16. */
double ddp_compress_f16_limit(double scale);
/* Returns the part of `text` that begins with a modifier such as "+sr", or the end of `text`. The
 * sign of an exponent, as in 1e+3, does not begin a modifier. */
const char *ddp_compress_modifier(const char *text);
/* Returns the key of the random numbers with which `rank` rounds in an exchange. `calls`: number of
 * earlier exchanges. All ranks round the sums with the key of rank P, where P is the number of
 * ranks. */
uint64_t ddp_compress_key(uint64_t seed, int rank, uint64_t calls);
/* For DDP_COMBINE_BLOCKS: returns the type of the codes, the size of the blocks, and whether
 * rounding is stochastic. */
struct ddp_quant ddp_compress_quant(const struct ddp_compress_spec *spec);
/* Returns true if the compressor sends every element unchanged, as f32. */
bool ddp_compressor_is_lossless(const struct ddp_compressor *c);
/* Returns whether this compressor uses error feedback if the user has chosen `feedback`. A lossless
 * compressor never uses error feedback. */
bool ddp_compress_keeps(const struct ddp_compress_spec *spec, enum ddp_feedback feedback);

/* Returns the shape of a bucket of n elements as a matrix that is nearly square. */
struct ddp_tensor ddp_compress_flat(size_t n);

/* Encodes e->in with the compressor of e->spec, which must not have rounds. Uses error feedback if
 * e->residual is not NULL: the error of one encoding is added to the input of the next encoding.
 * For SUM and BLOCKS, this function computes:
 *
 *   acc = in * scale + residual;   sent = decode(encode(acc));   residual = acc - sent
 *
 * The residual of SUM and BLOCKS is computed in f32, and may be rounded. With 16-bit values, the
 * residual is exact unless the value overflowed, became subnormal or was clipped by a large amount.
 * With signs, the residual is rounded if acc is much smaller than the mean magnitude of the block.
 * A residual that is not finite becomes 0. For GATHER, encode() updates the residual itself
 * (fuses_feedback). The sent values, before they are multiplied by `scale`, and the new residual
 * then add up to in + old residual, bit for bit. Sources: F. Seide et al., 1-bit SGD, Interspeech
 * 2014; S. Karimireddy et al., Error feedback fixes SignSGD, ICML 2019. */
void ddp_feedback_encode(struct ddp_encode *e);

/* An entry of a list from which the user chooses one by NAME or NAME:ARG. */
struct ddp_named {
    const char *name, *summary;
    const char *argument_help; /* as in struct ddp_compressor */
    const char *modifier;      /* such as "+sr", or NULL if the entry has none */
};
/* Returns the modifier that is legal for this compressor, or NULL. */
const char *ddp_compressor_modifier(const struct ddp_compressor *compressor);
/* Stores the i-th compressor in *out. Returns false past the end. */
bool ddp_compressor_at(int i, struct ddp_named *out);
/* Splits `text`, NAME or NAME:ARG, and finds NAME in a list. Sets *index to the position in the
 * list. Sets *argument to the text after the colon, or to NULL if there is no colon. Returns
 * DDP_EUSAGE if the name is unknown, or if an argument is missing or not allowed. The message
 * contains `what`, which is the kind of entry, for example "compressor". If NAME is unknown, the
 * hint suggests the nearest legal name, or lists all entries if no name is near. */
int ddp_named_find(const char *what, bool (*at)(int i, struct ddp_named *out), const char *text,
                   int *index, const char **argument, struct ddp_err *err) DDP_MUST_CHECK;
/* Writes the form in which the user gives an entry, for example "topk:D", "q8[:BLOCK][+sr]" or
 * "none". */
void ddp_named_form(const struct ddp_named *entry, char *out, size_t out_bytes);
/* Returns k = ceil(density * n), at least 1 if n > 0 and at most n. */
size_t ddp_compress_k(double density, size_t n);

#ifdef __cplusplus
}
#endif
#endif
