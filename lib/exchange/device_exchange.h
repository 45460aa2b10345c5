/* A compressed all-reduce of one bucket that lies on a device: compressed.h's, with the encoding
 * and decoding on a stream and the exchange by the communicator, which moves what lies there.
 *
 * 16-bit forms: converted, all-reduced, converted back. Sparse ones: each rank's list has room for
 * a fixed number of entries, its length stays on the device, and all lists are gathered whole: the
 * host never asks how many there are. Sums are in rank order. A global top-K (oktopk) selects
 * exactly k of the sums in every call, each rank for itself; what a rank had given to others goes
 * back to its residual. The host waits for the stream once, before the exchange.
 * What it does not do: fall back to the processor. */
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

/* data [n]: memory of the device, which the communicator reaches; in place. average: always. */
struct ddp_device_exchange_setup {
    struct ddp_comm *comm;
    const struct ddp_device *device;
    struct ddp_stream *stream;
    float *data;
    size_t n;
    struct ddp_compress_spec spec;
    bool feedback;
    const char *algorithm; /* of the all-reduce; NULL or "auto": the one that fits */
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
/* encode_ns and decode_ns are the host's alone: 0. Waits for the stream. */
void ddp_device_exchange_counters(const struct ddp_device_exchange *x,
                                  struct ddp_compressed_counters *out);

#ifdef __cplusplus
}
#endif
#endif
