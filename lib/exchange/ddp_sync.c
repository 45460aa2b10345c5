/* The sync strategies of ddp.h. Each function checks its arguments and the order of the calls, and
 * then calls one member of struct ddp_sync_class (sync.h). */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/comm.h"
#include "exchange/ddp_impl.h"
#include "exchange/sync.h"

/* A step passes through these phases in turn. */
enum phase { BETWEEN_STEPS, BACKWARD, FINISHED };

struct ddp_strategy {
    struct ddp *world;
    char *text; /* the name; `spec` refers to it */
    struct ddp_sync_spec spec;
    struct ddp_sync_setup setup;
    struct ddp_sync *sync;
    size_t *layout; /* [3 * n]: offsets, counts and columns of the tensors */
    enum phase phase;
    int next_tensor;         /* this tensor and all after it have been reported */
    struct ddp_range *parts; /* [part_count], which the optimiser updates */
    int part_count;
    struct ddp_strategy *next; /* next element of the list ddp.strategies */
};

static int check_options(const char *strategy, const struct ddp_sync_options *o,
                         struct ddp_err *err)
{
    if (strategy == NULL || o == NULL || o->n < 0 || (o->counts == NULL && o->n > 0))
        return ddp_fail(err, DDP_EUSAGE,
                        "the strategy, its options or the counts are NULL, or n is negative");
    size_t total = 0;
    for (int i = 0; i < o->n; i++)
        if (__builtin_add_overflow(total, o->counts[i], &total))
            total = SIZE_MAX;
    if (total == SIZE_MAX)
        return ddp_fail(err, DDP_EUSAGE, "the tensors of a strategy exceed the address space");
    const struct ddp_array arrays[] = {{o->params, total, DDP_F32}, {o->grads, total, DDP_F32}};
    return ddp_check_arrays(arrays, 2, err);
}

/* Copies the options and parses the name. */
static int prepare(struct ddp_strategy *s, const char *strategy, const struct ddp_sync_options *o,
                   struct ddp_err *err)
{
    DDP_TRY(check_options(strategy, o, err));
    const size_t n = (size_t)o->n;
    s->text = strdup(strategy);
    if (s->text == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the strategy '%.60s'", strategy);
    DDP_TRY(ddp_sync_parse(s->text, &s->spec, err));
    DDP_TRY(DDP_NEW(&s->layout, 3 * n, err));
    size_t *offsets = s->layout, *counts = offsets + n, *cols = counts + n, total = 0;
    for (size_t i = 0; i < n; i++) {
        offsets[i] = total;
        counts[i] = o->counts[i];
        cols[i] = o->cols != NULL ? o->cols[i] : 0;
        total += counts[i];
    }
    s->next_tensor = o->n;
    s->setup = (struct ddp_sync_setup){
        .comm = s->world->comm,
        .params = o->params,
        .grads = o->grads,
        .total = total,
        .offsets = offsets,
        .counts = counts,
        .param_count = o->n,
        .cols = cols,
        .bucket_bytes = o->bucket_bytes,
        .overlap = o->overlap,
        .feedback = o->feedback > 0   ? DDP_FEEDBACK_ON
                    : o->feedback < 0 ? DDP_FEEDBACK_OFF
                                      : DDP_FEEDBACK_AUTO,
        .algorithm = o->algorithm,
        .compress = s->spec.compress,
        .number = s->spec.number,
        .seed = o->seed,
    };
    return 0;
}

/* Adds to a digest whether an array lies in registered memory. If all ranks share memory, also adds
 * the offset of the array in the segment of rank 0, because processes may have mapped the segment
 * at different addresses. */
static uint64_t digest_place(struct ddp_comm *comm, uint64_t digest, const float *array,
                             size_t count)
{
    if (count == 0)
        return digest;
    const bool first = ddp_comm_map(comm, comm->rank, array) != NULL;
    const bool last = ddp_comm_map(comm, comm->rank, array + count - 1) != NULL;
    digest = ddp_digest(digest, (uint64_t)first << 1 | (uint64_t)last);
    if (!first || comm->shm == NULL)
        return digest;
    return ddp_digest(digest,
                      (uintptr_t)ddp_comm_map(comm, 0, array) - (uintptr_t)comm->rank_info.segment);
}

static void describe(const struct ddp_strategy *s, struct ddp_note *note)
{
    const struct ddp_sync_setup *u = &s->setup;
    const char *algorithm = u->algorithm != NULL ? u->algorithm : "auto";
    note->call = ddp_digest_text(ddp_digest_text(0, s->text), algorithm);
    note->call = ddp_digest(ddp_digest(note->call, u->bucket_bytes), u->overlap);
    note->call = ddp_digest(ddp_digest(note->call, u->feedback), u->seed);
    for (size_t i = 0; i < 2 * (size_t)u->param_count; i++) /* counts and columns */
        note->call = ddp_digest(note->call, u->counts[i]);
    note->position = digest_place(u->comm, 0, u->params, u->total);
    note->position = digest_place(u->comm, note->position, u->grads, u->total);
}

/* Creates the strategy after all ranks have agreed on the arguments. */
static int open_strategy(struct ddp_strategy *s, struct ddp_err *err)
{
    struct ddp_comm *comm = s->world->comm;
    const struct ddp_sync_class *cls = s->spec.cls;
    int rc = cls->create(&s->setup, &s->sync, err);
    /* DDP_EUSAGE and DDP_EUNAVAIL occur on all ranks. After another error, other ranks may still be
     * inside create, and would wait for this rank without the abort. */
    if (rc != 0 && rc != DDP_EUSAGE && rc != DDP_EUNAVAIL) {
        ddp_comm_abort(comm, rc);
        return rc;
    }
    DDP_TRY(ddp_comm_agree(comm, rc, err));
    s->part_count = s->setup.total > 0;
    if (cls->shard != NULL)
        cls->shard(&s->setup, comm->size, comm->rank, NULL, &s->part_count);
    rc = DDP_NEW(&s->parts, (size_t)s->part_count, err);
    DDP_TRY(ddp_comm_agree(comm, rc, err));
    if (s->setup.total > 0)
        s->parts[0] = (struct ddp_range){0, s->setup.total};
    if (cls->shard != NULL)
        cls->shard(&s->setup, comm->size, comm->rank, s->parts, &s->part_count);
    return 0;
}

static void free_strategy(struct ddp_strategy *s)
{
    if (s == NULL)
        return;
    if (s->sync != NULL)
        s->spec.cls->destroy(s->sync);
    free(s->parts);
    free(s->layout);
    free(s->text);
    free(s);
}

int ddp_sync_create(struct ddp *d, const char *strategy, const struct ddp_sync_options *options,
                    struct ddp_strategy **out, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    struct ddp_note note = {.kind = DDP_NOTE_STRATEGY};
    struct ddp_group *world;
    struct ddp_strategy *s;
    bool same_position;
    int rc;
    DDP_TRY(ddp_group_enter(d, NULL, &world, err));
    note.code = DDP_NEW(&s, 1, err);
    if (note.code == 0) {
        s->world = d;
        note.code = prepare(s, strategy, options, err);
    }
    if (note.code == 0)
        describe(s, &note);
    DDP_TRY_GOTO(ddp_agree(world, &note, &same_position, err), err_strategy);
    if (!same_position) {
        rc = ddp_fail(err, DDP_EMISMATCH,
                      "the arrays of strategy '%.60s' must lie at the same offset of registered "
                      "memory on all ranks, or in private memory on all ranks",
                      s->text);
        goto err_strategy;
    }
    DDP_TRY_GOTO(open_strategy(s, err), err_strategy);
    s->next = d->strategies;
    d->strategies = s;
    *out = s;
    return 0;

err_strategy:
    free_strategy(s);
    return rc;
}

/* Returns DDP_EUSAGE if the step is not in the phase that `call` needs, or DDP_ELOST after
 * ddp_abort. */
static int enter(const struct ddp_strategy *s, enum phase phase, const char *call,
                 struct ddp_err *err)
{
    static const char *const reasons[] = {
        [BETWEEN_STEPS] = "the last step has not ended",
        [BACKWARD] = "no step has begun, or ddp_sync_finish was already called",
        [FINISHED] = "ddp_sync_finish was not called",
    };
    struct ddp_group *world;
    DDP_TRY(ddp_group_enter(s->world, NULL, &world, err));
    if (s->phase != phase)
        return ddp_fail(err, DDP_EUSAGE, "%s of '%.60s': %s", call, s->text, reasons[phase]);
    return 0;
}

int ddp_sync_begin_step(struct ddp_strategy *s, size_t images, size_t global, double *scale,
                        struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    DDP_TRY(enter(s, BETWEEN_STEPS, "ddp_sync_begin_step", err));
    if (global == 0 || images > global)
        return ddp_fail(err, DDP_EUSAGE, "a step cannot have %zu of %zu samples", images, global);
    if (s->spec.cls->begin_step != NULL)
        s->spec.cls->begin_step(s->sync, images, global);
    *scale = ddp_sync_scale(s->spec.cls, ddp_size(s->world), images, global);
    s->phase = BACKWARD;
    return 0;
}

int ddp_sync_ready(struct ddp_strategy *s, int tensor, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    DDP_TRY(enter(s, BACKWARD, "ddp_sync_ready", err));
    if (tensor < 0 || tensor >= s->next_tensor)
        return ddp_fail(
            err, DDP_EUSAGE,
            "tensor %d of '%.60s' was reported, but it must be at least 0 and below %d, "
            "because tensors are reported from the last to the first",
            tensor, s->text, s->next_tensor);
    s->next_tensor = tensor;
    return s->spec.cls->on_grad_ready != NULL ? s->spec.cls->on_grad_ready(s->sync, tensor, err)
                                              : 0;
}

int ddp_sync_finish(struct ddp_strategy *s, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    DDP_TRY(enter(s, BACKWARD, "ddp_sync_finish", err));
    s->phase = FINISHED;
    s->next_tensor = s->setup.param_count;
    return s->spec.cls->finish_backward != NULL ? s->spec.cls->finish_backward(s->sync, err) : 0;
}

int ddp_sync_part(const struct ddp_strategy *s, int i, size_t *begin, size_t *count)
{
    if (i >= 0 && i < s->part_count) {
        *begin = s->parts[i].begin;
        *count = s->parts[i].end - s->parts[i].begin;
    }
    return s->part_count;
}

int ddp_sync_end_step(struct ddp_strategy *s, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    DDP_TRY(enter(s, FINISHED, "ddp_sync_end_step", err));
    s->phase = BETWEEN_STEPS;
    return s->spec.cls->end_step != NULL ? s->spec.cls->end_step(s->sync, err) : 0;
}

int ddp_sync_end_epoch(struct ddp_strategy *s, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    DDP_TRY(enter(s, BETWEEN_STEPS, "ddp_sync_end_epoch", err));
    return s->spec.cls->end_epoch != NULL ? s->spec.cls->end_epoch(s->sync, err) : 0;
}

void ddp_sync_read_stats(const struct ddp_strategy *s, struct ddp_sync_stats *out)
{
    struct ddp_sync_counters c;
    s->spec.cls->counters(s->sync, &c);
    *out = (struct ddp_sync_stats){
        .wire_bytes = c.wire_bytes,
        .exchange_ns = c.exchange_ns,
        .exposed_ns = c.exposed_ns,
        .density = c.values_total > 0 ? c.values_sent / c.values_total : 1,
        .overflow_count = c.overflow_count,
    };
}

void ddp_sync_destroy(struct ddp_strategy *s)
{
    if (s == NULL)
        return;
    struct ddp_strategy **at = &s->world->strategies;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    free_strategy(s);
}
