/* Sync strategies: how the ranks of a training run keep their parameters together. One file and one
 * line in sync_list.h add one.
 *
 * The trainer owns parameters and gradients (flat arrays, registered memory where the backend has
 * it). Order of calls in a step: begin_step; on_grad_ready for each parameter, last layer first;
 * finish_backward: after it grads holds what the optimiser shall use; then the optimiser; then
 * end_step (parameter strategies average here). end_epoch: before an evaluation and at the end of
 * the run. Communicates only through lib/coll and lib/exchange. Never chooses by a run-time
 * measurement: same seed, same bits, with overlap or without.
 *
 * Gradients or parameters: dense, fp16, bf16, topk, threshold, oktopk exchange gradients in buckets
 * (grad_buckets.h), so all ranks take the same step and stay equal bit for bit. partial, local and
 * none take steps of their own. */
#ifndef DDP_EXCHANGE_SYNC_H
#define DDP_EXCHANGE_SYNC_H

#include "coll/coll.h"
#include "exchange/aggregate.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_sync;

/* Whether what was not sent is kept and added next time. AUTO: as the compressor has it. */
enum ddp_feedback { DDP_FEEDBACK_AUTO, DDP_FEEDBACK_ON, DDP_FEEDBACK_OFF };

/* How each rank scales the gradient of its sum of losses. m: its images in this step, n: those of
 * all P ranks. In each case uneven parts are weighted w_r = m/n. */
enum ddp_grad_scale {
    DDP_SCALE_SUM,    /* 1/n: the sum over ranks is the mean over the global batch */
    DDP_SCALE_MEAN,   /* P/n: the mean over ranks is; a rank's own is its plain mean where parts are
                         even, as thresholds and 16-bit ranges of SINGA are meant */
    DDP_SCALE_PRIVATE /* 1/m: the rank learns from its own images; weights come when parameters are
                         averaged */
};

/* offsets/counts [param_count]: the tensors in the flat arrays, in layer order. */
struct ddp_sync_setup {
    struct ddp_comm *comm;
    float *params, *grads; /* [total] */
    /* NULL: params and grads are the processor's. Else they lie on that device, and what comes
     * before an exchange has been put on the stream; what the strategy does is put there, too, or
     * is done when the call returns. */
    const struct ddp_device *device;
    struct ddp_stream *stream;
    size_t total;
    const size_t *offsets, *counts;
    int param_count;
    size_t
        bucket_bytes; /* gradient strategies: most in a bucket (but for larger tensors), 0: all */
    bool overlap;     /* gradient strategies: exchange while backward goes on; on a device, beside
                         what is put on the stream after on_grad_ready */
    enum ddp_feedback feedback;
    const struct ddp_aggregate *aggregate; /* dense; NULL: all-reduce */
    const char *algorithm;                 /* of all-reduces; NULL: auto */
    const char *argument;                  /* text after ':' in the strategy's name, "" without */
};

/* Since the start of the run, of this rank. wire_bytes: bytes others took from it, counted or
 * (wire_counted false) modelled. exchange: in collectives, encoding and decoding included; exposed:
 * the part the main thread waited. */
struct ddp_sync_counters {
    double wire_bytes;
    bool wire_counted;
    int64_t exchange_ns, exposed_ns;
    int64_t encode_ns, decode_ns;     /* within exchange_ns; 0 without a compressor */
    double values_sent, values_total; /* achieved density = sent / total; total 0: not sparse */
    int64_t overflow_count;           /* -1: not a 16-bit exchange */
};

struct ddp_sync_class {
    const char *name, *summary;
    const char *argument_help; /* "D", "K", "[CLIP]" (may be left out), NULL: takes none */
    bool replicas_equal;       /* all ranks hold identical parameters after every step */
    bool buckets;              /* exchanges gradients: bucket_bytes and overlap have a meaning */
    bool aggregates;           /* aggregate has a meaning */
    bool compresses;           /* feedback has a meaning */
    bool on_device;            /* works where setup->device is not NULL */
    enum ddp_grad_scale scale;
    /* The argument's range, DDP_EUSAGE; also whether setup's words make sense. NULL: takes none. */
    int (*check)(const char *argument, struct ddp_err *err);
    /* Registered and private bytes that create will ask for, on `ranks` ranks; comm is not read.
     * NULL: none worth counting. */
    void (*memory)(const struct ddp_sync_setup *setup, int ranks, uint64_t *registered,
                   uint64_t *private_bytes);
    /* Collective. On failure all that was made is gone; other ranks may have succeeded. */
    int (*create)(const struct ddp_sync_setup *setup, struct ddp_sync **out, struct ddp_err *err);
    void (*destroy)(struct ddp_sync *s);
    /* images: of this rank in the step that begins; global: of all ranks, > 0. NULL: no matter. */
    void (*begin_step)(struct ddp_sync *s, size_t images, size_t global);
    int (*on_grad_ready)(struct ddp_sync *s, int param, struct ddp_err *err);
    int (*finish_backward)(struct ddp_sync *s, struct ddp_err *err);
    int (*end_step)(struct ddp_sync *s, struct ddp_err *err);
    /* NULL: nothing to do. */
    int (*end_epoch)(struct ddp_sync *s, struct ddp_err *err);
    void (*counters)(const struct ddp_sync *s, struct ddp_sync_counters *out);
    /* "on", "off"; "" without a compressor. */
    const char *(*feedback)(const struct ddp_sync *s);
    /* For tests and --check-replicas: the elements [*first, *first + *n) of params that all ranks
     * hold alike after this step; NULL: all of them, if replicas_equal, else none. */
    void (*equal_part)(const struct ddp_sync *s, size_t *first, size_t *n);
};

const struct ddp_sync_class *const *ddp_syncs(void); /* NULL-terminated */
/* Splits "topk:0.01" into class and argument, and checks the argument. DDP_EUSAGE lists the legal
 * names. */
int ddp_sync_find(const char *text, const struct ddp_sync_class **cls, const char **argument,
                  struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
