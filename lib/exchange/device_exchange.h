/* A compressed all-reduce of one bucket that lies on a device: compressed.h's, with the encoding
 * and decoding on a stream and the exchange by the communicator, which moves what lies there.
 *
 * 16-bit forms: converted, all-reduced, converted back; `none`: all-reduced where it is. Sparse
 * ones: each rank's list has room for a fixed number of entries, its length stays on the device,
 * and all lists are gathered whole: the host never asks how many there are. Sums are in rank order.
 * A global top-K (oktopk) selects exactly k of the sums in every call, each rank for itself; what a
 * rank had given to others goes back to its residual. The host waits for the stream once, before
 * the exchange. What it does not do: fall back to the processor. */
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

/* data [n]: memory of the device, which the communicator reaches; in place. average: as of
 * ddp_compressed_setup. timed: each run waits for its own decoding, too, and the counters have its
 * phases by the host's clock; for who has nothing else on the stream. */
struct ddp_device_exchange_setup {
    struct ddp_comm *comm;
    const struct ddp_device *device;
    struct ddp_stream *stream;
    float *data;
    size_t n;
    struct ddp_compress_spec spec;
    bool feedback, average, timed;
    const char *algorithm; /* NULL or "auto": the one that fits; of lists there is "allgather" */
};

/* Entries that a rank sends at most: k of a top-K; of a threshold an eighth of n where the rest
 * stays in the residual, else n. */
size_t ddp_device_exchange_capacity(const struct ddp_compress_spec *spec, size_t n, bool feedback);
/* Registered bytes that create will ask for on each of `ranks` ranks. */
uint64_t ddp_device_exchange_bytes(const struct ddp_compress_spec *spec, size_t n, int ranks,
                                   bool feedback);
/* Collective, as ddp_compressed_create. */
int ddp_device_exchange_create(const struct ddp_device_exchange_setup *setup,
                               struct ddp_device_exchange **out,
                               struct ddp_err *err) DDP_MUST_CHECK;
/* Collective where the backend's registered memory is. Waits for the stream. NULL is fine. */
void ddp_device_exchange_destroy(struct ddp_device_exchange *x);
/* Collective. No allocation. What it put on the stream may be unfinished when it returns. */
int ddp_device_exchange_run(struct ddp_device_exchange *x, struct ddp_err *err) DDP_MUST_CHECK;
/* Unless timed, exchange_ns is all the time that the host spent, and the other two are 0.
 * wire_bytes is never counted: what a ring sends. Waits for the stream. */
void ddp_device_exchange_counters(const struct ddp_device_exchange *x,
                                  struct ddp_compressed_counters *out);
/* As of ddp_compressed; memory of the device. */
const float *ddp_device_exchange_residual(const struct ddp_device_exchange *x);
const char *ddp_device_exchange_algorithm(const struct ddp_device_exchange *x);

#ifdef __cplusplus
}
#endif
#endif
