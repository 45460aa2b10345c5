/* A compressed all-reduce made ready: encode, exchange, decode of one bucket, in place.
 *
 * The same code under `ddpbench allreduce --compress` and under the sync strategies. After run()
 * data[n] holds, on all ranks bit for bit alike, the sum over ranks of what each rank sent (times
 * 1/P for an average). Phases are timed apart: encode is the compressor with error feedback;
 * exchange what needs the other ranks, for sparse lists with their summation into data; decode
 * the conversion from 16 bits. What it does not do: decide when, or cut into buckets. */
#ifndef DDP_EXCHANGE_COMPRESSED_H
#define DDP_EXCHANGE_COMPRESSED_H

#include "coll/coll.h"
#include "compress/compress.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_compressed;

/* data [n]: the bucket; registered memory where the backend has it; wire buffers are too. Borrowed
 * until destroy.
 * feedback: keep what was not sent (nothing is kept of `none`, which sends all). average: divide by
 * the ranks, before the sum (16-bit) or in the values (sparse; a residual stays undivided).
 * algorithm: of the sparse or dense exchange; NULL or "auto": the one that fits. */
struct ddp_compressed_setup {
    struct ddp_comm *comm;
    float *data;
    size_t n;
    struct ddp_compress_spec spec;
    bool feedback, average;
    const char *algorithm;
};

/* Since create (or reset). wire_bytes: bytes other ranks took from this one, counted; wire_counted
 * false: a native call, of which a ring's are assumed. values: entries sent; values_total: n per
 * run. overflow_count: elements that this rank gave as finite numbers and got back infinite or NaN
 * (16-bit forms). */
struct ddp_compressed_counters {
    int64_t runs, encode_ns, exchange_ns, decode_ns;
    double wire_bytes, values_sent, values_total;
    bool wire_counted;
    uint64_t overflow_count;
};

/* Collective (registered memory may be allocated). DDP_EUSAGE: no such algorithm; DDP_EUNAVAIL: not
 * on this backend or device; DDP_ENOMEM; alike on all ranks. */
int ddp_compressed_create(const struct ddp_compressed_setup *setup, struct ddp_compressed **out,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* Collective where the backend's registered memory is. NULL is fine. */
void ddp_compressed_destroy(struct ddp_compressed *x);
/* Collective. No allocation. */
int ddp_compressed_run(struct ddp_compressed *x, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_compressed_counters(const struct ddp_compressed *x, struct ddp_compressed_counters *out);
/* Counters only; what is kept stays. */
void ddp_compressed_reset(struct ddp_compressed *x);
/* What is kept: [n], or NULL without feedback. Of 16-bit forms in the wire's unit (divided when
 * averaging). */
const float *ddp_compressed_residual(const struct ddp_compressed *x);
const char *ddp_compressed_algorithm(const struct ddp_compressed *x); /* that it uses */
/* Registered and private bytes that create will ask for, for memory checks before. Private: of the
 * algorithm that needs most; of threshold, whose lists may have any length, as if a sixteenth of
 * the elements survived. */
void ddp_compressed_bytes(const struct ddp_compress_spec *spec, size_t n, int ranks, bool feedback,
                          uint64_t *registered, uint64_t *private_bytes);

#ifdef __cplusplus
}
#endif
#endif
