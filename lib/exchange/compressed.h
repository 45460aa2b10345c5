/* A prepared compressed all-reduce: encode, exchange and decode one bucket in place.
 *
 * `ddpbench allreduce --compress` and the sync strategies both run this code. After run() data[n]
 * holds the sum over the ranks of the values that each rank sent (times 1/P for an average),
 * bit-identical on all ranks. The phases are timed separately. Encode is the compressor with error
 * feedback. Exchange is everything that needs the other ranks, including the summation of sparse
 * lists into data. Decode is the conversion back from 16 bits. Callers decide when to exchange and
 * how to cut buckets. */
#ifndef DDP_EXCHANGE_COMPRESSED_H
#define DDP_EXCHANGE_COMPRESSED_H

#include "coll/coll.h"
#include "compress/compress.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_compressed;

/* Arguments of ddp_compressed_create. */
struct ddp_compressed_setup {
    struct ddp_comm *comm;
    float *data; /* The bucket, [n], borrowed until destroy. Registered if the backend can. */
    size_t n;
    struct ddp_compress_spec spec;
    /* feedback: keep the values that were not sent (ignored by `none`, which sends everything).
     * average: divide by the number of ranks: before the sum for 16-bit forms, in the sent values
     * for sparse forms. A sparse residual stays undivided. */
    bool feedback, average;
    /* Algorithm of the sparse or dense exchange. NULL or "auto" selects one. */
    const char *algorithm;
};

/* Counters since create or reset. */
struct ddp_compressed_counters {
    int64_t runs, encode_ns, exchange_ns, decode_ns;
    /* wire_bytes: bytes that other ranks received from this rank. values_sent: entries sent.
     * values_total: n per run. */
    double wire_bytes, values_sent, values_total;
    /* False if wire_bytes is modelled: a native call is assumed to send as much as a ring. */
    bool wire_counted;
    /* 16-bit forms: elements that were finite on this rank and came back infinite or NaN. */
    uint64_t overflow_count;
};

/* Prepares the exchange. Collective, because it may allocate registered memory. All ranks return
 * the same code: DDP_EUSAGE if the algorithm is unknown, DDP_EUNAVAIL if it does not support this
 * backend or device, DDP_ENOMEM. */
int ddp_compressed_create(const struct ddp_compressed_setup *setup, struct ddp_compressed **out,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* Collective if the backend's registered memory is. x may be NULL. */
void ddp_compressed_destroy(struct ddp_compressed *x);
/* Runs one exchange. Collective. Does not allocate. */
int ddp_compressed_run(struct ddp_compressed *x, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_compressed_counters(const struct ddp_compressed *x, struct ddp_compressed_counters *out);
/* Resets the counters. The residual stays. */
void ddp_compressed_reset(struct ddp_compressed *x);
/* Returns the residual [n], or NULL without feedback. For 16-bit forms the residual has the scale
 * of the sent values (divided when averaging). */
const float *ddp_compressed_residual(const struct ddp_compressed *x);
/* Name of the chosen algorithm. */
const char *ddp_compressed_algorithm(const struct ddp_compressed *x);
/* Estimates the registered and private bytes that create will allocate per rank, for memory checks
 * in advance. The private bytes are those of the most demanding algorithm. The lists of `threshold`
 * may have any length; the estimate assumes that a sixteenth of the elements survives. */
void ddp_compressed_bytes(const struct ddp_compress_spec *spec, size_t n, int ranks, bool feedback,
                          uint64_t *registered, uint64_t *private_bytes);

#ifdef __cplusplus
}
#endif
#endif
