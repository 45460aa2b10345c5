/* The inside of a compressed all-reduce: compressed_create.c makes one, compressed.c runs it. */
#ifndef DDP_EXCHANGE_COMPRESSED_IMPL_H
#define DDP_EXCHANGE_COMPRESSED_IMPL_H

#include "coll/sparse_coll.h"
#include "exchange/compressed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed memory aligned to a cache line, whose pages come with use. */
struct ddp_compressed_block {
    void *raw, *at;
};

/* encode: dense (SUM) or list (GATHER) are the wire form; `wire` is its registered memory, NULL
 * when data itself travels. plan: of a SUM; alg, args, scratch: of a GATHER.
 * mapped_bytes: where no message carries it, other ranks take this much of a rank's wire form: in
 * all (SUM), or an entry (GATHER). NaN: messages carry it, and are counted. */
struct ddp_compressed {
    struct ddp_compressed_setup setup;
    const struct ddp_compressor *compressor;
    struct ddp_encode encode;
    struct ddp_compressed_block state, residual, scratch;
    void *wire;
    struct ddp_coll_plan plan;
    const struct ddp_sparse_alg *alg;
    struct ddp_sparse_args args;
    double mapped_bytes;
    struct ddp_compressed_counters counters;
};

/* Sends every element as it is: needs no wire buffer, and leaves nothing to keep. */
static inline bool ddp_compressor_is_lossless(const struct ddp_compressor *c)
{
    return c->combine == DDP_COMBINE_SUM && c->wire_dtype == DDP_F32;
}

#ifdef __cplusplus
}
#endif
#endif
