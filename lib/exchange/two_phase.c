/* The two-phase all-reduce of quantised blocks. */
#include "exchange/two_phase.h"

#include <string.h>

#include "base/mem.h"
#include "device/sparse.h"

/* Returns the number of blocks of a chunk, at least 1. */
static size_t chunk_blocks(struct ddp_quant quant, size_t n, int ranks)
{
    const size_t blocks = ddp_quant_blocks(quant, n), parts = (size_t)ranks;
    return DDP_MAX(blocks / parts + (blocks % parts != 0), (size_t)1);
}

/* Returns the bytes of one of the two arrays, a multiple of a cache line. */
static size_t array_bytes(struct ddp_quant quant, size_t n, int ranks)
{
    return ddp_round_to_line(chunk_blocks(quant, n, ranks) * ddp_quant_block_bytes(quant) *
                             (size_t)ranks);
}

size_t ddp_two_phase_bytes(struct ddp_quant quant, size_t n, int ranks)
{
    return 2 * array_bytes(quant, n, ranks);
}

static int plan(struct ddp_two_phase *x, struct ddp_err *err)
{
    const struct ddp_coll_args scatter = {
        .coll = DDP_ALL_TO_ALL,
        .send = x->wire,
        .recv = x->received,
        .count = x->chunk_bytes,
        .dtype = DDP_U8,
    };
    const struct ddp_coll_args gather = {
        .coll = DDP_ALL_GATHER,
        .send = x->wire + (size_t)x->comm->rank * x->chunk_bytes,
        .recv = x->wire,
        .count = x->chunk_bytes,
        .dtype = DDP_U8,
    };
    DDP_TRY(ddp_coll_plan_init(&x->scatter, x->comm, NULL, &scatter, err));
    return ddp_coll_plan_init(&x->gather, x->comm, NULL, &gather, err);
}

int ddp_two_phase_open(struct ddp_two_phase *x, struct ddp_comm *comm, struct ddp_quant quant,
                       size_t n, struct ddp_err *err)
{
    const size_t bytes = array_bytes(quant, n, comm->size);
    void *memory;
    *x = (struct ddp_two_phase){.comm = comm, .quant = quant, .n = n};
    x->chunk_blocks = chunk_blocks(quant, n, comm->size);
    x->chunk_bytes = x->chunk_blocks * ddp_quant_block_bytes(quant);
    DDP_TRY(ddp_comm_alloc(comm, 2 * bytes, &memory, err));
    x->wire = memory;
    x->received = x->wire + bytes;
    memset(memory, 0, 2 * bytes);
    return ddp_comm_agree(comm, plan(x, err), err);
}

void ddp_two_phase_close(struct ddp_two_phase *x)
{
    ddp_coll_plan_release(&x->gather);
    ddp_coll_plan_release(&x->scatter);
    if (x->wire != NULL)
        ddp_comm_free(x->comm, x->wire);
    x->wire = NULL;
}

/* Sums this rank's chunk over the ranks, block by block. */
static void sum_chunk(const struct ddp_two_phase *x)
{
    const struct ddp_grad_kernels *grad = x->comm->device->grad;
    const size_t block_bytes = ddp_quant_block_bytes(x->quant);
    const size_t first = (size_t)x->comm->rank * x->chunk_blocks;
    const size_t end = DDP_MIN(first + x->chunk_blocks, ddp_quant_blocks(x->quant, x->n));
    for (size_t b = first; b < end; b++) {
        const size_t count = DDP_MIN(x->quant.block, x->n - b * x->quant.block);
        const unsigned char *from = x->received + (b - first) * block_bytes;
        float sum[DDP_QUANT_BLOCK_MAX];
        for (int r = 0; r < x->comm->size; r++)
            grad->dequantize(sum, from + (size_t)r * x->chunk_bytes, count, x->quant, r > 0);
        grad->quantize(x->wire + b * block_bytes, sum, count, x->quant, 1);
    }
}

int ddp_two_phase_run(struct ddp_two_phase *x, struct ddp_err *err)
{
    DDP_TRY(ddp_coll_run(x->comm, &x->scatter, err));
    sum_chunk(x);
    return ddp_coll_run(x->comm, &x->gather, err);
}
