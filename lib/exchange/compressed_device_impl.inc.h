/* The declarations of an exchange in device memory that compressed_device.c and
 * compressed_device_lists.c share. */
#ifndef DDP_EXCHANGE_COMPRESSED_DEVICE_IMPL_INC_H
#define DDP_EXCHANGE_COMPRESSED_DEVICE_IMPL_INC_H

#include "coll/coll.h"
#include "device/stream_kernels.h"
#include "exchange/compressed_impl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A list begins with its length, which has a cache line of its own. */
#define DDP_LIST_HEAD_BYTES ((size_t)DDP_CACHE_LINE)

/* Bytes of the index and the value of an entry. */
#define DDP_LIST_ENTRY_BYTES (sizeof(uint32_t) + sizeof(float))

/* The exchange of a threshold divides the index range into this number of blocks. */
#define DDP_LIST_BLOCKS 8
/* Largest number of words that a rank sends to another rank in exchange_words: the counts of all
 * digits, and the number of words that the rank has sent so far. */
#define DDP_LIST_WORDS (DDP_DIGITS + 1)

/* Counters in device memory: elements that overflowed, and entries that this rank sent. */
struct ddp_device_tally {
    uint64_t overflows, sent;
};

/* Memory that the host and the device access. The host writes to this memory only while no kernel
 * uses it. The arrays follow this struct in memory. */
struct ddp_device_words {
    uint32_t *got;     /* [P * DDP_LIST_WORDS]: the words that arrived */
    uint32_t *given;   /* [P]: words to send */
    uint32_t *current; /* [P]: the length of each rank's list in the current round */
    uint32_t *bound;   /* [larger of P and DDP_LIST_BLOCKS]: bounds for the kernel `split` */
    uint32_t *before;  /* [larger of P and DDP_LIST_BLOCKS]: results of the kernel `split` */
};

/* The entries of this rank's list that this rank sends to another rank in the current round. */
struct ddp_list_part {
    size_t begin, count;
};

struct ddp_device_exchange {
    struct ddp_compressed base;
    bool sparse, lossless;
    bool gathers;                     /* one all-gather exchanges the lists */
    bool regions;                     /* oktopk on three or more ranks */
    const struct ddp_sparse_alg *alg; /* only if `sparse` is set */
    /* capacity: largest number of entries of this rank's list. room: number of entries for which
     * `gathered` has memory per rank. */
    size_t capacity, room, wire_bytes;
    /* wire: 16-bit values [n], or this rank's list (length, indices, values). NULL if data is sent
     * unchanged. gathered: the lists of all ranks, or NULL unless the exchange is sparse. chosen:
     * the list that a global top-K selects on at most two ranks, else NULL. */
    void *wire, *gathered, *chosen;
    /* Device memory of exchange_words, each [P * DDP_LIST_WORDS]: the words to send, and those that
     * arrived. */
    uint32_t *out, *in;
    struct ddp_device_words *host;
    size_t host_bytes;
    struct ddp_comm_message *message; /* [2 P] */
    struct ddp_list_part *round;      /* [P] */
    size_t *region;                   /* [P + 1]: region r is [region[r], region[r + 1]) */
    uint32_t *selection;              /* [3 P]: memory of struct selection */
    int first_block;                  /* the first block of the current round */
    int64_t step;                     /* number of exchanges so far; only if `regions` is set */
    float *residual;
    void *scratch;
    size_t scratch_bytes;
    struct ddp_device_tally *tally;
    struct ddp_coll_plan plan;
    double wire_per_run; /* bytes that the other ranks receive from this rank per run */
};

/* Returns the list that is stored at `memory`. */
static inline struct ddp_stream_list ddp_device_list_at(const struct ddp_device_exchange *x,
                                                        void *memory)
{
    unsigned char *at = memory;
    return (struct ddp_stream_list){
        .index = (uint32_t *)(void *)(at + DDP_LIST_HEAD_BYTES),
        .value = (float *)(void *)(at + DDP_LIST_HEAD_BYTES + x->capacity * sizeof(uint32_t)),
        .count = (uint32_t *)(void *)at,
        .capacity = x->capacity};
}

/* Returns the list of rank r in `gathered`. The list consists of `count` indices, followed by the
 * values. The kernels read its length from x->host->current[r]. */
static inline struct ddp_stream_list ddp_device_list_of(const struct ddp_device_exchange *x, int r,
                                                        size_t count)
{
    uint32_t *at = (uint32_t *)x->gathered + 2 * (size_t)r * x->room;
    return (struct ddp_stream_list){.index = at,
                                    .value = (float *)(void *)(at + count),
                                    .count = &x->host->current[r],
                                    .capacity = count};
}

/* a += b, both [n]. */
static inline void ddp_device_add(const struct ddp_device_exchange *x, float *a, const float *b)
{
    void *const dst[] = {a};
    const void *const src[] = {a, b};
    const struct ddp_reduce sum = {.dst = dst,
                                   .dst_count = 1,
                                   .src = src,
                                   .src_count = 2,
                                   .count = x->base.setup.n,
                                   .dtype = DDP_F32,
                                   .op = DDP_SUM,
                                   .divisor = 1};
    x->base.setup.device->stream_kernels->reduce(x->base.setup.stream, &sum);
}

/* Returns the factor for this rank's values: 1/P for an average, otherwise 1. */
static inline float ddp_device_share(const struct ddp_device_exchange *x)
{
    return x->base.setup.average ? 1 / (float)x->base.setup.comm->size : 1;
}

/* Multiplies values [n] by ddp_device_share(x). */
static inline void ddp_device_divide(const struct ddp_device_exchange *x, float *values, size_t n)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    if (ddp_device_share(x) != 1)
        s->device->stream_kernels->scale(s->stream, values, n, ddp_device_share(x));
}

/* compressed_device_lists.c implements the functions below. */

/* Exchanges the lists of a threshold. On return the lists of the last round have not been added to
 * data yet. Collective. */
int ddp_device_rounds_exchange(struct ddp_device_exchange *x, struct ddp_err *err) DDP_MUST_CHECK;
/* Adds the lists of a round to data in rank order. In the first round, sets data to 0 first. */
void ddp_device_lists_sum(struct ddp_device_exchange *x);
/* Exchanges the lists of oktopk on three or more ranks. On return ddp_device_list_of(x, r,
 * host->current[r]) has the selected sums of region r. Their indices are relative to the region.
 * Collective. */
int ddp_device_regions_exchange(struct ddp_device_exchange *x, struct ddp_err *err) DDP_MUST_CHECK;
/* Stores the selected sums of all regions in data. The residual, if there is one, gets back the
 * entries that this rank sent for the other sums. */
void ddp_device_regions_store(struct ddp_device_exchange *x);

#ifdef __cplusplus
}
#endif
#endif
