/* The public bucketer of ddp.h. It runs an all-reduce of each bucket with the functions of
 * bucket.h, and checks that all ranks pass equal arguments. If the arrays cannot be reduced in
 * place, the bucketer copies them to its own memory first. */
#include <stdlib.h>

#include "base/mem.h"
#include "comm/comm.h"
#include "exchange/bucket.h"
#include "exchange/ddp_impl.h"

struct ddp_bucketer {
    struct ddp_group *group;
    struct ddp_buckets *buckets;
    enum ddp_op op;
    struct ddp_array *arrays; /* [n], in layer order, all of one dtype */
    size_t *begin;            /* [n + 1]; arrays[i] begins at element begin[i] of all elements */
    int n;
    int next_array; /* index of the array that must become ready next; -1: all are ready */
    size_t elem;
    unsigned char *data; /* the first element of the sequence */
    void *memory;        /* copies of the arrays; NULL if they are reduced in place */
    size_t memory_bytes;
    bool registered;
    struct ddp_bucketer *next; /* next element of the list ddp.bucketers */
};

/* The all-reduce of one bucket. */
struct reduction {
    const struct ddp_bucketer *bucketer;
    struct ddp_comm *comm;
    struct ddp_bucket bucket;
    struct ddp_coll_plan plan;
};

static int open_reduction(void *arg, struct ddp_comm *comm, struct ddp_stream *stream,
                          const struct ddp_bucket *bucket, void **state, struct ddp_err *err)
{
    const struct ddp_bucketer *b = arg;
    void *at = b->data + bucket->offset * b->elem;
    const struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                       .send = at,
                                       .recv = at,
                                       .count = bucket->count,
                                       .dtype = b->arrays[0].dtype,
                                       .op = b->op};
    struct reduction *r;
    (void)stream;
    DDP_TRY(DDP_NEW(&r, 1, err));
    *r = (struct reduction){.bucketer = b, .comm = comm, .bucket = *bucket};
    const int rc = ddp_coll_plan_init(&r->plan, comm, NULL, &args, err);
    if (rc == 0)
        *state = r;
    else
        free(r);
    return rc;
}

/* Copies the sums of a bucket back to the arrays. */
static void unpack(const struct reduction *r)
{
    const struct ddp_bucketer *b = r->bucketer;
    const struct ddp_bucket *bucket = &r->bucket;
    for (int i = bucket->first; i < bucket->first + bucket->tensors; i++) {
        const size_t low = DDP_MAX(b->begin[i], bucket->offset);
        const size_t high = DDP_MIN(b->begin[i + 1], bucket->offset + bucket->count);
        if (low < high)
            r->comm->device->copy((unsigned char *)b->arrays[i].data +
                                      (low - b->begin[i]) * b->elem,
                                  b->data + low * b->elem, (high - low) * b->elem);
    }
}

static int run_reduction(void *state, struct ddp_err *err)
{
    struct reduction *r = state;
    DDP_TRY(ddp_coll_run(r->comm, &r->plan, err));
    if (r->bucketer->memory != NULL)
        unpack(r);
    return 0;
}

static void close_reduction(void *state)
{
    struct reduction *r = state;
    if (r != NULL)
        ddp_coll_plan_release(&r->plan);
    free(r);
}

static const struct ddp_bucket_method method = {
    .open = open_reduction,
    .run = run_reduction,
    .close = close_reduction,
};

static int check_tensors(const struct ddp_array *arrays, int n, struct ddp_err *err)
{
    DDP_TRY(ddp_check_arrays(arrays, n, err));
    for (int i = 1; i < n; i++)
        if (arrays[i].dtype != arrays[0].dtype)
            return ddp_fail(err, DDP_EUSAGE,
                            "array %d of a bucketer has dtype %s, but the first has dtype %s", i,
                            ddp_dtype_name(arrays[i].dtype), ddp_dtype_name(arrays[0].dtype));
    return 0;
}

/* Allocates memory for copies of the arrays. If the arrays are adjacent and have the same position
 * on all ranks (ddp_coll.c), the bucketer reduces them in place and needs no memory. */
static int find_memory(struct ddp_bucketer *b, bool same_position, struct ddp_err *err)
{
    for (int i = 0; i < b->n && b->data == NULL; i++)
        if (b->arrays[i].count > 0)
            b->data = b->arrays[i].data;
    if (same_position && ddp_arrays_adjacent(b->arrays, b->n))
        return 0;
    b->memory_bytes = b->begin[b->n] * b->elem;
    DDP_TRY(ddp_group_alloc(b->group, b->memory_bytes, &b->memory, &b->registered, err));
    b->data = b->memory;
    return 0;
}

/* Copies the array structs and computes their places in the sequence. */
static int lay_out(struct ddp_bucketer *b, const struct ddp_array *arrays, int n,
                   struct ddp_err *err)
{
    b->n = n;
    b->next_array = n - 1;
    b->elem = n > 0 ? ddp_dtype_size(arrays[0].dtype) : 1;
    DDP_TRY(DDP_NEW(&b->arrays, (size_t)n, err));
    DDP_TRY(DDP_NEW(&b->begin, (size_t)n + 1, err));
    for (int i = 0; i < n; i++) {
        b->arrays[i] = arrays[i];
        b->begin[i + 1] = b->begin[i] + arrays[i].count;
    }
    return 0;
}

static int make_buckets(struct ddp_bucketer *b, size_t pack_elements, struct ddp_err *err)
{
    size_t *counts = ddp_calloc((size_t)b->n, sizeof *counts);
    if (counts == NULL || (pack_elements > 0 && b->begin[b->n] / pack_elements >= INT32_MAX)) {
        free(counts);
        return ddp_fail(err, DDP_ENOMEM, "no memory for the buckets of %d arrays", b->n);
    }
    for (int i = 0; i < b->n; i++)
        counts[i] = b->arrays[i].count;
    const struct ddp_buckets_setup setup = {
        .comm = b->group->comm,
        .async = b->group->async,
        .layout = {.counts = counts, .n = b->n, .most = pack_elements, .split = true},
        .dtype = b->n > 0 ? b->arrays[0].dtype : DDP_F32,
        .method = &method,
        .arg = b,
    };
    const int rc = ddp_buckets_create(&setup, &b->buckets, err);
    free(counts);
    return rc;
}

static void free_bucketer(struct ddp_bucketer *b)
{
    if (b == NULL)
        return;
    ddp_buckets_destroy(b->buckets);
    if (b->group != NULL)
        ddp_group_free(b->group, b->memory, b->memory_bytes, b->registered);
    free(b->begin);
    free(b->arrays);
    free(b);
}

int ddp_bucketer_create(struct ddp *d, const struct ddp_array *arrays, int n, size_t pack_elements,
                        const struct ddp_call *call, struct ddp_bucketer **out, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    static const struct ddp_call defaults = {0};
    struct ddp_group *group;
    struct ddp_note note = {.kind = DDP_NOTE_BUCKETER};
    bool same_position;
    int rc = 0;
    if (call == NULL)
        call = &defaults;
    DDP_TRY(ddp_group_enter(d, call->group, &group, err));
    struct ddp_bucketer *b;
    note.code = DDP_NEW(&b, 1, err);
    if (note.code == 0)
        note.code = check_tensors(arrays, n, err);
    if (note.code == 0)
        note.code = lay_out(b, arrays, n, err);
    if (note.code == 0) {
        note.call = ddp_digest(ddp_digest(0, pack_elements), call->division);
        note.call = ddp_digest_arrays(note.call, arrays, n);
        note.position = ddp_digest_position(group, 0, arrays, n);
    }
    DDP_TRY_GOTO(ddp_agree(group, &note, &same_position, err), err_free);
    b->group = group;
    b->op = call->division ? DDP_AVG : DDP_SUM;
    DDP_TRY_GOTO(find_memory(b, same_position, err), err_free);
    DDP_TRY_GOTO(ddp_group_async(group, err), err_free);
    DDP_TRY_GOTO(ddp_comm_agree(group->comm, make_buckets(b, pack_elements, err), err), err_free);
    b->next = d->bucketers;
    d->bucketers = b;
    *out = b;
    return 0;

err_free:
    free_bucketer(b);
    return rc;
}

int ddp_bucketer_ready(struct ddp_bucketer *b, int index, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    if (index != b->next_array || index < 0) {
        if (b->next_array < 0)
            return ddp_fail(err, DDP_EUSAGE,
                            "array %d of a bucketer was reported ready, but all arrays are "
                            "ready already; call ddp_bucketer_finish first",
                            index);
        return ddp_fail(err, DDP_EUSAGE,
                        "array %d of a bucketer was reported ready, but array %d is next", index,
                        b->next_array);
    }
    const struct ddp_array *array = &b->arrays[index];
    if (b->memory != NULL && array->count > 0)
        b->group->comm->device->copy(b->data + b->begin[index] * b->elem, array->data,
                                     array->count * b->elem);
    b->next_array--;
    return ddp_buckets_ready(b->buckets, index, err);
}

int ddp_bucketer_finish(struct ddp_bucketer *b, int64_t *exposed_ns, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    int64_t exchange_ns, before, after;
    if (b->next_array >= 0)
        return ddp_fail(err, DDP_EUSAGE,
                        "a bucketer cannot finish: array %d of %d was not reported ready",
                        b->next_array, b->n);
    ddp_buckets_times(b->buckets, &exchange_ns, &before);
    const int rc = ddp_buckets_finish(b->buckets, err);
    ddp_buckets_times(b->buckets, &exchange_ns, &after);
    if (exposed_ns != NULL)
        *exposed_ns = after - before;
    b->next_array = b->n - 1;
    return rc;
}

void ddp_bucketer_destroy(struct ddp_bucketer *b)
{
    if (b == NULL)
        return;
    struct ddp_bucketer **at = &b->group->world->bucketers;
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    free_bucketer(b);
}
