/* Runs and times one compressed exchange, with random input or with input whose result is known. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/compressed_point_impl.h"
#include "bench/slowest.h"

#define WARMUP 2 /* untimed rounds of ddp_bench_exchange_median */

int ddp_compressed_bench_create(const struct ddp_compressed_bench_setup *setup,
                                struct ddp_compressed_bench **out, struct ddp_err *err)
{
    const struct ddp_bench_options *o = setup->options;
    const size_t size = (size_t)setup->comm->size, iters = (size_t)o->iters;
    struct ddp_compressed_bench *b = ddp_calloc(1, sizeof *b);
    int rc = 0;
    if (!b)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory to measure compression");
    DDP_TRY(ddp_comm_agree(setup->comm, rc, err));
    b->setup = *setup;
    b->iters = o->iters;
    b->duration = ddp_calloc(DDP_SERIES_COUNT * iters, sizeof *b->duration);
    b->scratch = ddp_calloc(iters, sizeof *b->scratch);
    b->chunk = ddp_calloc(size * DDP_SLOWEST_CHUNK, sizeof *b->chunk);
    b->shared = ddp_calloc(size, sizeof *b->shared);
    if (!b->duration || !b->scratch || !b->chunk || !b->shared)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for the durations of %zu iterations", iters);
    if (rc == 0 && setup->device)
        rc = setup->device->streams->create(&b->stream, err);
    if (rc == 0) {
        /* Write to the pages now, so that no page fault falls into a timed region. */
        memset(b->duration, 0xff, DDP_SERIES_COUNT * iters * sizeof *b->duration);
        rc = ddp_gradient_create(&o->gradient, (uint64_t)o->seed, &b->gradient, err);
    }
    rc = ddp_comm_agree(setup->comm, rc, err);
    if (rc == 0)
        *out = b;
    else
        ddp_compressed_bench_destroy(b);
    return rc;
}

void ddp_compressed_bench_destroy(struct ddp_compressed_bench *b)
{
    if (!b)
        return;
    if (b->stream)
        b->setup.device->streams->destroy(b->stream);
    ddp_gradient_destroy(b->gradient);
    free(b->duration);
    free(b->scratch);
    free(b->chunk);
    free(b->shared);
    free(b);
}

/* Creates the exchange that on_host describes, but on the device. */
static int open_on_device(struct ddp_compressed_bench *b,
                          const struct ddp_compressed_setup *on_host,
                          struct ddp_device_exchange **out, struct ddp_err *err)
{
    const struct ddp_device_exchange_setup setup = {
        .comm = on_host->comm,
        .device = b->setup.device,
        .stream = b->stream,
        .data = on_host->data,
        .n = on_host->n,
        .spec = on_host->spec,
        .feedback = on_host->feedback,
        .average = on_host->average,
        .timed = true,
        .algorithm = on_host->algorithm,
    };
    return ddp_device_exchange_create(&setup, out, err);
}

int ddp_bench_exchange_open(struct ddp_compressed_bench *b,
                            const struct ddp_bench_exchange_setup *how,
                            struct ddp_bench_exchange *out, struct ddp_err *err)
{
    struct ddp_compressed_setup setup = {
        .comm = b->setup.group,
        .data = b->setup.data + how->first,
        .n = how->n,
        .feedback = how->feedback,
        .average = how->op == DDP_AVG,
        .algorithm = strcmp(how->algorithm, "auto") == 0 ? NULL : how->algorithm,
    };
    *out = (struct ddp_bench_exchange){.first = how->first, .n = how->n};
    if (how->n == 0)
        return 0;
    int rc = ddp_compress_parse(how->method, &setup.spec, err);
    DDP_TRY(ddp_comm_agree(b->setup.comm, rc, err));
    rc = b->setup.device ? open_on_device(b, &setup, &out->device_x, err)
                         : ddp_compressed_create(&setup, &out->x, err);
    DDP_TRY(ddp_comm_agree(b->setup.comm, rc, err));
    if (!how->verify)
        return 0;
    rc = ddp_verify_exchange_create(&setup, b->setup.device != NULL, b->gradient, how->first,
                                    &out->verify, err);
    return ddp_comm_agree(b->setup.comm, rc, err);
}

void ddp_bench_exchange_close(struct ddp_bench_exchange *e)
{
    ddp_verify_exchange_destroy(e->verify);
    ddp_compressed_destroy(e->x);
    ddp_device_exchange_destroy(e->device_x);
    e->x = NULL;
    e->device_x = NULL;
    e->verify = NULL;
}

void ddp_bench_exchange_counters(const struct ddp_bench_exchange *e,
                                 struct ddp_compressed_counters *out)
{
    memset(out, 0, sizeof *out);
    if (e->x)
        ddp_compressed_counters(e->x, out);
    else if (e->device_x)
        ddp_device_exchange_counters(e->device_x, out);
}

const char *ddp_bench_exchange_algorithm(const struct ddp_bench_exchange *e)
{
    return e->x          ? ddp_compressed_algorithm(e->x)
           : e->device_x ? ddp_device_exchange_algorithm(e->device_x)
                         : NULL;
}

/* Returns the exchange's elements in host memory, where the gradient is drawn and the result is
 * read. */
static float *host_data(const struct ddp_compressed_bench *b, const struct ddp_bench_exchange *e)
{
    return (b->setup.device ? b->setup.image : b->setup.data) + e->first;
}

static void copy_to_device(const struct ddp_compressed_bench *b, const struct ddp_bench_exchange *e)
{
    if (b->setup.device && e->n > 0)
        b->setup.device->copy(b->setup.data + e->first, host_data(b, e), e->n * sizeof(float));
}

const float *ddp_bench_exchange_result(struct ddp_compressed_bench *b,
                                       const struct ddp_bench_exchange *e)
{
    if (b->setup.device && e->n > 0)
        b->setup.device->copy(host_data(b, e), b->setup.data + e->first, e->n * sizeof(float));
    return host_data(b, e);
}

/* Returns the residual in host memory, or NULL if there is none. */
static const float *residual_of(struct ddp_compressed_bench *b, const struct ddp_bench_exchange *e)
{
    if (e->x)
        return ddp_compressed_residual(e->x);
    const float *residual = ddp_device_exchange_residual(e->device_x);
    if (residual == NULL)
        return NULL;
    b->setup.device->copy(b->setup.image_residual, residual, e->n * sizeof(float));
    return b->setup.image_residual;
}

/* Waits until all ranks may start: as --start requires in the timed loop, with a barrier
 * elsewhere. */
static int start(struct ddp_compressed_bench *b, struct ddp_err *err)
{
    if (b->timed)
        return ddp_iterations_start(b->timed, err);
    return b->setup.comm->size > 1 ? ddp_comm_barrier(b->setup.comm, err) : 0;
}

/* Runs and times one exchange. Its input has already been written. */
static int exchange(struct ddp_compressed_bench *b, struct ddp_bench_exchange *e, int64_t *ns,
                    struct ddp_err *err)
{
    struct ddp_compressed_counters before, after;
    ddp_bench_exchange_counters(e, &before);
    DDP_TRY(start(b, err));
    const int64_t begin = ddp_now_ns();
    int rc = e->x          ? ddp_compressed_run(e->x, err)
             : e->device_x ? ddp_device_exchange_run(e->device_x, err)
                           : 0;
    const int64_t end = b->timed ? ddp_iterations_end(b->timed, begin) : ddp_now_ns();
    if (b->timed && rc == 0)
        b->at = ddp_iterations_keep(b->timed, begin, end);
    if (rc == 0)
        rc = ddp_iterations_join(b->setup.comm, e->n * sizeof(float), err);
    ddp_bench_exchange_counters(e, &after);
    ns[DDP_SERIES_ALL] = end - begin;
    ns[DDP_SERIES_PHASES] = after.encode_ns - before.encode_ns;
    ns[DDP_SERIES_PHASES + 1] = after.exchange_ns - before.exchange_ns;
    ns[DDP_SERIES_PHASES + 2] = after.decode_ns - before.decode_ns;
    return rc;
}

int ddp_bench_exchange_once(struct ddp_compressed_bench *b, struct ddp_bench_exchange *e,
                            int64_t *ns, struct ddp_err *err)
{
    const struct ddp_comm *group = b->setup.group;
    DDP_TRY(ddp_gradient_draw(b->gradient, group->rank, group->size, b->step++, e->first,
                              host_data(b, e), e->n, err));
    copy_to_device(b, e);
    return exchange(b, e, ns, err);
}

int ddp_bench_exchange_verified(struct ddp_compressed_bench *b, struct ddp_bench_exchange *e,
                                int64_t *ns, struct ddp_err *err)
{
    struct ddp_compressed_counters before, after;
    int rc = e->verify ? ddp_verify_exchange_input(e->verify, b->step++, host_data(b, e), err) : 0;
    copy_to_device(b, e);
    ddp_bench_exchange_counters(e, &before);
    DDP_TRY(ddp_comm_agree(b->setup.comm, rc, err));
    DDP_TRY(exchange(b, e, ns, err));
    ddp_bench_exchange_counters(e, &after);
    if (e->verify)
        rc =
            ddp_verify_exchange_check(e->verify, ddp_bench_exchange_result(b, e), residual_of(b, e),
                                      after.values_sent - before.values_sent, err);
    return ddp_comm_agree(b->setup.comm, rc, err);
}

int ddp_bench_summarize(struct ddp_compressed_bench *b, int series, int64_t iters,
                        struct ddp_summary *out, struct ddp_err *err)
{
    struct ddp_comm *comm = b->setup.comm;
    DDP_TRY(
        ddp_slowest(comm, b->duration + series * b->iters, iters, b->chunk, b->scratch, NULL, err));
    int rc =
        ddp_summarize(b->scratch, (size_t)iters, out) == 0
            ? 0
            : ddp_fail(err, DDP_ENOMEM, "no memory to summarise %lld iterations", (long long)iters);
    return ddp_comm_agree(comm, rc, err);
}

int ddp_bench_exchange_median(struct ddp_compressed_bench *b, struct ddp_bench_exchange *e, int n,
                              int64_t iters, double *median, struct ddp_err *err)
{
    int64_t ns[DDP_SERIES_COUNT];
    iters = DDP_MIN(iters, b->iters);
    for (int64_t i = -WARMUP; i < iters; i++) {
        for (int j = 0; j < n; j++) {
            DDP_TRY(ddp_bench_exchange_once(b, &e[j], ns, err));
            b->duration[j * b->iters + DDP_MAX(i, 0)] = ns[DDP_SERIES_ALL];
        }
    }
    for (int j = 0; j < n; j++) {
        struct ddp_summary summary;
        DDP_TRY(ddp_bench_summarize(b, j, iters, &summary, err));
        median[j] = summary.median;
    }
    return 0;
}
