/* A prepared compressed all-reduce. Each run encodes, exchanges and decodes one bucket in place, in
 * host memory or on a device. On a device, kernels on a stream encode and decode, and the
 * communicator exchanges device memory directly.
 *
 * `ddpbench allreduce --compress` and the sync strategies with a compressor run this code. Each
 * rank sends all or some of its values. After a run, each element of `data` is the sum of the
 * values that the ranks have sent for this element. For an average, the sum is divided by the
 * number of ranks. oktopk keeps only the largest sums, about k in host memory and exactly k on a
 * device. The other elements are 0. q8, q4 and the fp8 compressors also quantise the sums. powersgd
 * approximates the sums. The result is bit-identical on all ranks. The three phases are timed
 * separately. Encode is the compressor with error feedback. Exchange is everything that needs the
 * other ranks. Decode is the conversion back from 16 bits, blocks or factors. The summation belongs
 * to exchange, with two exceptions. The blocks of sign are summed in decode. On a device the last
 * part of the summation of sparse lists belongs to decode. */
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
    /* NULL: data lies in host memory. Otherwise data lies in memory of this device that the
     * communicator can access, and the exchange works on `stream`. */
    const struct ddp_device *device;
    struct ddp_stream *stream;
    float *data; /* The bucket, [n], borrowed until destroy. Registered memory if possible. */
    size_t n;
    /* The tensors of the bucket, n elements together. Borrowed only during create. If tensors.n is
     * 0, the bucket is one matrix (ddp_compress_flat). */
    struct ddp_tensors tensors;
    struct ddp_compress_spec spec;
    /* feedback: keep the values that were not sent and add them in the next run. The compressor
     * `none` sends everything, so it ignores `feedback`. average: divide by the number of ranks.
     * 16-bit and quantising compressors divide before the sum. powersgd divides the result. topk
     * and threshold divide the sent values, and oktopk divides the selected sums. None of these
     * three divides the residual. */
    bool feedback, average;
    /* Only on a device: each run also waits for its decoding, and the host's clock measures each
     * phase. Set `timed` only if nothing else uses the stream. */
    bool timed;
    /* Algorithm of the sparse or dense exchange. NULL or "auto": chosen automatically. Only some
     * sparse algorithms run on a device (coll/sparse/sparse_coll.h). */
    const char *algorithm;
    uint64_t seed; /* of stochastic rounding; the same on all ranks */
};

/* Counters since create. */
struct ddp_compressed_counters {
    int64_t runs, encode_ns, exchange_ns, decode_ns;
    /* wire_bytes: bytes that other ranks received from this rank. values_sent: elements that this
     * rank sent. values_total: n per run. */
    double wire_bytes, values_sent, values_total;
    /* In host memory: false if the exchange calls the backend's library. On a device: true only for
     * a threshold, and for oktopk on three or more ranks. If wire_counted is false, wire_bytes is
     * modelled: the bytes that an exchange by messages (a ring for dense arrays) would send. For
     * algorithms in host memory that send no messages, wire_bytes is modelled, too, although
     * wire_counted is true. */
    bool wire_counted;
    /* 16-bit and quantising compressors: elements that were finite on this rank and came back
     * infinite or NaN. */
    uint64_t overflow_count;
};

/* Prepares the exchange. Collective, because it may allocate registered memory. All ranks return
 * the same code. Errors: DDP_EUSAGE if the algorithm is unknown, or if n >= 2^32 with sparse lists
 * in host memory. DDP_EUNAVAIL if the algorithm does not support this backend, or if the device
 * cannot compress. DDP_ENOMEM if memory runs out. */
int ddp_compressed_create(const struct ddp_compressed_setup *setup, struct ddp_compressed **out,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* Frees x, which may be NULL. The call frees registered memory, so all ranks make their calls of
 * create and destroy in the same order. */
void ddp_compressed_destroy(struct ddp_compressed *x);
/* Runs one exchange. Collective. Does not allocate, except in backend shm for a message that
 * arrives before its receive is posted. On a device, work on the stream may be unfinished on
 * return, unless `timed` is set. */
int ddp_compressed_run(struct ddp_compressed *x, struct ddp_err *err) DDP_MUST_CHECK;
/* Reads the counters. On a device, the call waits for the stream. On a device without `timed`,
 * exchange_ns is the time that the host spent in all runs, and encode_ns and decode_ns are 0. */
void ddp_compressed_counters(const struct ddp_compressed *x, struct ddp_compressed_counters *out);
/* Returns the residual [n], or NULL without feedback. With `average`, the residual of a 16-bit or
 * quantising compressor is already divided by the number of ranks, like the values that the
 * compressor sends. The residual of a sparse compressor, or of a compressor with rounds, is not
 * divided. On a device the residual is device memory. */
const float *ddp_compressed_residual(const struct ddp_compressed *x);
/* Returns the arrays of all rounds (compress.h), [*count], for a compressor that has rounds.
 * Returns NULL and sets *count to 0 for the others. */
const float *ddp_compressed_rounds(const struct ddp_compressed *x, size_t *count);
/* Returns the name of the chosen algorithm. */
const char *ddp_compressed_algorithm(const struct ddp_compressed *x);
/* Estimates the registered and private bytes that create will allocate per rank on `ranks` ranks,
 * for memory checks in advance. Reads neither setup->comm nor setup->data. The private bytes are
 * those of the algorithm that needs the most memory. The lists of `threshold` may have any length,
 * so the private bytes assume that `threshold` sends one element in sixteen. On a device no private
 * memory of the host is needed. */
void ddp_compressed_bytes(const struct ddp_compressed_setup *setup, int ranks, uint64_t *registered,
                          uint64_t *private_bytes);

#ifdef __cplusplus
}
#endif
#endif
