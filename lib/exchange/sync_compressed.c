/* Exchanges gradients with a compressor, in host memory or on a device (sync_compressed.h). */
#include "exchange/sync_compressed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "exchange/compressed.h"
#include "exchange/device_exchange.h"
#include "exchange/grad_buckets.h"

struct ddp_sync {
    struct ddp_compress_spec spec;
    bool feedback;
    struct ddp_grad_buckets *buckets;
};

/* Parses name and argument ("topk" and "0.01") with the compressor's own parser. */
static int parse(const char *name, const char *argument, struct ddp_compress_spec *spec,
                 struct ddp_err *err)
{
    char text[sizeof spec->text];
    const int n =
        snprintf(text, sizeof text, "%s%s%s", name, argument[0] != '\0' ? ":" : "", argument);
    if (n < 0 || (size_t)n >= sizeof text)
        return ddp_fail(err, DDP_EUSAGE, "'%.40s...' is too long", argument);
    return ddp_compress_parse(text, spec, err);
}

static bool wants_feedback(const struct ddp_sync_setup *setup, const struct ddp_compress_spec *spec)
{
    return setup->feedback == DDP_FEEDBACK_AUTO ? spec->compressor->feedback_default
                                                : setup->feedback == DDP_FEEDBACK_ON;
}

int ddp_sync_compressed_check(const char *name, const char *argument, struct ddp_err *err)
{
    struct ddp_compress_spec spec;
    return parse(name, argument, &spec, err);
}

void ddp_sync_compressed_memory(const char *name, const struct ddp_sync_setup *setup, int ranks,
                                uint64_t *registered, uint64_t *private_bytes)
{
    struct ddp_compress_spec spec;
    struct ddp_grad_bucket *parts = ddp_calloc((size_t)setup->param_count, sizeof *parts);
    *registered = *private_bytes = 0;
    if (parts != NULL && parse(name, setup->argument, &spec, NULL) == 0) {
        const int count = ddp_grad_buckets_cut(setup, parts);
        for (int i = 0; i < count; i++) {
            uint64_t shared, own;
            ddp_compressed_bytes(&spec, parts[i].count, ranks, wants_feedback(setup, &spec),
                                 &shared, &own);
            if (setup->device) {
                shared = ddp_device_exchange_bytes(&spec, parts[i].count, ranks,
                                                   wants_feedback(setup, &spec));
                own = 0; /* Uses no private memory of the host. */
            }
            *registered += shared;
            *private_bytes += own;
        }
    }
    free(parts);
}

static int open_bucket(void *arg, const struct ddp_sync_setup *setup, struct ddp_comm *comm,
                       const struct ddp_grad_bucket *bucket, void **state, struct ddp_err *err)
{
    const struct ddp_sync *s = arg;
    struct ddp_compressed *x = NULL;
    const struct ddp_compressed_setup inner = {.comm = comm,
                                               .data = setup->grads + bucket->offset,
                                               .n = bucket->count,
                                               .spec = s->spec,
                                               .feedback = s->feedback,
                                               .average = true,
                                               .algorithm = setup->algorithm};
    DDP_TRY(ddp_compressed_create(&inner, &x, err));
    *state = x;
    return 0;
}

static int run_bucket(void *state, struct ddp_err *err)
{
    return ddp_compressed_run(state, err);
}

static void add_counters(const struct ddp_sync *s, const struct ddp_compressed_counters *c,
                         struct ddp_sync_counters *sum)
{
    sum->wire_bytes += c->wire_bytes;
    sum->wire_counted &= c->wire_counted;
    sum->encode_ns += c->encode_ns;
    sum->decode_ns += c->decode_ns;
    if (s->spec.compressor->combine == DDP_COMBINE_GATHER) {
        sum->values_sent += c->values_sent;
        sum->values_total += c->values_total;
    } else {
        sum->overflow_count = DDP_MAX(sum->overflow_count, 0) + (int64_t)c->overflow_count;
    }
}

static void count_bucket(void *arg, const void *state, struct ddp_sync_counters *sum)
{
    struct ddp_compressed_counters c;
    ddp_compressed_counters(state, &c);
    add_counters(arg, &c, sum);
}

static void close_bucket(void *state)
{
    ddp_compressed_destroy(state);
}

/* The next four functions do the same for buckets in device memory. */
static int open_on_device(void *arg, const struct ddp_sync_setup *setup, struct ddp_comm *comm,
                          const struct ddp_grad_bucket *bucket, void **state, struct ddp_err *err)
{
    const struct ddp_sync *s = arg;
    struct ddp_device_exchange *x = NULL;
    const struct ddp_device_exchange_setup inner = {.comm = comm,
                                                    .device = setup->device,
                                                    .stream = setup->stream,
                                                    .data = setup->grads + bucket->offset,
                                                    .n = bucket->count,
                                                    .spec = s->spec,
                                                    .feedback = s->feedback,
                                                    .average = true,
                                                    .algorithm = setup->algorithm};
    DDP_TRY(ddp_device_exchange_create(&inner, &x, err));
    *state = x;
    return 0;
}

static int run_on_device(void *state, struct ddp_err *err)
{
    return ddp_device_exchange_run(state, err);
}

static void count_on_device(void *arg, const void *state, struct ddp_sync_counters *sum)
{
    struct ddp_compressed_counters c;
    ddp_device_exchange_counters(state, &c);
    add_counters(arg, &c, sum);
}

static void close_on_device(void *state)
{
    ddp_device_exchange_destroy(state);
}

static const struct ddp_bucket_method on_device = {
    .open = open_on_device,
    .run = run_on_device,
    .count = count_on_device,
    .close = close_on_device,
};

static const struct ddp_bucket_method method = {
    .open = open_bucket,
    .run = run_bucket,
    .count = count_bucket,
    .close = close_bucket,
};

int ddp_sync_compressed_create(const char *name, const struct ddp_sync_setup *setup,
                               struct ddp_sync **out, struct ddp_err *err)
{
    struct ddp_sync *s = ddp_calloc(1, sizeof *s);
    if (s == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the sync strategy");
    int rc = parse(name, setup->argument, &s->spec, err);
    s->feedback = rc == 0 && wants_feedback(setup, &s->spec);
    if (rc == 0)
        rc = ddp_grad_buckets_create(setup, setup->device ? &on_device : &method, s, &s->buckets,
                                     err);
    if (rc != 0) {
        free(s);
        return rc;
    }
    *out = s;
    return 0;
}

void ddp_sync_compressed_destroy(struct ddp_sync *s)
{
    if (s == NULL)
        return;
    ddp_grad_buckets_destroy(s->buckets);
    free(s);
}

int ddp_sync_compressed_on_grad_ready(struct ddp_sync *s, int param, struct ddp_err *err)
{
    return ddp_grad_buckets_ready(s->buckets, param, err);
}

int ddp_sync_compressed_finish_backward(struct ddp_sync *s, struct ddp_err *err)
{
    return ddp_grad_buckets_finish(s->buckets, err);
}

int ddp_sync_compressed_end_step(struct ddp_sync *s, struct ddp_err *err)
{
    (void)s;
    (void)err;
    return 0;
}

void ddp_sync_compressed_counters(const struct ddp_sync *s, struct ddp_sync_counters *out)
{
    ddp_grad_buckets_counters(s->buckets, out);
}

const char *ddp_sync_compressed_feedback(const struct ddp_sync *s)
{
    return s->feedback ? "on" : "off";
}
