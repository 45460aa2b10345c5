/* The all-reduce of quantised blocks (device/quant.h), in one of two forms.
 *
 * TWO-PHASE. The consecutive blocks of a bucket are divided into one *chunk* per rank. All chunks
 * have room for the same number of blocks, but the last chunks may hold fewer blocks, or none. In
 * the first phase, an all-to-all sends each rank its chunk from every rank. The rank decodes these
 * chunks, adds them in f32 in the order of the ranks, and encodes the sums. In the second phase, an
 * all-gather sends the encoded sums to all ranks. A rank sends 2 * (ranks - 1) chunks.
 *
 * ALL-GATHER. All ranks get the encoded buckets of all ranks. Each rank decodes these buckets and
 * adds them in f32 in the order of the ranks. The sums are not encoded again. A rank sends its
 * bucket ranks - 1 times. */
#ifndef DDP_EXCHANGE_BLOCK_EXCHANGE_H
#define DDP_EXCHANGE_BLOCK_EXCHANGE_H

#include "coll/coll.h"
#include "compress/compress.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ddp_block_exchange_close also accepts a struct of zeros that was never opened. */
struct ddp_block_exchange {
    struct ddp_comm *comm;
    struct ddp_quant quant;
    bool two_phase;
    size_t n;                         /* elements of the bucket */
    size_t chunk_blocks, chunk_bytes; /* of one chunk; ALL-GATHER: of the bucket */
    /* Registered memory. `wire`: the encoded bucket of this rank, rounded up to whole chunks. After
     * a run of TWO-PHASE, `wire` holds the encoded sums. `received` [ranks * chunk_bytes]: the
     * chunks from all ranks. */
    unsigned char *wire, *received;
    /* TWO-PHASE: the all-to-all. ALL-GATHER: the all-gather. */
    struct ddp_coll_plan first;
    struct ddp_coll_plan second; /* TWO-PHASE only: the all-gather of the sums */
};

/* Returns the name of the form that exchanges the blocks of this compressor, for --algorithm. */
const char *ddp_block_exchange_name(const struct ddp_compressor *compressor);
/* Returns the registered bytes that ddp_block_exchange_open allocates. */
size_t ddp_block_exchange_bytes(const struct ddp_compress_spec *spec, size_t n, int ranks);
/* Returns the bytes that a rank sends in one exchange. */
double ddp_block_exchange_sent_bytes(const struct ddp_compress_spec *spec, size_t n, int ranks);
/* Allocates registered memory and prepares the collectives. Collective. All ranks return the same
 * code. Close *x also after an error. */
int ddp_block_exchange_open(struct ddp_block_exchange *x, struct ddp_comm *comm,
                            const struct ddp_compress_spec *spec, size_t n,
                            struct ddp_err *err) DDP_MUST_CHECK;
/* Frees the memory. All ranks make their calls of open and close in the same order. */
void ddp_block_exchange_close(struct ddp_block_exchange *x);
/* Exchanges the encoded bucket in x->wire. Collective. `key`: with stochastic rounding, the key of
 * the sums (ddp_compress_key), which is the same on all ranks. */
int ddp_block_exchange_run(struct ddp_block_exchange *x, uint64_t key,
                           struct ddp_err *err) DDP_MUST_CHECK;
/* Decodes the sums of elements [first, first + n) of the bucket. `first` begins a block. Call this
 * function after a run. */
void ddp_block_exchange_decode(const struct ddp_block_exchange *x, size_t first, size_t n,
                               float *sums);
/* Returns whether a sum of the elements [first, first + n) may be infinite or NaN. `first` begins a
 * block. Call this function after a run. */
bool ddp_block_exchange_may_overflow(const struct ddp_block_exchange *x, size_t first, size_t n);

#ifdef __cplusplus
}
#endif
#endif
