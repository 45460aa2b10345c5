/* Periodic averaging of parameters: the strategies partial, local and diloco. Between averages each
 * rank takes its own optimiser steps.
 *
 * The parameters are cut into K *chunks*, whose sizes differ by at most one cache line. Every H
 * steps, the ranks average the next chunk in place. The first chunk follows the last chunk.
 * Momentum is not averaged. The weight of a rank in the average is m/n. Here m is the number of
 * images on which this rank has trained since the last average of the chunk, and n is the sum of m
 * over all ranks.
 *
 * partial:K (SINGA's partial synchronisation) averages a chunk after each step. The models of the
 * ranks differ slightly. Each rank evaluates its own model on its part of the images, so the result
 * is an average over the models. Source: Apache SINGA, opt.py,
 * DistOpt.backward_and_partial_update. SINGA cuts its fusion buffer instead of the parameters.
 *
 * local:H (local SGD) averages all parameters every H steps. It also averages before every
 * evaluation (at the end of an epoch and of the run) if the ranks have taken steps since the last
 * average. The evaluated and the final model are therefore identical on all ranks. Source: Stich,
 * Local SGD Converges Fast and Communicates Little (ICLR 2019), algorithm 1.
 *
 * diloco:H averages when local:H does, and then takes an outer step with Nesterov momentum. Let x
 * be the parameters after the last outer step, and d = x - average:
 *
 *   v = OUTER_MOMENTUM * v + d;   x = x - OUTER_LR * (d + OUTER_MOMENTUM * v)
 *
 * All ranks compute the same bits. Source: A. Douillard et al., DiLoCo: Distributed
 * Low-Communication Training of Language Models, 2023, algorithm 1. torchft uses the same OUTER_LR
 * and OUTER_MOMENTUM. */
#include "exchange/sync.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "device/stream_kernels.h"

#define LINE_ELEMENTS (DDP_CACHE_LINE / sizeof(float))

#define OUTER_LR       0.7f
#define OUTER_MOMENTUM 0.9f

/* One chunk of the parameters. */
struct chunk {
    size_t first, n;
    /* The values of the members of struct ddp_sync when the chunk was last averaged. */
    uint64_t images, global;
    struct ddp_aggregation *sum;
};

struct ddp_sync {
    struct ddp_comm *comm;
    const struct ddp_device *device; /* Device that holds params. NULL: host memory. */
    struct ddp_stream *stream;
    float *params;
    struct chunk *chunks; /* [count] */
    /* next: chunk to average next. last: chunk that the last step averaged, or -1. */
    int count, next, last;
    int64_t every, steps;
    /* diloco: x and v of the outer steps (see above), [total]. NULL for the other strategies. The
     * first begin_step sets `outer` to the initial parameters. */
    float *outer, *velocity;
    size_t total;
    /* Images seen so far by this rank and by all ranks. */
    uint64_t images, global;
    int64_t exchange_ns;
};

void ddp_sync_chunk(size_t total, int chunks, int c, size_t *first, size_t *n)
{
    const size_t lines = (total + LINE_ELEMENTS - 1) / LINE_ELEMENTS, k = (size_t)chunks;
    const size_t low = DDP_MIN(total, lines * (size_t)c / k * LINE_ELEMENTS);
    const size_t high = DDP_MIN(total, lines * (size_t)(c + 1) / k * LINE_ELEMENTS);
    *first = low;
    *n = high - low;
}

static void destroy(struct ddp_sync *s)
{
    if (s == NULL)
        return;
    for (int i = 0; i < s->count; i++)
        ddp_aggregation_destroy(s->chunks[i].sum);
    free(s->velocity);
    free(s->outer);
    free(s->chunks);
    free(s);
}

static int create(const struct ddp_sync_setup *setup, int chunks, int64_t every,
                  struct ddp_sync **out, struct ddp_err *err)
{
    struct ddp_sync *s;
    int rc;
    DDP_TRY(DDP_NEW(&s, 1, err));
    DDP_TRY_GOTO(DDP_NEW(&s->chunks, (size_t)chunks, err), err_sync);
    s->comm = setup->comm;
    s->device = setup->device;
    s->stream = setup->stream;
    s->params = setup->params;
    s->total = setup->total;
    s->every = every;
    s->last = -1;
    for (; s->count < chunks; s->count++) {
        struct chunk *c = &s->chunks[s->count];
        ddp_sync_chunk(setup->total, chunks, s->count, &c->first, &c->n);
        const struct ddp_aggregate_setup sum = {.comm = setup->comm,
                                                .data = setup->params + c->first,
                                                .n = c->n,
                                                .algorithm = setup->algorithm};
        DDP_TRY_GOTO(ddp_aggregation_create(ddp_aggregates()[0], &sum, &c->sum, err), err_sync);
    }
    *out = s;
    return 0;

err_sync:
    destroy(s);
    return rc;
}

static void begin_step(struct ddp_sync *s, size_t images, size_t global)
{
    if (s->outer != NULL && s->global == 0)
        memcpy(s->outer, s->params, s->total * sizeof *s->outer);
    s->images += images;
    s->global += global;
}

/* Takes an outer step of diloco. params holds the average. */
static void outer_step(struct ddp_sync *s)
{
    for (size_t i = 0; i < s->total; i++) {
        const float gradient = s->outer[i] - s->params[i];
        s->velocity[i] = OUTER_MOMENTUM * s->velocity[i] + gradient;
        s->outer[i] -= OUTER_LR * (gradient + OUTER_MOMENTUM * s->velocity[i]);
        s->params[i] = s->outer[i];
    }
}

/* Averages one chunk: scales it by this rank's weight, then sums it over the ranks. With diloco,
 * also takes an outer step. */
static int average(struct ddp_sync *s, struct chunk *c, struct ddp_err *err)
{
    const int64_t begin = ddp_now_ns();
    float *at = s->params + c->first;
    const double weight = (double)(s->images - c->images) / (double)(s->global - c->global);
    if (s->device != NULL) {
        s->device->stream_kernels->scale(s->stream, at, c->n, weight);
        DDP_TRY(s->device->streams->wait(s->stream, err));
    }
    for (size_t i = 0; i < c->n && s->device == NULL; i++)
        at[i] = (float)(at[i] * weight);
    DDP_TRY(ddp_aggregation_run(c->sum, err));
    if (s->outer != NULL)
        outer_step(s);
    c->images = s->images;
    c->global = s->global;
    s->exchange_ns += ddp_now_ns() - begin;
    return 0;
}

static int end_step(struct ddp_sync *s, struct ddp_err *err)
{
    s->last = -1;
    if (++s->steps % s->every != 0)
        return 0;
    s->last = s->next;
    s->next = (s->next + 1) % s->count;
    return average(s, &s->chunks[s->last], err);
}

/* Averages every chunk that was trained since it was last averaged. */
static int average_all(struct ddp_sync *s, struct ddp_err *err)
{
    for (int i = 0; i < s->count; i++)
        if (s->chunks[i].global != s->global)
            DDP_TRY(average(s, &s->chunks[i], err));
    return 0;
}

static void counters(const struct ddp_sync *s, struct ddp_sync_counters *out)
{
    *out = (struct ddp_sync_counters){.wire_counted = true,
                                      .exchange_ns = s->exchange_ns,
                                      /* The main thread waits during averages. */
                                      .exposed_ns = s->exchange_ns,
                                      .overflow_count = -1};
    for (int i = 0; i < s->count; i++) {
        bool counted;
        out->wire_bytes += ddp_aggregation_wire_bytes(s->chunks[i].sum, &counted);
        out->wire_counted &= counted;
    }
}

static void equal_part(const struct ddp_sync *s, size_t *first, size_t *n)
{
    *first = s->last >= 0 ? s->chunks[s->last].first : 0;
    *n = s->last >= 0 ? s->chunks[s->last].n : 0;
}

static int create_partial(const struct ddp_sync_setup *setup, struct ddp_sync **out,
                          struct ddp_err *err)
{
    return create(setup, (int)setup->number, 1, out, err);
}

static int create_local(const struct ddp_sync_setup *setup, struct ddp_sync **out,
                        struct ddp_err *err)
{
    return create(setup, 1, setup->number, out, err);
}

static int create_diloco(const struct ddp_sync_setup *setup, struct ddp_sync **out,
                         struct ddp_err *err)
{
    int rc;
    if (setup->device != NULL)
        return ddp_fail(err, DDP_EUNAVAIL, "device '%s' does not have the strategy diloco",
                        setup->device->name);
    DDP_TRY(create_local(setup, out, err));
    DDP_TRY_GOTO(DDP_NEW(&(*out)->outer, setup->total, err), err_sync);
    DDP_TRY_GOTO(DDP_NEW(&(*out)->velocity, setup->total, err), err_sync);
    return 0;

err_sync:
    destroy(*out);
    *out = NULL;
    return rc;
}

static void diloco_memory(const struct ddp_sync_setup *setup, int ranks, uint64_t *registered,
                          uint64_t *private_bytes)
{
    (void)ranks;
    *registered = 0;
    *private_bytes = 2 * setup->total * sizeof(float);
}

const struct ddp_sync_class ddp_sync_partial = {
    .name = "partial",
    .summary = "each rank takes its own steps; after each step the next of K chunks of the "
               "parameters is averaged",
    .argument_help = "K",
    .number_max = 4096,
    .scale = DDP_SCALE_PRIVATE,
    .create = create_partial,
    .destroy = destroy,
    .begin_step = begin_step,
    .end_step = end_step,
    .counters = counters,
    .equal_part = equal_part,
};

const struct ddp_sync_class ddp_sync_local = {
    .name = "local",
    .summary = "each rank takes its own steps; all parameters are averaged every H steps and "
               "before evaluation",
    .argument_help = "H",
    .number_max = 1000000000,
    .scale = DDP_SCALE_PRIVATE,
    .create = create_local,
    .destroy = destroy,
    .begin_step = begin_step,
    .end_step = end_step,
    .end_epoch = average_all,
    .counters = counters,
    .equal_part = equal_part,
};

const struct ddp_sync_class ddp_sync_diloco = {
    .name = "diloco",
    .summary = "as local:H, with an outer step of Nesterov momentum after each average (DiLoCo)",
    .argument_help = "H",
    .number_max = 1000000000,
    .scale = DDP_SCALE_PRIVATE,
    .memory = diloco_memory,
    .create = create_diloco,
    .destroy = destroy,
    .begin_step = begin_step,
    .end_step = end_step,
    .end_epoch = average_all,
    .counters = counters,
    .equal_part = equal_part,
};
