/* The gradient strategies: `dense`, and one for each lossy compressor.
 *
 * dense: each rank multiplies its gradients by 1/(number of images of all ranks). The strategy sums
 * the scaled gradients over the ranks in buckets. --aggregate selects where each bucket is summed
 * (aggregate.h).
 *
 * Compressors: each bucket is one ddp_compressed (compressed.h). The option --feedback switches
 * error feedback on or off. The default of the option depends on the compressor. The gradients are
 * scaled by DDP_SCALE_MEAN (sync.h), and the exchange averages them. If all ranks have equally many
 * images, a threshold or a clip is therefore compared with the mean gradient over a rank's own
 * images, as in Apache SINGA. 16-bit and quantised values are divided before the sum. topk and
 * oktopk select within a bucket. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "exchange/compressed.h"
#include "exchange/sync.h"

struct ddp_sync {
    const struct ddp_sync_setup *setup; /* valid during create only */
    struct ddp_compress_spec spec;      /* compressors only */
    bool feedback;
    const struct ddp_aggregate *how; /* dense only */
    struct ddp_host_groups hosts;    /* only if how->needs_hosts */
    bool ordered;            /* the exchanges are ordered by streams and events (bucket.h) */
    struct ddp_async *async; /* NULL without overlap, and if `ordered` */
    struct ddp_buckets *buckets;
};

static struct ddp_bucket_layout layout_of(const struct ddp_sync_setup *setup)
{
    const size_t bytes = setup->bucket_bytes;
    return (struct ddp_bucket_layout){
        .counts = setup->counts,
        .n = setup->param_count,
        .most = bytes > 0 ? DDP_MAX(bytes / sizeof(float), (size_t)1) : 0,
    };
}

int ddp_sync_buckets(const struct ddp_sync_setup *setup, struct ddp_bucket *buckets)
{
    const struct ddp_bucket_layout layout = layout_of(setup);
    return ddp_buckets_cut(&layout, buckets);
}

static void destroy(struct ddp_sync *s)
{
    if (s == NULL)
        return;
    ddp_buckets_destroy(s->buckets);
    ddp_host_groups_close(&s->hosts);
    ddp_async_destroy(s->async);
    free(s);
}

/* Returns whether the exchange of a bucket can be put on a stream without a wait. This is not
 * possible for sparse lists, because the host must wait for their lengths. It is not possible for
 * groups of ranks per host either, because they have streams of their own. */
static bool puts_only(const struct ddp_sync *s)
{
    return s->how != NULL ? !s->how->needs_hosts : s->spec.compressor->combine == DDP_COMBINE_SUM;
}

/* Copies *like into a new struct ddp_sync and opens its buckets. */
static int create(const struct ddp_sync_setup *setup, const struct ddp_bucket_method *method,
                  const struct ddp_sync *like, struct ddp_sync **out, struct ddp_err *err)
{
    struct ddp_comm *comm = setup->comm;
    struct ddp_sync *s;
    int rc;
    DDP_TRY(DDP_NEW(&s, 1, err));
    *s = *like;
    s->setup = setup;
    s->ordered =
        puts_only(s) && setup->device != NULL && comm->size > 1 && ddp_comm_stream(comm) != NULL;
    if (setup->overlap && comm->size > 1 && !s->ordered)
        DDP_TRY_GOTO(ddp_async_create(comm, &s->async, err), err_sync);
    if (s->how != NULL && s->how->needs_hosts)
        DDP_TRY_GOTO(ddp_host_groups_open(s->async != NULL ? ddp_async_comm(s->async) : comm,
                                          &s->hosts, err),
                     err_sync);
    const struct ddp_buckets_setup buckets = {
        .comm = comm,
        .async = s->async,
        .device = comm->size > 1 ? setup->device : NULL, /* A single rank exchanges nothing. */
        .stream = setup->stream,
        .ordered = s->ordered,
        .layout = layout_of(setup),
        .dtype = DDP_F32,
        .method = method,
        .arg = s,
    };
    DDP_TRY_GOTO(ddp_buckets_create(&buckets, &s->buckets, err), err_sync);
    *out = s;
    return 0;

err_sync:
    destroy(s);
    return rc;
}

static int on_grad_ready(struct ddp_sync *s, int param, struct ddp_err *err)
{
    return ddp_buckets_ready(s->buckets, param, err);
}

static int finish_backward(struct ddp_sync *s, struct ddp_err *err)
{
    return ddp_buckets_finish(s->buckets, err);
}

static int settle(struct ddp_sync *s, struct ddp_err *err)
{
    return ddp_buckets_settle(s->buckets, err);
}

static bool exchanged(const struct ddp_sync *s, int i, int64_t *begin_ns, int64_t *end_ns)
{
    return ddp_buckets_exchanged(s->buckets, i, begin_ns, end_ns);
}

/* Sets *out to the times of all buckets. The caller then adds the counters of each bucket. */
static void start_counters(const struct ddp_sync *s, struct ddp_sync_counters *out)
{
    *out = (struct ddp_sync_counters){.wire_counted = true, .overflow_count = -1};
    ddp_buckets_times(s->buckets, &out->exchange_ns, &out->exposed_ns);
}

static int open_dense(void *arg, struct ddp_comm *comm, struct ddp_stream *stream,
                      const struct ddp_bucket *bucket, void **state, struct ddp_err *err)
{
    const struct ddp_sync *s = arg;
    const struct ddp_sync_setup *setup = s->setup;
    const size_t tensors = (size_t)bucket->tensors;
    struct ddp_aggregation *aggregation = NULL;
    size_t *offsets;
    (void)stream;
    DDP_TRY(DDP_NEW(&offsets, tensors, err));
    for (size_t i = 0; i < tensors; i++)
        offsets[i] = setup->offsets[(size_t)bucket->first + i] - bucket->offset;
    const struct ddp_aggregate_setup inner = {.comm = comm,
                                              .data = setup->grads + bucket->offset,
                                              .n = bucket->count,
                                              .offsets = offsets,
                                              .counts = setup->counts + bucket->first,
                                              .key_count = bucket->tensors,
                                              .hosts = &s->hosts,
                                              .algorithm = setup->algorithm};
    const int rc = ddp_aggregation_create(s->how, &inner, &aggregation, err);
    free(offsets);
    *state = aggregation;
    return rc;
}

static int run_dense(void *state, struct ddp_err *err)
{
    return ddp_aggregation_run(state, err);
}

static void close_dense(void *state)
{
    ddp_aggregation_destroy(state);
}

static int create_dense(const struct ddp_sync_setup *setup, struct ddp_sync **out,
                        struct ddp_err *err)
{
    static const struct ddp_bucket_method method = {
        .open = open_dense, .run = run_dense, .close = close_dense};
    const struct ddp_sync like = {.how = setup->aggregate != NULL ? setup->aggregate
                                                                  : ddp_aggregates()[0]};
    return create(setup, &method, &like, out, err);
}

static void count_dense(const struct ddp_sync *s, struct ddp_sync_counters *out)
{
    start_counters(s, out);
    for (int i = 0; i < ddp_buckets_count(s->buckets); i++) {
        bool counted;
        out->wire_bytes += ddp_aggregation_wire_bytes(ddp_buckets_state(s->buckets, i), &counted);
        out->wire_counted &= counted;
    }
}

/* Stores the tensors of a bucket in tensors [bucket->tensors]. */
static void tensors_of(const struct ddp_sync_setup *setup, const struct ddp_bucket *bucket,
                       struct ddp_tensor *tensors)
{
    for (int i = 0; i < bucket->tensors; i++) {
        const int param = bucket->first + i;
        tensors[i] =
            (struct ddp_tensor){setup->counts[param], setup->cols != NULL ? setup->cols[param] : 0};
    }
}

static int open_compressed(void *arg, struct ddp_comm *comm, struct ddp_stream *stream,
                           const struct ddp_bucket *bucket, void **state, struct ddp_err *err)
{
    const struct ddp_sync *s = arg;
    struct ddp_compressed *x = NULL;
    struct ddp_tensor *tensors;
    DDP_TRY(DDP_NEW(&tensors, (size_t)bucket->tensors, err));
    tensors_of(s->setup, bucket, tensors);
    const struct ddp_compressed_setup inner = {.comm = comm,
                                               .device = s->setup->device,
                                               .stream = stream,
                                               .data = s->setup->grads + bucket->offset,
                                               .n = bucket->count,
                                               .tensors = {tensors, bucket->tensors},
                                               .spec = s->spec,
                                               .feedback = s->feedback,
                                               .average = true,
                                               .algorithm = s->setup->algorithm,
                                               .seed = ddp_mix64(s->setup->seed + bucket->offset)};
    const int rc = ddp_compressed_create(&inner, &x, err);
    free(tensors);
    *state = x;
    return rc;
}

static int run_compressed(void *state, struct ddp_err *err)
{
    return ddp_compressed_run(state, err);
}

static void close_compressed(void *state)
{
    ddp_compressed_destroy(state);
}

static int create_compressed(const struct ddp_sync_setup *setup, struct ddp_sync **out,
                             struct ddp_err *err)
{
    static const struct ddp_bucket_method method = {
        .open = open_compressed, .run = run_compressed, .close = close_compressed};
    const struct ddp_sync like = {
        .spec = setup->compress,
        .feedback = ddp_compress_keeps(&setup->compress, setup->feedback),
    };
    return create(setup, &method, &like, out, err);
}

static void count_compressed(const struct ddp_sync *s, struct ddp_sync_counters *out)
{
    start_counters(s, out);
    for (int i = 0; i < ddp_buckets_count(s->buckets); i++) {
        struct ddp_compressed_counters c;
        ddp_compressed_counters(ddp_buckets_state(s->buckets, i), &c);
        out->wire_bytes += c.wire_bytes;
        out->wire_counted &= c.wire_counted;
        out->encode_ns += c.encode_ns;
        out->decode_ns += c.decode_ns;
        if (s->spec.compressor->combine == DDP_COMBINE_GATHER) {
            out->values_sent += c.values_sent;
            out->values_total += c.values_total;
        } else if (s->spec.compressor->combine != DDP_COMBINE_ROUNDS) {
            out->overflow_count = DDP_MAX(out->overflow_count, 0) + (int64_t)c.overflow_count;
        }
    }
}

static const char *feedback(const struct ddp_sync *s)
{
    return s->feedback ? "on" : "off";
}

static void memory(const struct ddp_sync_setup *setup, int ranks, uint64_t *registered,
                   uint64_t *private_bytes)
{
    struct ddp_bucket *buckets = ddp_calloc((size_t)setup->param_count, sizeof *buckets);
    struct ddp_tensor *tensors = ddp_calloc((size_t)setup->param_count, sizeof *tensors);
    const int count = buckets != NULL && tensors != NULL ? ddp_sync_buckets(setup, buckets) : 0;
    struct ddp_compressed_setup inner = {.device = setup->device,
                                         .spec = setup->compress,
                                         .feedback =
                                             ddp_compress_keeps(&setup->compress, setup->feedback)};
    *registered = *private_bytes = 0;
    for (int i = 0; i < count; i++) {
        uint64_t shared, own;
        tensors_of(setup, &buckets[i], tensors);
        inner.n = buckets[i].count;
        inner.tensors = (struct ddp_tensors){tensors, buckets[i].tensors};
        ddp_compressed_bytes(&inner, ranks, &shared, &own);
        *registered += shared;
        *private_bytes += own;
    }
    free(tensors);
    free(buckets);
}

const struct ddp_sync_class ddp_sync_dense = {
    .name = "dense",
    .summary = "every gradient, averaged over the global batch",
    .replicas_equal = true,
    .buckets = true,
    .aggregates = true,
    .scale = DDP_SCALE_SUM,
    .create = create_dense,
    .destroy = destroy,
    .on_grad_ready = on_grad_ready,
    .finish_backward = finish_backward,
    .settle = settle,
    .counters = count_dense,
    .exchanged = exchanged,
};

const struct ddp_sync_class ddp_sync_compressed = {
    .replicas_equal = true,
    .buckets = true,
    .compresses = true,
    .scale = DDP_SCALE_MEAN,
    .memory = memory,
    .create = create_compressed,
    .destroy = destroy,
    .on_grad_ready = on_grad_ready,
    .finish_backward = finish_backward,
    .settle = settle,
    .counters = count_compressed,
    .exchanged = exchanged,
    .feedback = feedback,
};
