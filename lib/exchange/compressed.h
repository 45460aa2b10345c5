/* A compressed all-reduce made ready: encode, exchange, decode of one bucket, in place.
 *
 * The same code under `ddpbench allreduce --compress` and under the sync strategies. After run()
 * data[n] holds, on all ranks bit for bit alike, the sum over ranks of what each rank sent (times
 * scale). Phases are timed apart. What it does not do: decide when, or cut into buckets. */
#ifndef DDP_EXCHANGE_COMPRESSED_H
#define DDP_EXCHANGE_COMPRESSED_H

#include "coll/coll.h"
#include "compress/compress.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_compressed;

/* data [n]: the bucket; registered memory where the backend has it and wire buffers are too.
 * feedback: keep what was not sent. average: divide by the ranks, before the sum (16-bit) or in the
 * values (sparse). algorithm: of the sparse or dense exchange, NULL: auto. */
struct ddp_compressed_setup {
    struct ddp_comm *comm;
    float *data;
    size_t n;
    struct ddp_compress_spec spec;
    bool feedback, average;
    const char *algorithm;
};

/* Since create (or reset). wire_bytes: bytes other ranks took from this one; counted, unless
 * wire_counted is false (native calls). values: entries sent; values_total: n per run. */
struct ddp_compressed_counters {
    int64_t runs, encode_ns, exchange_ns, decode_ns;
    double wire_bytes, values_sent, values_total;
    bool wire_counted;
    uint64_t overflow_count;
};

/* Collective (registered memory may be allocated). */
int ddp_compressed_create(const struct ddp_compressed_setup *setup, struct ddp_compressed **out,
                          struct ddp_err *err) DDP_MUST_CHECK;
void ddp_compressed_destroy(struct ddp_compressed *x);
/* Collective. No allocation. */
int ddp_compressed_run(struct ddp_compressed *x, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_compressed_counters(const struct ddp_compressed *x, struct ddp_compressed_counters *out);
void ddp_compressed_reset(struct ddp_compressed *x);
/* What is kept: [n], or NULL without feedback. */
const float *ddp_compressed_residual(const struct ddp_compressed *x);
const char *ddp_compressed_algorithm(const struct ddp_compressed *x); /* that it uses */
/* Registered and private bytes that create will ask for, for memory checks before. */
void ddp_compressed_bytes(const struct ddp_compress_spec *spec, size_t n, int ranks, bool feedback,
                          uint64_t *registered, uint64_t *private_bytes);

#ifdef __cplusplus
}
#endif
#endif
