/* The common part of the strategies fp16, bf16, topk, threshold and oktopk, which exchange
 * gradients in fewer bytes.
 *
 * Each bucket is one ddp_compressed (compressed.h), or one ddp_device_exchange on a device. The
 * option --feedback switches error feedback on or off. Its default depends on the compressor. The
 * scale is DDP_SCALE_MEAN and the exchange averages. Thresholds thus have the same meaning as in
 * SINGA, and 16-bit values are divided before the sum. topk and oktopk select within a bucket. */
#ifndef DDP_EXCHANGE_SYNC_COMPRESSED_H
#define DDP_EXCHANGE_SYNC_COMPRESSED_H

#include "exchange/sync.h"

#ifdef __cplusplus
extern "C" {
#endif

/* These functions implement members of ddp_sync_class. name: name of the compressor. */
int ddp_sync_compressed_check(const char *name, const char *argument, struct ddp_err *err);
void ddp_sync_compressed_memory(const char *name, const struct ddp_sync_setup *setup, int ranks,
                                uint64_t *registered, uint64_t *private_bytes);
int ddp_sync_compressed_create(const char *name, const struct ddp_sync_setup *setup,
                               struct ddp_sync **out, struct ddp_err *err);
void ddp_sync_compressed_destroy(struct ddp_sync *s);
int ddp_sync_compressed_on_grad_ready(struct ddp_sync *s, int param, struct ddp_err *err);
int ddp_sync_compressed_finish_backward(struct ddp_sync *s, struct ddp_err *err);
int ddp_sync_compressed_end_step(struct ddp_sync *s, struct ddp_err *err);
void ddp_sync_compressed_counters(const struct ddp_sync *s, struct ddp_sync_counters *out);
const char *ddp_sync_compressed_feedback(const struct ddp_sync *s);

/* Defines ddp_sync_<symbol>, the strategy of the compressor of that name. argument: argument_help.
 */
#define DDP_SYNC_COMPRESSED(symbol, argument, text)                                                \
    static int check(const char *value, struct ddp_err *err)                                       \
    {                                                                                              \
        return ddp_sync_compressed_check(#symbol, value, err);                                     \
    }                                                                                              \
    static void memory(const struct ddp_sync_setup *setup, int ranks, uint64_t *registered,        \
                       uint64_t *private_bytes)                                                    \
    {                                                                                              \
        ddp_sync_compressed_memory(#symbol, setup, ranks, registered, private_bytes);              \
    }                                                                                              \
    static int create(const struct ddp_sync_setup *setup, struct ddp_sync **out,                   \
                      struct ddp_err *err)                                                         \
    {                                                                                              \
        return ddp_sync_compressed_create(#symbol, setup, out, err);                               \
    }                                                                                              \
    extern const struct ddp_sync_class ddp_sync_##symbol;                                          \
    const struct ddp_sync_class ddp_sync_##symbol = {                                              \
        .name = #symbol,                                                                           \
        .summary = text,                                                                           \
        .argument_help = argument,                                                                 \
        .replicas_equal = true,                                                                    \
        .buckets = true,                                                                           \
        .compresses = true,                                                                        \
        .on_device = true,                                                                         \
        .scale = DDP_SCALE_MEAN,                                                                   \
        .check = check,                                                                            \
        .memory = memory,                                                                          \
        .create = create,                                                                          \
        .destroy = ddp_sync_compressed_destroy,                                                    \
        .on_grad_ready = ddp_sync_compressed_on_grad_ready,                                        \
        .finish_backward = ddp_sync_compressed_finish_backward,                                    \
        .end_step = ddp_sync_compressed_end_step,                                                  \
        .counters = ddp_sync_compressed_counters,                                                  \
        .feedback = ddp_sync_compressed_feedback,                                                  \
    }

#ifdef __cplusplus
}
#endif
#endif
