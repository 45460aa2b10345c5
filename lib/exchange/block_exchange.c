/* Implements the two forms of the all-reduce of quantised blocks. */
#include "exchange/block_exchange.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "device/sparse.h"

const char *ddp_block_exchange_name(const struct ddp_compressor *compressor)
{
    return compressor->two_phase ? "two-phase" : "allgather";
}

/* Returns the number of blocks of a chunk, at least 1. */
static size_t chunk_blocks(const struct ddp_compress_spec *spec, size_t n, int ranks)
{
    const size_t blocks = ddp_quant_blocks(ddp_compress_quant(spec), n);
    const size_t chunks = spec->compressor->two_phase ? (size_t)ranks : 1;
    return DDP_MAX(blocks / chunks + (blocks % chunks != 0), (size_t)1);
}

/* Stores the bytes of the arrays `wire` and `received`, rounded up to whole cache lines. */
static void array_bytes(const struct ddp_compress_spec *spec, size_t n, int ranks, size_t *wire,
                        size_t *received)
{
    const size_t chunk =
        chunk_blocks(spec, n, ranks) * ddp_quant_block_bytes(ddp_compress_quant(spec));
    *received = ddp_round_to_line(chunk * (size_t)ranks);
    *wire = spec->compressor->two_phase ? *received : ddp_round_to_line(chunk);
}

size_t ddp_block_exchange_bytes(const struct ddp_compress_spec *spec, size_t n, int ranks)
{
    size_t wire, received;
    array_bytes(spec, n, ranks, &wire, &received);
    return wire + received;
}

double ddp_block_exchange_sent_bytes(const struct ddp_compress_spec *spec, size_t n, int ranks)
{
    const size_t blocks = chunk_blocks(spec, n, ranks);
    const double chunk = (double)(blocks * ddp_quant_block_bytes(ddp_compress_quant(spec)));
    return (spec->compressor->two_phase ? 2 : 1) * (ranks - 1) * chunk;
}

static int plan(struct ddp_block_exchange *x, struct ddp_err *err)
{
    const struct ddp_coll_args first = {
        .coll = x->two_phase ? DDP_ALL_TO_ALL : DDP_ALL_GATHER,
        .send = x->wire,
        .recv = x->received,
        .count = x->chunk_bytes,
        .dtype = DDP_U8,
    };
    const struct ddp_coll_args second = {
        .coll = DDP_ALL_GATHER,
        .send = x->wire + (size_t)x->comm->rank * x->chunk_bytes,
        .recv = x->wire,
        .count = x->chunk_bytes,
        .dtype = DDP_U8,
    };
    DDP_TRY(ddp_coll_plan_init(&x->first, x->comm, NULL, &first, err));
    return x->two_phase ? ddp_coll_plan_init(&x->second, x->comm, NULL, &second, err) : 0;
}

int ddp_block_exchange_open(struct ddp_block_exchange *x, struct ddp_comm *comm,
                            const struct ddp_compress_spec *spec, size_t n, struct ddp_err *err)
{
    size_t wire, received;
    void *memory;
    *x = (struct ddp_block_exchange){.comm = comm,
                                     .quant = ddp_compress_quant(spec),
                                     .two_phase = spec->compressor->two_phase,
                                     .n = n};
    array_bytes(spec, n, comm->size, &wire, &received);
    x->chunk_blocks = chunk_blocks(spec, n, comm->size);
    x->chunk_bytes = x->chunk_blocks * ddp_quant_block_bytes(x->quant);
    DDP_TRY(ddp_comm_alloc(comm, wire + received, &memory, err));
    x->wire = memory;
    x->received = x->wire + wire;
    memset(memory, 0, wire + received);
    return ddp_comm_agree(comm, plan(x, err), err);
}

void ddp_block_exchange_close(struct ddp_block_exchange *x)
{
    ddp_coll_plan_release(&x->second);
    ddp_coll_plan_release(&x->first);
    if (x->wire != NULL)
        ddp_comm_free(x->comm, x->wire);
    x->wire = NULL;
}

/* Decodes and adds `count` elements over the ranks, in the order of the ranks. `block`: index of
 * the first block within the chunk. */
static void sum_ranks(const struct ddp_block_exchange *x, size_t block, size_t count, float *sum)
{
    const unsigned char *from = x->received + block * ddp_quant_block_bytes(x->quant);
    for (int r = 0; r < x->comm->size; r++)
        x->comm->device->grad->dequantize(sum, from + (size_t)r * x->chunk_bytes, count, x->quant,
                                          r > 0);
}

/* Sums this rank's chunk over the ranks, block by block, and encodes the sums. */
static void sum_chunk(const struct ddp_block_exchange *x, uint64_t key)
{
    struct ddp_quant quant = x->quant;
    const size_t block_bytes = ddp_quant_block_bytes(x->quant);
    const size_t first = (size_t)x->comm->rank * x->chunk_blocks;
    const size_t end = DDP_MIN(first + x->chunk_blocks, ddp_quant_blocks(x->quant, x->n));
    for (size_t b = first; b < end; b++) {
        const size_t count = DDP_MIN(x->quant.block, x->n - b * x->quant.block);
        float sum[DDP_QUANT_BLOCK_MAX];
        sum_ranks(x, b - first, count, sum);
        quant.key = key;
        quant.first = b * quant.block;
        x->comm->device->grad->quantize(x->wire + b * block_bytes, sum, count, quant, 1);
    }
}

int ddp_block_exchange_run(struct ddp_block_exchange *x, uint64_t key, struct ddp_err *err)
{
    DDP_TRY(ddp_coll_run(x->comm, &x->first, err));
    if (!x->two_phase)
        return 0;
    sum_chunk(x, key);
    return ddp_coll_run(x->comm, &x->second, err);
}

void ddp_block_exchange_decode(const struct ddp_block_exchange *x, size_t first, size_t n,
                               float *sums)
{
    const size_t block = first / x->quant.block;
    if (x->two_phase)
        x->comm->device->grad->dequantize(sums, x->wire + block * ddp_quant_block_bytes(x->quant),
                                          n, x->quant, false);
    else
        sum_ranks(x, block, n, sums);
}

bool ddp_block_exchange_may_overflow(const struct ddp_block_exchange *x, size_t first, size_t n)
{
    const size_t bytes = ddp_quant_block_bytes(x->quant);
    const unsigned char *from =
        (x->two_phase ? x->wire : x->received) + first / x->quant.block * bytes;
    const float top = ddp_quant_top(x->quant.code);
    bool overflows = false;
    for (size_t b = 0; b < ddp_quant_blocks(x->quant, n); b++) {
        float sum = 0;
        for (int r = 0; r < (x->two_phase ? 1 : x->comm->size); r++) {
            float scale;
            memcpy(&scale, from + (size_t)r * x->chunk_bytes + b * bytes, sizeof scale);
            sum += scale * top;
        }
        overflows = overflows || !isfinite(sum);
    }
    return overflows;
}
