/* Runs compressed all-reduces and counts their bytes and times (compressed.h). compressed_create.c
 * creates them. */
#include "exchange/compressed.h"

#include <math.h>

#include "base/clock.h"
#include "base/mem.h"
#include "compress/feedback.h"
#include "exchange/compressed_impl.h"

static void encode(struct ddp_compressed *x)
{
    struct ddp_encode *e = &x->encode;
    ddp_feedback_encode(e);
    x->counters.values_total += (double)e->n;
    x->counters.values_sent +=
        (double)(x->compressor->combine == DDP_COMBINE_GATHER ? e->list.count : e->n);
}

static int exchange(struct ddp_compressed *x, struct ddp_err *err)
{
    struct ddp_comm *comm = x->setup.comm;
    const uint64_t before = comm->wire_bytes;

    if (x->compressor->combine == DDP_COMBINE_SUM) {
        DDP_TRY(ddp_coll_run(comm, &x->plan, err));
    } else {
        x->args.mine = x->encode.list;
        DDP_TRY(ddp_sparse_run(comm, x->alg, &x->args, x->scratch.at, err));
    }
    if (isnan(x->mapped_bytes))
        x->counters.wire_bytes += (double)(comm->wire_bytes - before);
    else if (x->compressor->combine == DDP_COMBINE_SUM)
        x->counters.wire_bytes += x->mapped_bytes;
    else
        x->counters.wire_bytes += x->mapped_bytes * (double)x->encode.list.count;
    return 0;
}

/* Elements per block. Decoding reads each block twice, to check for overflow and to convert. A
 * block is so small that the second pass reads from the cache. */
#define BLOCK ((size_t)4096)

/* Returns the mask of the exponent bits. In an infinity or a NaN all of them are 1. */
static uint16_t exponent_of(enum ddp_dtype dtype)
{
    return dtype == DDP_F16 ? 0x7c00 : 0x7f80;
}

static bool any_not_finite(const uint16_t *wire, size_t count, uint16_t exponent)
{
    unsigned found = 0;
    for (size_t i = 0; i < count; i++)
        found |= (wire[i] & exponent) == exponent;
    return found != 0;
}

/* Counts the elements that are infinite or NaN in the result but finite in data, the input of this
 * rank. */
static uint64_t count_overflows(const uint16_t *wire, const float *data, size_t count,
                                uint16_t exponent)
{
    uint64_t overflows = 0;
    for (size_t i = 0; i < count; i++)
        overflows += (wire[i] & exponent) == exponent && isfinite(data[i]);
    return overflows;
}

static void decode(struct ddp_compressed *x)
{
    const enum ddp_dtype dtype = x->compressor->wire_dtype;
    const uint16_t *wire = x->wire;
    float *data = x->setup.data;

    if (x->compressor->combine == DDP_COMBINE_GATHER || ddp_compressor_is_lossless(x->compressor))
        return;
    for (size_t i = 0; i < x->setup.n; i += BLOCK) {
        const size_t count = DDP_MIN(BLOCK, x->setup.n - i);
        const uint16_t exponent = exponent_of(dtype);
        if (any_not_finite(wire + i, count, exponent))
            x->counters.overflow_count += count_overflows(wire + i, data + i, count, exponent);
        x->setup.comm->device->grad->widen(data + i, wire + i, count, dtype);
    }
}

int ddp_compressed_run(struct ddp_compressed *x, struct ddp_err *err)
{
    const int64_t start = ddp_now_ns();
    encode(x);
    const int64_t encoded = ddp_now_ns();
    DDP_TRY(exchange(x, err));
    const int64_t exchanged = ddp_now_ns();
    decode(x);
    x->counters.runs++;
    x->counters.encode_ns += encoded - start;
    x->counters.exchange_ns += exchanged - encoded;
    x->counters.decode_ns += ddp_now_ns() - exchanged;
    return 0;
}

void ddp_compressed_counters(const struct ddp_compressed *x, struct ddp_compressed_counters *out)
{
    *out = x->counters;
}

void ddp_compressed_reset(struct ddp_compressed *x)
{
    x->counters = (struct ddp_compressed_counters){.wire_counted = x->counters.wire_counted};
}

const float *ddp_compressed_residual(const struct ddp_compressed *x)
{
    return x->residual.at;
}

const char *ddp_compressed_algorithm(const struct ddp_compressed *x)
{
    return x->alg != NULL ? x->alg->name : x->plan.alg->name;
}
