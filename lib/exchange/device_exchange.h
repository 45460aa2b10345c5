/* A compressed all-reduce of one bucket in device memory, as compressed.h is for host memory.
 * Kernels on a stream encode and decode. The communicator exchanges device memory directly.
 *
 * 16-bit compressors convert the bucket, all-reduce it and convert it back. `none` all-reduces in
 * place. With a sparse compressor each rank's list has a fixed capacity and is always sent in full.
 * The host therefore never needs the length of a list, which stays on the device. Lists are added
 * in rank order. For a global top-K (oktopk) every rank selects the k largest sums in each call.
 * Entries that this rank sent but that were not selected return to its residual. The host waits for
 * the stream before the exchange and, if `timed` is set, after decoding. */
#ifndef DDP_EXCHANGE_DEVICE_EXCHANGE_H
#define DDP_EXCHANGE_DEVICE_EXCHANGE_H

#include "coll/coll.h"
#include "compress/compress.h"
#include "device/stream.h"
#include "exchange/compressed.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_device_exchange;

/* Arguments of ddp_device_exchange_create. */
struct ddp_device_exchange_setup {
    struct ddp_comm *comm;
    const struct ddp_device *device;
    struct ddp_stream *stream;
    /* The bucket, [n], in device memory that the communicator can access. Exchanged in place. */
    float *data;
    size_t n;
    struct ddp_compress_spec spec;
    /* feedback, average: see ddp_compressed_setup. timed: each run also waits for its decoding, and
     * the host's clock measures each phase. Set `timed` only if nothing else uses the stream. */
    bool feedback, average, timed;
    const char *algorithm; /* NULL or "auto" selects one. topk and threshold: also "allgather". */
};

/* Returns the largest number of entries that a rank sends. For a top-K this is k. For a threshold
 * this is n without error feedback. With error feedback it is n/8, because the residual keeps the
 * rest. For 16-bit compressors and `none` it is 0. */
size_t ddp_device_exchange_capacity(const struct ddp_compress_spec *spec, size_t n, bool feedback);
/* Returns the registered bytes that create will allocate on each of `ranks` ranks. */
uint64_t ddp_device_exchange_bytes(const struct ddp_compress_spec *spec, size_t n, int ranks,
                                   bool feedback);
/* Collective. Errors as for ddp_compressed_create. */
int ddp_device_exchange_create(const struct ddp_device_exchange_setup *setup,
                               struct ddp_device_exchange **out,
                               struct ddp_err *err) DDP_MUST_CHECK;
/* Waits for the stream and frees x, which may be NULL. All ranks must make the call in the same
 * order, because it frees registered memory. */
void ddp_device_exchange_destroy(struct ddp_device_exchange *x);
/* Runs one exchange. Collective. Does not allocate. Unless `timed` is set, its work on the stream
 * may be unfinished on return. */
int ddp_device_exchange_run(struct ddp_device_exchange *x, struct ddp_err *err) DDP_MUST_CHECK;
/* Reads the counters. Waits for the stream. If not timed, exchange_ns is the total time that the
 * host spent, and encode_ns and decode_ns are 0. wire_bytes is always modelled as that of a ring.
 */
void ddp_device_exchange_counters(const struct ddp_device_exchange *x,
                                  struct ddp_compressed_counters *out);
/* See ddp_compressed_residual and ddp_compressed_algorithm. The residual is device memory. */
const float *ddp_device_exchange_residual(const struct ddp_device_exchange *x);
const char *ddp_device_exchange_algorithm(const struct ddp_device_exchange *x);

#ifdef __cplusplus
}
#endif
#endif
