/* Sync strategies: how the ranks of a training run exchange gradients or parameters. To add a
 * strategy, write one file and add one line to sync_list.h.
 *
 * The trainer owns the flat arrays of parameters and gradients. They lie in registered memory if
 * the backend has it. In each step the trainer makes these calls:
 *
 *   begin_step
 *   on_grad_ready     for each parameter, last layer first
 *   finish_backward   then grads holds the gradients for the optimiser, which runs next
 *   end_step          parameter strategies average here
 *
 * The trainer calls end_epoch before an evaluation and at the end of the run. Strategies
 * communicate only through lib/coll and lib/exchange. They never choose by a measurement at run
 * time. The same seed therefore gives the same bits, with and without overlap.
 *
 * dense, fp16, bf16, topk, threshold and oktopk are gradient strategies. They exchange gradients in
 * buckets (grad_buckets.h). All ranks then take the same step, so their parameters stay
 * bit-identical. partial and local are parameter strategies: each rank takes its own steps, and the
 * ranks average parameters. none exchanges nothing. */
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

/* Factor by which each rank multiplies the gradient of the sum of its losses. m: images of this
 * rank in the step. n: images of all P ranks in the step. */
enum ddp_grad_scale {
    DDP_SCALE_SUM, /* 1/n. The sum over ranks is the mean over the global batch. */
    /* P/n. The average over ranks is the mean over the global batch. If m is equal on all ranks,
     * each rank's gradient is the mean over its own images. SINGA's thresholds and 16-bit ranges
     * assume this scale. */
    DDP_SCALE_MEAN,
    /* 1/m. The rank learns from its own images only. Averages of parameters weight the ranks
     * instead. */
    DDP_SCALE_PRIVATE
};

/* Arguments of ddp_sync_class.create. */
struct ddp_sync_setup {
    struct ddp_comm *comm;
    /* Flat arrays [total]. */
    float *params, *grads;
    /* NULL: params and grads lie in host memory. Otherwise params and grads lie on this device, and
     * the caller has put all work that must precede an exchange on `stream`. The strategy also puts
     * its own work on `stream`, or finishes this work before it returns. */
    const struct ddp_device *device;
    struct ddp_stream *stream;
    size_t total;
    /* Offset and length of each tensor in the flat arrays, in layer order, [param_count]. */
    const size_t *offsets, *counts;
    int param_count;
    /* Gradient strategies: largest size of a bucket. A larger tensor gets a bucket of its own.
     * 0: a single bucket. */
    size_t bucket_bytes;
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
    /* exchange_ns: time of the exchanges with encoding and decoding. exposed_ns: the part of
     * exchange_ns during which the main thread waited. */
    int64_t exchange_ns, exposed_ns;
    int64_t encode_ns, decode_ns; /* Parts of exchange_ns. 0 without a compressor or on a device. */
    /* values_sent / values_total is the achieved density. values_total is 0 if the exchange is not
     * sparse. */
    double values_sent, values_total;
    int64_t overflow_count; /* -1 unless the exchange is 16-bit. */
};

struct ddp_sync_class {
    const char *name, *summary;
    const char *argument_help; /* Such as "D". "[CLIP]": optional. NULL: no argument. */
    bool replicas_equal;       /* All ranks hold identical parameters after every step. */
    bool buckets;              /* Exchanges gradients; uses bucket_bytes and overlap. */
    bool aggregates;           /* Uses `aggregate`. */
    bool compresses;           /* Uses `feedback`. */
    bool on_device;            /* Works with a setup->device other than NULL. */
    enum ddp_grad_scale scale;
    /* Checks the argument. Returns DDP_EUSAGE with a message if it is illegal. NULL: the strategy
     * accepts any argument or takes none. */
    int (*check)(const char *argument, struct ddp_err *err);
    /* Estimates the registered and private bytes that create will allocate per rank, on `ranks`
     * ranks. Does not read setup->comm. NULL: negligible. */
    void (*memory)(const struct ddp_sync_setup *setup, int ranks, uint64_t *registered,
                   uint64_t *private_bytes);
    /* Collective. A rank that fails frees everything that it created. Other ranks may have
     * succeeded. */
    int (*create)(const struct ddp_sync_setup *setup, struct ddp_sync **out, struct ddp_err *err);
    void (*destroy)(struct ddp_sync *s);
    /* images: images of this rank in the coming step. global: images of all ranks, > 0. The member
     * is NULL if the strategy does not need it. */
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
 * DDP_EUSAGE with a message if the text is illegal. */
int ddp_sync_find(const char *text, const struct ddp_sync_class **cls, const char **argument,
                  struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
