/* Internal state of a compressed all-reduce. compressed_create.c creates it, compressed.c runs it.
 */
#ifndef DDP_EXCHANGE_COMPRESSED_IMPL_H
#define DDP_EXCHANGE_COMPRESSED_IMPL_H

#include "coll/sparse_coll.h"
#include "exchange/compressed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed memory, aligned to a cache line. Its pages are mapped on first use. */
struct ddp_compressed_block {
    void *raw, *at;
};

/* Members marked SUM or GATHER are used by compressors that combine that way. */
struct ddp_compressed {
    struct ddp_compressed_setup setup;
    const struct ddp_compressor *compressor;
    /* Its `dense` (SUM) or `list` (GATHER) is the encoded form. */
    struct ddp_encode encode;
    struct ddp_compressed_block state, residual, scratch;
    /* Registered memory of the encoded form. NULL if data is sent as it is. */
    void *wire;
    struct ddp_coll_plan plan; /* SUM. */
    /* GATHER: algorithm, arguments and (above) scratch memory. */
    const struct ddp_sparse_alg *alg;
    struct ddp_sparse_args args;
    /* Bytes that other ranks read from this rank without a message: per run (SUM) or per entry
     * (GATHER). NaN if messages carry and count them. */
    double mapped_bytes;
    struct ddp_compressed_counters counters;
};

/* True if every element is sent as it is: no wire buffer and no residual are needed. */
static inline bool ddp_compressor_is_lossless(const struct ddp_compressor *c)
{
    return c->combine == DDP_COMBINE_SUM && c->wire_dtype == DDP_F32;
}

#ifdef __cplusplus
}
#endif
#endif
