/* Sync strategies: how the ranks of a training run keep their parameters in step. To add a
 * strategy, write one file and one line in sync_list.h.
 *
 * The trainer owns the flat arrays of parameters and gradients; they lie in registered memory if
 * the backend has it. In each step the trainer calls begin_step; on_grad_ready for each parameter,
 * last layer first; finish_backward, after which grads holds the gradients for the optimiser; the
 * optimiser; and end_step, in which parameter strategies average. It calls end_epoch before an
 * evaluation and at the end of the run. Strategies communicate only through lib/coll and
 * lib/exchange. They never choose by a run-time measurement, so the same seed gives the same bits,
 * with and without overlap.
 *
 * dense, fp16, bf16, topk, threshold and oktopk are gradient strategies: they exchange gradients in
 * buckets (grad_buckets.h), so all ranks take the same step and their parameters stay
 * bit-identical. partial and local are parameter strategies: ranks take their own steps and average
 * parameters. none exchanges nothing. */
#ifndef DDP_EXCHANGE_SYNC_H
#define DDP_EXCHANGE_SYNC_H

#include "coll/coll.h"
#include "exchange/aggregate.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_sync;

/* Error feedback: keep the values that were not sent and add them in the next step. AUTO: the
 * default of the compressor. */
enum ddp_feedback { DDP_FEEDBACK_AUTO, DDP_FEEDBACK_ON, DDP_FEEDBACK_OFF };

/* Factor by which each rank scales the gradient of its sum of losses. m: images of this rank in the
 * step; n: images of all P ranks. Ranks with different m are thus weighted by m/n. */
enum ddp_grad_scale {
    DDP_SCALE_SUM, /* 1/n. The sum over ranks is the mean over the global batch. */
    /* P/n. The average over ranks is the mean over the global batch. With equal m, a rank's own
     * gradient is its plain mean, as SINGA's thresholds and 16-bit ranges assume. */
    DDP_SCALE_MEAN,
    /* 1/m. The rank learns from its own images only; averages of parameters are weighted instead.
     */
    DDP_SCALE_PRIVATE
};

/* Arguments of ddp_sync_class.create. */
struct ddp_sync_setup {
    struct ddp_comm *comm;
    /* Flat arrays [total]. */
    float *params, *grads;
    /* NULL: params and grads are in host memory. Otherwise both lie on this device, and the caller
     * has put the work that precedes an exchange on the stream. The strategy puts its own work on
     * the stream too, or finishes it before it returns. */
    const struct ddp_device *device;
    struct ddp_stream *stream;
    size_t total;
    /* Offset and length of each tensor in the flat arrays, in layer order, [param_count]. */
    const size_t *offsets, *counts;
    int param_count;
    size_t
        /* Gradient strategies: maximum size of a bucket; a larger tensor gets its own. 0: one
         * bucket. */
        bucket_bytes;
    /* Gradient strategies: exchange during the backward pass. On a device the exchange overlaps
     * with the work that is put on the stream after on_grad_ready. */
    bool overlap;
    enum ddp_feedback feedback;
    /* Strategy dense: placement of the sums. NULL: all-reduce. */
    const struct ddp_aggregate *aggregate;
    const char *algorithm; /* Algorithm of all-reduces. NULL: auto. */
    const char *argument;  /* Text after ':' in the strategy's name, or "". */
};

/* Counters of this rank since the start of the run. */
struct ddp_sync_counters {
    /* Bytes that other ranks received from this rank: counted if wire_counted, else modelled. */
    double wire_bytes;
    bool wire_counted;
    /* exchange_ns: time of the exchanges with encoding and decoding. exposed_ns: the part of it
     * during which the main thread waited. */
    int64_t exchange_ns, exposed_ns;
    int64_t encode_ns, decode_ns; /* Parts of exchange_ns. 0 without a compressor. */
    /* Achieved density = sent / total. total is 0 if the exchange is not sparse. */
    double values_sent, values_total;
    int64_t overflow_count; /* -1 unless the exchange is 16-bit. */
};

struct ddp_sync_class {
    const char *name, *summary;
    const char *argument_help; /* "D", "K"; "[CLIP]" is optional. NULL: takes none. */
    bool replicas_equal;       /* All ranks hold identical parameters after every step. */
    bool buckets;              /* Exchanges gradients; uses bucket_bytes and overlap. */
    bool aggregates;           /* Uses `aggregate`. */
    bool compresses;           /* Uses `feedback`. */
    bool on_device;            /* Works with a setup->device other than NULL. */
    enum ddp_grad_scale scale;
    /* Checks the argument. Returns DDP_EUSAGE with a message if it is illegal. NULL: the strategy
     * accepts any or takes none. */
    int (*check)(const char *argument, struct ddp_err *err);
    /* Estimates the registered and private bytes that create will allocate per rank, on `ranks`
     * ranks. Does not read setup->comm. NULL: negligible. */
    void (*memory)(const struct ddp_sync_setup *setup, int ranks, uint64_t *registered,
                   uint64_t *private_bytes);
    /* Collective. A failing rank frees everything it created; other ranks may have succeeded. */
    int (*create)(const struct ddp_sync_setup *setup, struct ddp_sync **out, struct ddp_err *err);
    void (*destroy)(struct ddp_sync *s);
    /* images: of this rank in the coming step. global: of all ranks, > 0. NULL: not needed. */
    void (*begin_step)(struct ddp_sync *s, size_t images, size_t global);
    int (*on_grad_ready)(struct ddp_sync *s, int param, struct ddp_err *err);
    int (*finish_backward)(struct ddp_sync *s, struct ddp_err *err);
    int (*end_step)(struct ddp_sync *s, struct ddp_err *err);
    /* Optional. */
    int (*end_epoch)(struct ddp_sync *s, struct ddp_err *err);
    void (*counters)(const struct ddp_sync *s, struct ddp_sync_counters *out);
    /* Returns "on" or "off". NULL: the strategy has no compressor. */
    const char *(*feedback)(const struct ddp_sync *s);
    /* For tests and --check-replicas: returns the range [*first, *first + *n) of params that is
     * identical on all ranks after this step. NULL: the whole array if replicas_equal, else
     * nothing. */
    void (*equal_part)(const struct ddp_sync *s, size_t *first, size_t *n);
};

const struct ddp_sync_class *const *ddp_syncs(void); /* NULL-terminated */
/* Splits a text like "topk:0.01" into class and argument, and checks the argument. Returns
 * DDP_EUSAGE with a message that lists the legal names. */
int ddp_sync_find(const char *text, const struct ddp_sync_class **cls, const char **argument,
                  struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
