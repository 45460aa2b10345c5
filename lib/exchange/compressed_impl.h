/* The variants of a compressed all-reduce: compressed.c for host memory, compressed_device.c for
 * device memory. */
#ifndef DDP_EXCHANGE_COMPRESSED_IMPL_H
#define DDP_EXCHANGE_COMPRESSED_IMPL_H

#include "base/mem.h"
#include "exchange/compressed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ddp_compressed_create chooses a table once. compressed.h describes the functions. */
struct ddp_compressed_ops {
    int (*create)(const struct ddp_compressed_setup *setup, struct ddp_compressed **out,
                  struct ddp_err *err);
    void (*destroy)(struct ddp_compressed *x); /* x is never NULL */
    int (*run)(struct ddp_compressed *x, struct ddp_err *err);
    void (*counters)(const struct ddp_compressed *x, struct ddp_compressed_counters *out);
    const float *(*residual)(const struct ddp_compressed *x);
    const char *(*algorithm)(const struct ddp_compressed *x);
    void (*bytes)(const struct ddp_compressed_setup *setup, int ranks, uint64_t *registered,
                  uint64_t *private_bytes);
};
extern const struct ddp_compressed_ops ddp_compressed_on_device;

/* The first member of each variant's struct. */
struct ddp_compressed {
    const struct ddp_compressed_ops *ops;
    struct ddp_compressed_setup setup;
    struct ddp_compressed_counters counters;
    const float *rounds; /* see ddp_compressed_rounds */
    size_t rounds_count;
};

#ifdef __cplusplus
}
#endif
#endif
