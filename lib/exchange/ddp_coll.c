/* The collectives of ddp.h. all_reduce, reduce and bcast work on lists of arrays, packed or one by
 * one.
 *
 * A *run* is the data of one collective: a single array, or all arrays of one dtype. The collective
 * works in place if the run's arrays are adjacent in memory and each array of the call has the same
 * *position* on all ranks. An array's position is its offset in registered memory. All private
 * memory counts as one position. Any other run is packed into the group's pack buffer and unpacked
 * afterwards.
 *
 * all_gather receives one array per rank, and reduce_scatter sends one array per rank. lib/coll
 * expects these arrays as a single array. If the arrays are not adjacent in memory or their
 * positions differ between ranks, all ranks use the pack buffer instead. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/backend.h"
#include "comm/comm.h"
#include "exchange/ddp_impl.h"

int ddp_group_alloc(struct ddp_group *group, size_t bytes, void **out, bool *registered,
                    struct ddp_err *err)
{
    struct ddp *d = group->world;
    *registered = false;
    /* Only all ranks of the world together can allocate registered memory. */
    if (group->comm == d->comm && ddp_comm_has_registered(d->comm, NULL, 0)) {
        struct ddp_err full = DDP_ERR_INIT;
        int rc = ddp_comm_alloc(d->comm, bytes, out, &full);
        *registered = rc == 0;
        if (rc == 0)
            return 0;
        if (rc != DDP_ENOMEM)
            return ddp_fail(err, rc, "%s", full.text);
    }
    void *pages = ddp_alloc_pages(bytes);
    int rc = 0;
    if (pages == NULL)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for a buffer of %zu bytes", bytes);
    rc = ddp_comm_agree(group->comm, rc, err);
    if (rc == 0)
        *out = pages;
    else if (pages != NULL)
        ddp_free_pages(pages, bytes);
    return rc;
}

void ddp_group_free(struct ddp_group *group, void *ptr, size_t bytes, bool registered)
{
    if (ptr == NULL)
        return;
    if (registered)
        ddp_comm_free(group->comm, ptr);
    else
        ddp_free_pages(ptr, bytes);
}

static int pack_reserve(struct ddp_group *group, size_t bytes, struct ddp_err *err)
{
    struct ddp_pack_buffer *pack = &group->pack;
    if (bytes <= pack->bytes)
        return 0;
    ddp_pack_release(group);
    void *data;
    DDP_TRY(ddp_group_alloc(group, bytes, &data, &pack->registered, err));
    pack->data = data;
    pack->bytes = bytes;
    return 0;
}

void ddp_pack_release(struct ddp_group *group)
{
    struct ddp_pack_buffer *pack = &group->pack;
    ddp_group_free(group, pack->data, pack->bytes, pack->registered);
    *pack = (struct ddp_pack_buffer){0};
}

static int coll_once(struct ddp_group *group, const struct ddp_coll_args *args, struct ddp_err *err)
{
    struct ddp_coll_plan plan;
    int rc = ddp_coll_plan_init(&plan, group->comm, NULL, args, err);
    /* These two errors depend only on arguments that are equal on all ranks, so all ranks return
     * them. */
    if (rc == DDP_EUNAVAIL || rc == DDP_EUSAGE)
        return rc;
    if (rc == 0) {
        rc = ddp_coll_run(group->comm, &plan, err);
        ddp_coll_plan_release(&plan);
    }
    /* A collective must fail on all ranks or on none, so this abort makes the collective fail on
     * the other ranks. */
    if (rc != 0)
        ddp_comm_abort(group->comm, rc);
    return rc;
}

/* One call of a collective on a list of arrays. */
struct task {
    struct ddp_group *group;
    const struct ddp_array *arrays;
    int n;
    /* Template of the arguments: coll, op and root (a rank of the group; unused by all-reduce). */
    struct ddp_coll_args args;
    bool same_position;
};

/* Returns true if the collective reads this rank's data. */
static bool is_input(const struct task *task)
{
    return task->args.coll != DDP_BROADCAST || task->group->comm->rank == task->args.root;
}

/* Returns true if the collective writes this rank's data. */
static bool is_output(const struct task *task)
{
    switch (task->args.coll) {
    case DDP_BROADCAST:
        return task->group->comm->rank != task->args.root;
    case DDP_REDUCE:
        return task->group->comm->rank == task->args.root;
    default:
        return true;
    }
}

/* The non-empty arrays of one dtype in arrays[first, end). */
struct run {
    int first, end;
    enum ddp_dtype dtype;
    size_t elem;
};

/* Returns true if arrays[i] belongs to the run, that is, has the dtype of the run and is not empty.
 */
static bool in_run(const struct task *task, const struct run *run, int i)
{
    return task->arrays[i].dtype == run->dtype && task->arrays[i].count > 0;
}

/* Copies the arrays of a run into the pack buffer, or out of it if `back` is set. */
static void copy_run(const struct task *task, const struct run *run, bool back)
{
    const struct ddp_device *device = task->group->comm->device;
    unsigned char *at = task->group->pack.data;
    for (int i = run->first; i < run->end; i++) {
        const size_t bytes = task->arrays[i].count * run->elem;
        if (!in_run(task, run, i))
            continue;
        if (back)
            device->copy(task->arrays[i].data, at, bytes);
        else
            device->copy(at, task->arrays[i].data, bytes);
        at += bytes;
    }
}

/* Returns the number of elements of a run. *start: address of the run if its arrays are adjacent in
 * memory, otherwise NULL. */
static size_t measure_run(const struct task *task, const struct run *run, void **start)
{
    const unsigned char *end = NULL;
    size_t count = 0;
    bool adjacent = true;
    *start = NULL;
    for (int i = run->first; i < run->end; i++) {
        const struct ddp_array *array = &task->arrays[i];
        if (!in_run(task, run, i))
            continue;
        if (count == 0)
            *start = array->data;
        else
            adjacent = adjacent && end == array->data;
        count += array->count;
        end = (const unsigned char *)array->data + array->count * run->elem;
    }
    if (!adjacent)
        *start = NULL;
    return count;
}

static int do_run(const struct task *task, const struct run *run, struct ddp_err *err)
{
    void *start;
    const size_t count = measure_run(task, run, &start);
    const bool packed = start == NULL || !task->same_position;
    if (count == 0)
        return 0;
    if (packed) {
        DDP_TRY(pack_reserve(task->group, count * run->elem, err));
        start = task->group->pack.data;
        if (is_input(task))
            copy_run(task, run, false);
    }
    struct ddp_coll_args args = task->args;
    args.send = start;
    args.recv = start;
    args.count = count;
    args.dtype = run->dtype;
    DDP_TRY(coll_once(task->group, &args, err));
    if (packed && is_output(task))
        copy_run(task, run, true);
    return 0;
}

static int do_all(const struct task *task, bool each, struct ddp_err *err)
{
    bool seen[DDP_DTYPE_COUNT] = {false};
    for (int i = 0; i < task->n; i++) {
        const enum ddp_dtype dtype = task->arrays[i].dtype;
        const struct run run = {.first = i,
                                .end = each ? i + 1 : task->n,
                                .dtype = dtype,
                                .elem = ddp_dtype_size(dtype)};
        if (!each && seen[dtype])
            continue;
        seen[dtype] = true;
        DDP_TRY(do_run(task, &run, err));
    }
    return 0;
}

static int check_call(const struct ddp_group *group, enum ddp_note_kind kind,
                      const struct ddp_array *arrays, int n, int root, const struct ddp_call *call,
                      struct ddp_err *err)
{
    if (root < 0 || root >= group->n)
        return ddp_fail(err, DDP_EUSAGE, "%s %d is out of range: group '%s' has ranks 0 to %d",
                        kind == DDP_NOTE_BCAST ? "src" : "dst", root, group->name, group->n - 1);
    if (kind == DDP_NOTE_BCAST && call->division)
        return ddp_fail(err, DDP_EUSAGE,
                        "bcast does not support division, because it sums nothing");
    return ddp_check_arrays(arrays, n, err);
}

static int coll_list(struct ddp *d, enum ddp_note_kind kind, const struct ddp_array *arrays, int n,
                     int root, const struct ddp_call *call, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    static const struct ddp_call defaults = {0};
    struct task task = {.arrays = arrays, .n = n};
    if (call == NULL)
        call = &defaults;
    DDP_TRY(ddp_group_enter(d, call->group, &task.group, err));
    struct ddp_note note = {.kind = kind};
    note.code = check_call(task.group, kind, arrays, n, root, call, err);
    if (note.code == 0) {
        const uint64_t options =
            (uint64_t)root << 2 | (uint64_t)call->division << 1 | (uint64_t)call->each;
        note.call = ddp_digest_arrays(ddp_digest(0, options), arrays, n);
        note.position = ddp_digest_position(task.group, 0, arrays, n);
    }
    DDP_TRY(ddp_agree(task.group, &note, &task.same_position, err));
    task.args.coll = kind == DDP_NOTE_BCAST    ? DDP_BROADCAST
                     : kind == DDP_NOTE_REDUCE ? DDP_REDUCE
                                               : DDP_ALLREDUCE;
    task.args.op = call->division ? DDP_AVG : DDP_SUM;
    task.args.root = root;
    return do_all(&task, call->each, err);
}

int ddp_all_reduce(struct ddp *d, const struct ddp_array *arrays, int n,
                   const struct ddp_call *call, struct ddp_err *err)
{
    return coll_list(d, DDP_NOTE_ALL_REDUCE, arrays, n, 0, call, err);
}

int ddp_reduce(struct ddp *d, const struct ddp_array *arrays, int n, int dst,
               const struct ddp_call *call, struct ddp_err *err)
{
    return coll_list(d, DDP_NOTE_REDUCE, arrays, n, dst, call, err);
}

int ddp_bcast(struct ddp *d, const struct ddp_array *arrays, int n, int src,
              const struct ddp_call *call, struct ddp_err *err)
{
    return coll_list(d, DDP_NOTE_BCAST, arrays, n, src, call, err);
}

int ddp_add_parameter(struct ddp *d, const char *name, struct ddp_array array, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    if (name == NULL || name[0] == '\0')
        return ddp_fail(err, DDP_EUSAGE, "the parameter name is empty");
    for (int i = 0; i < d->parameter_count; i++)
        if (strcmp(d->parameters[i].name, name) == 0)
            return ddp_fail(err, DDP_EUSAGE, "parameter '%.200s' already exists", name);
    DDP_TRY(ddp_check_arrays(&array, 1, err));
    struct ddp_parameter *grown =
        ddp_realloc_array(d->parameters, (size_t)d->parameter_count + 1, sizeof *d->parameters);
    if (grown != NULL)
        d->parameters = grown;
    char *copy = strdup(name);
    if (grown == NULL || copy == NULL) {
        free(copy);
        return ddp_fail(err, DDP_ENOMEM, "no memory for parameter '%.200s'", name);
    }
    d->parameters[d->parameter_count++] = (struct ddp_parameter){.name = copy, .array = array};
    return 0;
}

void ddp_clear_parameters(struct ddp *d)
{
    for (int i = 0; i < d->parameter_count; i++)
        free(d->parameters[i].name);
    free(d->parameters);
    d->parameters = NULL;
    d->parameter_count = 0;
}

int ddp_all_reduce_parameters(struct ddp *d, const struct ddp_call *call, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    struct ddp_array *arrays = ddp_calloc((size_t)d->parameter_count, sizeof *arrays);
    if (arrays == NULL) {
        /* Without an abort the other ranks would wait for this rank. */
        ddp_abort(d, DDP_ENOMEM);
        return ddp_fail(err, DDP_ENOMEM, "no memory for a list of %d arrays", d->parameter_count);
    }
    for (int i = 0; i < d->parameter_count; i++)
        arrays[i] = d->parameters[i].array;
    int rc = coll_list(d, DDP_NOTE_PARAMETERS, arrays, d->parameter_count, 0, call, err);
    free(arrays);
    return rc;
}

/* Checks the arrays of all_gather or reduce_scatter. parts [group size]: the argument with one
 * array per rank. whole: the argument with a single array. */
static int check_parts(const struct ddp_group *group, const struct ddp_array *parts,
                       const struct ddp_array *whole, struct ddp_err *err)
{
    if (whole == NULL || parts == NULL)
        return ddp_fail(err, DDP_EUSAGE, "send or recv is NULL");
    DDP_TRY(ddp_check_arrays(whole, 1, err));
    DDP_TRY(ddp_check_arrays(parts, group->n, err));
    for (int r = 0; r < group->n; r++)
        if (parts[r].count != whole->count || parts[r].dtype != whole->dtype)
            return ddp_fail(
                err, DDP_EUSAGE,
                "array %d of the list has %zu elements of %s, but the other argument has %zu "
                "of %s",
                r, parts[r].count, ddp_dtype_name(parts[r].dtype), whole->count,
                ddp_dtype_name(whole->dtype));
    return 0;
}

/* Compares the arguments of all ranks. *direct receives true if lib/coll can use the arrays without
 * packing. *direct is equal on all ranks. */
static int agree_on_parts(struct ddp_group *group, enum ddp_note_kind kind,
                          const struct ddp_array *parts, const struct ddp_array *whole,
                          bool division, bool *direct, struct ddp_err *err)
{
    struct ddp_note note = {.kind = kind};
    bool same_position, adjacent = false;
    note.code = check_parts(group, parts, whole, err);
    if (note.code == 0) {
        adjacent = ddp_arrays_adjacent(parts, group->n);
        note.call = ddp_digest_arrays(ddp_digest(0, division), whole, 1);
        note.position = ddp_digest(0, adjacent);
        note.position = ddp_digest(note.position, parts[group->comm->rank].data == whole->data);
        note.position = ddp_digest_position(group, note.position, parts, 1);
        note.position = ddp_digest_position(group, note.position, whole, 1);
    }
    DDP_TRY(ddp_agree(group, &note, &same_position, err));
    *direct = same_position && adjacent;
    return 0;
}

static void copy(const struct ddp_group *group, void *to, const void *from, size_t bytes)
{
    if (to != from)
        group->comm->device->copy(to, from, bytes);
}

/* Copies the parts into the pack buffer, or out of it if `back` is set. */
static void copy_parts(const struct ddp_group *group, const struct ddp_array *parts, size_t bytes,
                       bool back)
{
    unsigned char *packed = group->pack.data;
    for (int r = 0; r < group->n; r++, packed += bytes)
        copy(group, back ? parts[r].data : packed, back ? packed : parts[r].data, bytes);
}

/* Runs all_gather or reduce_scatter. */
static int run_parts(struct ddp_group *group, enum ddp_note_kind kind,
                     const struct ddp_array *parts, const struct ddp_array *whole, bool division,
                     struct ddp_err *err)
{
    const bool gathers = kind == DDP_NOTE_ALL_GATHER;
    bool direct;
    DDP_TRY(agree_on_parts(group, kind, parts, whole, division, &direct, err));
    if (whole->count == 0)
        return 0;
    const size_t bytes = whole->count * ddp_dtype_size(whole->dtype);
    struct ddp_coll_args args = {.coll = gathers ? DDP_ALL_GATHER : DDP_REDUCE_SCATTER,
                                 .send = gathers ? whole->data : parts[0].data,
                                 .recv = gathers ? parts[0].data : whole->data,
                                 .count = whole->count,
                                 .dtype = whole->dtype,
                                 .op = division ? DDP_AVG : DDP_SUM};
    if (direct)
        return coll_once(group, &args, err);
    DDP_TRY(pack_reserve(group, bytes * (size_t)group->n, err));
    void *pack = group->pack.data;
    void *mine = (unsigned char *)pack + bytes * (size_t)group->comm->rank;
    args.send = gathers ? mine : pack;
    args.recv = gathers ? pack : mine;
    if (gathers)
        copy(group, mine, whole->data, bytes);
    else
        copy_parts(group, parts, bytes, false);
    DDP_TRY(coll_once(group, &args, err));
    if (gathers)
        copy_parts(group, parts, bytes, true);
    else
        copy(group, whole->data, mine, bytes);
    return 0;
}

int ddp_all_gather(struct ddp *d, const struct ddp_array *send, const struct ddp_array *recv,
                   struct ddp_group *group, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    DDP_TRY(ddp_group_enter(d, group, &group, err));
    return run_parts(group, DDP_NOTE_ALL_GATHER, recv, send, false, err);
}

int ddp_reduce_scatter(struct ddp *d, const struct ddp_array *send, const struct ddp_array *recv,
                       const struct ddp_call *call, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    static const struct ddp_call defaults = {0};
    struct ddp_group *group;
    if (call == NULL)
        call = &defaults;
    DDP_TRY(ddp_group_enter(d, call->group, &group, err));
    return run_parts(group, DDP_NOTE_REDUCE_SCATTER, send, recv, call->division, err);
}
