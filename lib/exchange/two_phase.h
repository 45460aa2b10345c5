/* The two-phase all-reduce of quantised blocks (device/quant.h).
 *
 * The blocks of a bucket are divided into one *chunk* per rank: the same number of consecutive
 * blocks. The last chunks may have fewer blocks, or none. First, an all-to-all gives each rank its
 * chunk as every rank has encoded it. The rank decodes these chunks, adds them in f32 in the order
 * of the ranks, and encodes the sums. Second, an all-gather gives the encoded sums to all ranks. A
 * rank sends 2 * (ranks - 1) chunks. */
#ifndef DDP_EXCHANGE_TWO_PHASE_H
#define DDP_EXCHANGE_TWO_PHASE_H

#include "coll/coll.h"
#include "device/quant.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_TWO_PHASE_NAME "two-phase"

/* A struct that was never opened, and has only zeros, can be closed, too. */
struct ddp_two_phase {
    struct ddp_comm *comm;
    struct ddp_quant quant;
    size_t n;                         /* elements of the bucket */
    size_t chunk_blocks, chunk_bytes; /* of one chunk */
    /* Registered memory, [ranks * chunk_bytes] each. `wire`: the encoded bucket of this rank, and
     * after a run the encoded sums. `received`: the chunks from all ranks. */
    unsigned char *wire, *received;
    struct ddp_coll_plan scatter, gather;
};

/* Returns the registered bytes that ddp_two_phase_open allocates. */
size_t ddp_two_phase_bytes(struct ddp_quant quant, size_t n, int ranks);
/* Allocates registered memory and prepares the two collectives. Collective. All ranks return the
 * same code. Close *x also after an error. */
int ddp_two_phase_open(struct ddp_two_phase *x, struct ddp_comm *comm, struct ddp_quant quant,
                       size_t n, struct ddp_err *err) DDP_MUST_CHECK;
/* Frees the memory. All ranks must call it in the same order. */
void ddp_two_phase_close(struct ddp_two_phase *x);
/* Replaces the encoded bucket in x->wire by the encoded sums of all ranks. Collective. */
int ddp_two_phase_run(struct ddp_two_phase *x, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
