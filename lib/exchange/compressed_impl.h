/* Internal state of a compressed all-reduce, for compressed_create.c and compressed.c. */
#ifndef DDP_EXCHANGE_COMPRESSED_IMPL_H
#define DDP_EXCHANGE_COMPRESSED_IMPL_H

#include "coll/sparse/sparse_coll.h"
#include "exchange/compressed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed memory. `raw` is the allocation, `at` the first cache line in it. */
struct ddp_compressed_block {
    void *raw, *at;
};

/* Members marked SUM or GATHER are used only by compressors with this value of `combine`. */
struct ddp_compressed {
    struct ddp_compressed_setup setup;
    const struct ddp_compressor *compressor;
    /* encode.dense (SUM) or encode.list (GATHER) is the encoded form. */
    struct ddp_encode encode;
    struct ddp_compressed_block state, residual, scratch;
    /* Registered memory of the encoded form. NULL if data is sent as it is. */
    void *wire;
    struct ddp_coll_plan plan; /* SUM. */
    /* GATHER: the algorithm and its arguments. Its scratch memory is `scratch`. */
    const struct ddp_sparse_alg *alg;
    struct ddp_sparse_args args;
    /* Bytes that other ranks read from this rank without a message: per run (SUM) or per entry
     * (GATHER). NaN if all data travels in messages, which are counted. */
    double mapped_bytes;
    struct ddp_compressed_counters counters;
};

/* Returns true if every element is sent unchanged, as f32. Then no wire buffer and no residual are
 * needed. */
static inline bool ddp_compressor_is_lossless(const struct ddp_compressor *c)
{
    return c->combine == DDP_COMBINE_SUM && c->wire_dtype == DDP_F32;
}

#ifdef __cplusplus
}
#endif
#endif
