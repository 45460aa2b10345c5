/* all_reduce, reduce and bcast on lists of arrays, packed or one by one.
 *
 * A *run* is the input of one collective: a single array, or all arrays of one dtype. A run is
 * reduced in place if its arrays are adjacent in memory and each array of the call has the same
 * *position* on all ranks. An array's position is its offset in registered memory. All private
 * memory counts as one position. Any other run is packed into the group's pack buffer and unpacked
 * afterwards. */
#include <string.h>

#include "base/mem.h"
#include "comm/comm.h"
#include "exchange/bucket.h"
#include "exchange/ddp_impl.h"

int ddp_coll_once(struct ddp_group *group, const struct ddp_coll_args *args, struct ddp_err *err)
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
    /* A collective fails on all ranks or on none, so stop the other ranks. */
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
        DDP_TRY(ddp_pack_reserve(task->group, count * run->elem, err));
        start = task->group->pack.data;
        if (is_input(task))
            copy_run(task, run, false);
    }
    struct ddp_coll_args args = task->args;
    args.send = start;
    args.recv = start;
    args.count = count;
    args.dtype = run->dtype;
    DDP_TRY(ddp_coll_once(task->group, &args, err));
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

int ddp_coll_list(struct ddp *d, enum ddp_note_kind kind, const struct ddp_array *arrays, int n,
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
    return ddp_coll_list(d, DDP_NOTE_ALL_REDUCE, arrays, n, 0, call, err);
}

int ddp_reduce(struct ddp *d, const struct ddp_array *arrays, int n, int dst,
               const struct ddp_call *call, struct ddp_err *err)
{
    return ddp_coll_list(d, DDP_NOTE_REDUCE, arrays, n, dst, call, err);
}

int ddp_bcast(struct ddp *d, const struct ddp_array *arrays, int n, int src,
              const struct ddp_call *call, struct ddp_err *err)
{
    return ddp_coll_list(d, DDP_NOTE_BCAST, arrays, n, src, call, err);
}
