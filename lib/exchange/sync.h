/* Sync strategies: how the ranks of a training run exchange gradients or parameters. To add a
 * strategy, write one file and add one line to sync_list.h. Every lossy compressor (compress.h) is
 * a strategy too.
 *
 * The trainer owns the flat arrays of parameters and gradients. The arrays lie in registered memory
 * if the backend has such memory. In each step the trainer makes these calls:
 *
 *   begin_step
 *   on_grad_ready     for each parameter, last layer first
 *   finish_backward   then grads holds the gradients for the optimiser, which runs next. If the
 *                     strategy has `shard`, grads is valid only in the shard of this rank, and the
 *                     optimiser updates only this shard
 *   end_step          parameter strategies average parameters; zero1 gathers the shards
 *
 * The trainer calls end_epoch before an evaluation and at the end of the run. On a device, the
 * trainer calls settle before it waits for its stream. Strategies communicate only through lib/coll
 * and lib/exchange. No result depends on a measured time. The same seed therefore gives the same
 * bits, with and without overlap, under the conditions that train/trainer.h names.
 *
 * `dense` and the compressors are gradient strategies. They exchange gradients in buckets
 * (bucket.h). All ranks then take the same step, so their parameters stay bit-identical. `zero1`
 * is a gradient strategy, too, but each rank updates only its shard of the parameters. `partial`,
 * `local` and `diloco` are parameter strategies: each rank takes its own steps, and the ranks
 * average parameters. The strategy `none` exchanges nothing. */
#ifndef DDP_EXCHANGE_SYNC_H
#define DDP_EXCHANGE_SYNC_H

#include "coll/coll.h"
#include "coll/pattern.h"
#include "compress/compress.h"
#include "exchange/aggregate.h"
#include "exchange/bucket.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_sync;

struct ddp_sync_class;

/* A strategy with its argument, parsed from text such as "topk:0.01". */
struct ddp_sync_spec {
    const struct ddp_sync_class *cls;
    const char *text;                  /* as the user typed it; borrowed */
    struct ddp_compress_spec compress; /* only if cls->compresses */
    int64_t number;                    /* only if cls->number_max > 0 */
};

/* Factor by which each rank multiplies the gradient of the sum of its losses. m: images of this
 * rank in the step. n: images of all P ranks in the step. */
enum ddp_grad_scale {
    DDP_SCALE_SUM, /* 1/n. The sum over ranks is the mean over the global batch. */
    /* P/n. The average over ranks is the mean over the global batch. If m is equal on all ranks,
     * each rank's gradient is the mean over its own images. Thresholds and clips that were
     * chosen for Apache SINGA assume this scale. */
    DDP_SCALE_MEAN,
    /* 1/m. The rank learns from its own images only. An average of parameters weights each rank
     * by its number of images. */
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
    /* Columns of each tensor as a matrix, [param_count]. 0: a vector. NULL: all are vectors. */
    const size_t *cols;
    /* Gradient strategies: largest size of a bucket. A larger tensor gets a bucket of its own.
     * 0: a single bucket. */
    size_t bucket_bytes;
    /* Gradient strategies: exchange during the backward pass. On a device the exchange overlaps
     * with the work that is put on the stream after on_grad_ready. */
    bool overlap;
    enum ddp_feedback feedback;
    /* Strategy dense: which ranks compute the sums (aggregate.h). NULL: all-reduce. */
    const struct ddp_aggregate *aggregate;
    const char *algorithm;             /* As in struct ddp_aggregate_setup. NULL: auto. */
    struct ddp_compress_spec compress; /* See struct ddp_sync_spec. */
    int64_t number;                    /* See struct ddp_sync_spec. */
    uint64_t seed;                     /* Seed of stochastic rounding. */
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
    int64_t overflow_count; /* -1 unless the exchange is 16-bit or quantised. */
};

struct ddp_sync_class {
    /* As in struct ddp_named. NULL for the class of all compressors, which have names of their own.
     */
    const char *name, *summary, *argument_help;
    int64_t number_max;  /* The argument is a number in [1, number_max]. 0: no number. */
    bool replicas_equal; /* All ranks hold identical parameters after every step. */
    bool buckets;        /* Exchanges gradients; uses bucket_bytes and overlap. */
    bool aggregates;     /* Uses `aggregate`. */
    bool compresses;     /* Uses `compress` and `feedback`. */
    enum ddp_grad_scale scale;
    /* Estimates the registered and private bytes that create will allocate per rank, on `ranks`
     * ranks. Does not read setup->comm. NULL: negligible. */
    void (*memory)(const struct ddp_sync_setup *setup, int ranks, uint64_t *registered,
                   uint64_t *private_bytes);
    /* Computes the shard of a rank: the parts of params that the optimiser of this rank updates.
     * The optimiser has state for these parts only. Returns the number of elements of the shard.
     * Stores the number of parts in *count, and the parts in parts [*count], in any order. parts
     * may be NULL. Does not read setup->comm. NULL: the shard of each rank is the whole array. */
    size_t (*shard)(const struct ddp_sync_setup *setup, int ranks, int rank,
                    struct ddp_range *parts, int *count);
    /* Collective. On failure, create frees everything that this rank has created. Other ranks may
     * have succeeded. */
    int (*create)(const struct ddp_sync_setup *setup, struct ddp_sync **out, struct ddp_err *err);
    void (*destroy)(struct ddp_sync *s);
    /* images: images of this rank in the coming step. global: images of all ranks, > 0. begin_step
     * is NULL if the strategy does not need these numbers. */
    void (*begin_step)(struct ddp_sync *s, size_t images, size_t global);
    /* Each of the next four members is NULL if the strategy has nothing to do in this call. */
    int (*on_grad_ready)(struct ddp_sync *s, int param, struct ddp_err *err);
    int (*finish_backward)(struct ddp_sync *s, struct ddp_err *err);
    int (*end_step)(struct ddp_sync *s, struct ddp_err *err);
    int (*end_epoch)(struct ddp_sync *s, struct ddp_err *err);
    /* Waits until no exchange of this strategy is on a stream. Fails at the deadline of the
     * communicator. The trainer calls settle before it waits for its own stream or reads the
     * counters. NULL: no exchange is on a stream between the calls. */
    int (*settle)(struct ddp_sync *s, struct ddp_err *err);
    void (*counters)(const struct ddp_sync *s, struct ddp_sync_counters *out);
    /* Sets *begin_ns and *end_ns to the times at which the exchange of the i-th bucket of the last
     * step began and ended on this rank. Returns false if these times are unknown. NULL: there are
     * no buckets. */
    bool (*exchanged)(const struct ddp_sync *s, int i, int64_t *begin_ns, int64_t *end_ns);
    /* Returns "on" or "off". NULL: the strategy has no compressor. */
    const char *(*feedback)(const struct ddp_sync *s);
    /* For tests and --check-replicas: returns the range [*first, *first + *n) of params that is
     * identical on all ranks after this step. NULL: the whole array if replicas_equal, else
     * nothing. */
    void (*equal_part)(const struct ddp_sync *s, size_t *first, size_t *n);
};

#define DDP_SYNC(symbol) extern const struct ddp_sync_class ddp_sync_##symbol;
#include "exchange/sync_list.h"
#undef DDP_SYNC

/* Stores the i-th strategy in *out. Returns false past the end. */
bool ddp_sync_at(int i, struct ddp_named *out);
/* Parses a text such as "topk:0.01". The text must outlive *out. Returns DDP_EUSAGE with a message
 * if the text is illegal. */
int ddp_sync_parse(const char *text, struct ddp_sync_spec *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the factor for a step with `images` images of this rank and `global` images of all ranks,
 * as cls->scale (enum ddp_grad_scale) defines it. */
double ddp_sync_scale(const struct ddp_sync_class *cls, int ranks, size_t images, size_t global);
/* Stores the buckets of a gradient strategy in buckets [param_count], in the order in which they
 * fill. Returns their number. */
int ddp_sync_buckets(const struct ddp_sync_setup *setup, struct ddp_bucket *buckets);
/* Computes the range [*first, *first + *n) of chunk c when a parameter strategy cuts `total`
 * elements into `chunks` chunks at cache-line boundaries. */
void ddp_sync_chunk(size_t total, int chunks, int c, size_t *first, size_t *n);

#ifdef __cplusplus
}
#endif
#endif
