/* all_gather receives one array per rank, and reduce_scatter sends one array per rank. lib/coll
 * expects these arrays as a single array. If the arrays are not adjacent in memory or their
 * positions (ddp_coll.c) differ between ranks, all ranks use the pack buffer instead. */
#include "base/mem.h"
#include "comm/comm.h"
#include "exchange/bucket.h"
#include "exchange/ddp_impl.h"

/* parts [group size]: the side with one array per rank. whole: the side with a single array. */
static int check_parts(const struct ddp_group *group, const struct ddp_array *parts,
                       const struct ddp_array *whole, struct ddp_err *err)
{
    if (whole == NULL || parts == NULL)
        return ddp_fail(err, DDP_EUSAGE, "send or recv is NULL");
    DDP_TRY(ddp_check_arrays(whole, 1, err));
    DDP_TRY(ddp_check_arrays(parts, group->n, err));
    for (int r = 0; r < group->n; r++)
        if (parts[r].count != whole->count || parts[r].dtype != whole->dtype)
            return ddp_fail(err, DDP_EUSAGE,
                            "array %d has %zu elements of %s, but the single array has %zu of %s",
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
        adjacent = ddp_buckets_adjacent(parts, group->n);
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

int ddp_all_gather(struct ddp *d, const struct ddp_array *send, const struct ddp_array *recv,
                   struct ddp_group *group, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    bool direct;
    DDP_TRY(ddp_group_enter(d, group, &group, err));
    DDP_TRY(agree_on_parts(group, DDP_NOTE_ALL_GATHER, recv, send, false, &direct, err));
    if (send->count == 0)
        return 0;
    const size_t bytes = send->count * ddp_dtype_size(send->dtype);
    struct ddp_coll_args args = {.coll = DDP_ALL_GATHER,
                                 .send = send->data,
                                 .recv = recv[0].data,
                                 .count = send->count,
                                 .dtype = send->dtype};
    if (direct)
        return ddp_coll_once(group, &args, err);
    DDP_TRY(ddp_pack_reserve(group, bytes * (size_t)group->n, err));
    unsigned char *pack = group->pack.data;
    unsigned char *mine = pack + bytes * (size_t)group->comm->rank;
    copy(group, mine, send->data, bytes);
    args.send = mine;
    args.recv = pack;
    DDP_TRY(ddp_coll_once(group, &args, err));
    for (int r = 0; r < group->n; r++)
        copy(group, recv[r].data, pack + bytes * (size_t)r, bytes);
    return 0;
}

int ddp_reduce_scatter(struct ddp *d, const struct ddp_array *send, const struct ddp_array *recv,
                       const struct ddp_call *call, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    static const struct ddp_call defaults = {0};
    struct ddp_group *group;
    bool direct;
    if (call == NULL)
        call = &defaults;
    DDP_TRY(ddp_group_enter(d, call->group, &group, err));
    DDP_TRY(
        agree_on_parts(group, DDP_NOTE_REDUCE_SCATTER, send, recv, call->division, &direct, err));
    if (recv->count == 0)
        return 0;
    const size_t bytes = recv->count * ddp_dtype_size(recv->dtype);
    struct ddp_coll_args args = {.coll = DDP_REDUCE_SCATTER,
                                 .send = send[0].data,
                                 .recv = recv->data,
                                 .count = recv->count,
                                 .dtype = recv->dtype,
                                 .op = call->division ? DDP_AVG : DDP_SUM};
    if (direct)
        return ddp_coll_once(group, &args, err);
    DDP_TRY(ddp_pack_reserve(group, bytes * (size_t)group->n, err));
    unsigned char *pack = group->pack.data;
    unsigned char *mine = pack + bytes * (size_t)group->comm->rank;
    for (int r = 0; r < group->n; r++)
        copy(group, pack + bytes * (size_t)r, send[r].data, bytes);
    args.send = pack;
    args.recv = mine;
    DDP_TRY(ddp_coll_once(group, &args, err));
    copy(group, recv->data, mine, bytes);
    return 0;
}
