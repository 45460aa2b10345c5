/* The public bucketer of ddp.h. It checks that all ranks pass equal arguments, and uses bucket.h
 * for the rest. */
#include <stdlib.h>

#include "base/mem.h"
#include "comm/comm.h"
#include "exchange/bucket.h"
#include "exchange/ddp_impl.h"

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

/* Allocates the memory of the buckets. If the arrays are adjacent and have the same position on all
 * ranks (ddp_coll.c), they are reduced in place and no memory is needed. */
static int find_memory(struct ddp_bucketer *b, const struct ddp_array *arrays, int n,
                       bool same_position, struct ddp_err *err)
{
    if (same_position && ddp_buckets_adjacent(arrays, n))
        return 0;
    for (int i = 0; i < n; i++)
        b->memory_bytes += arrays[i].count * ddp_dtype_size(arrays[i].dtype);
    return ddp_group_alloc(b->group, b->memory_bytes, &b->memory, &b->registered, err);
}

static int make_buckets(struct ddp_bucketer *b, const struct ddp_array *arrays, int n,
                        size_t pack_elements, bool division, struct ddp_err *err)
{
    DDP_TRY(ddp_group_async(b->group, err));
    const struct ddp_buckets_setup setup = {
        .async = b->group->async,
        .arrays = arrays,
        .n = n,
        .pack_elements = pack_elements,
        .op = division ? DDP_AVG : DDP_SUM,
        .memory = b->memory,
    };
    return ddp_comm_agree(b->group->comm, ddp_buckets_create(&setup, &b->buckets, err), err);
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
    struct ddp_bucketer *b = ddp_calloc(1, sizeof *b);
    note.code = b == NULL ? ddp_fail(err, DDP_ENOMEM, "no memory for a bucketer")
                          : check_tensors(arrays, n, err);
    if (note.code == 0) {
        note.call = ddp_digest(ddp_digest(0, pack_elements), call->division);
        note.call = ddp_digest_arrays(note.call, arrays, n);
        note.position = ddp_digest_position(group, 0, arrays, n);
    }
    DDP_TRY_GOTO(ddp_agree(group, &note, &same_position, err), err_free);
    b->group = group;
    DDP_TRY_GOTO(find_memory(b, arrays, n, same_position, err), err_free);
    DDP_TRY_GOTO(make_buckets(b, arrays, n, pack_elements, call->division, err), err_memory);
    b->next = d->bucketers;
    d->bucketers = b;
    *out = b;
    return 0;

err_memory:
    ddp_buckets_destroy(b->buckets);
    ddp_group_free(group, b->memory, b->memory_bytes, b->registered);
err_free:
    free(b);
    return rc;
}

int ddp_bucketer_ready(struct ddp_bucketer *b, int index, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    return ddp_buckets_ready(b->buckets, index, err);
}

int ddp_bucketer_finish(struct ddp_bucketer *b, int64_t *exposed_ns, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    return ddp_buckets_finish(b->buckets, exposed_ns, err);
}

void ddp_bucketer_destroy(struct ddp_bucketer *b)
{
    if (b == NULL)
        return;
    struct ddp_bucketer **at = &b->group->world->bucketers;
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    ddp_buckets_destroy(b->buckets);
    ddp_group_free(b->group, b->memory, b->memory_bytes, b->registered);
    free(b);
}
