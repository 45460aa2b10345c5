#include <string.h>

#include "bench/operands.h"
#include "comm/backend.h"

#define POISON 0xA5 /* fills the result buffer before an operation */

static unsigned char *at(void *buffer, const struct ddp_operands *o, size_t element)
{
    return (unsigned char *)buffer + element * ddp_dtype_size(o->args.dtype);
}

/* sends_part: true for collectives in which a rank sends one chunk of the full buffer.
 * receives_part: true for those in which it receives one. */
static bool sends_part(enum ddp_coll coll)
{
    return coll == DDP_ALL_GATHER || coll == DDP_GATHER;
}

static bool receives_part(enum ddp_coll coll)
{
    return coll == DDP_REDUCE_SCATTER || coll == DDP_SCATTER;
}

static void find_input(struct ddp_operands *o, size_t count)
{
    const bool is_root = o->rank == o->args.root;
    const enum ddp_coll coll = o->args.coll;

    if (coll == DDP_BARRIER || (!is_root && (coll == DDP_BROADCAST || coll == DDP_SCATTER)))
        return;
    o->input_first = sends_part(coll) ? (size_t)o->rank * o->part : 0;
    o->input_count = sends_part(coll) ? o->part : count;
}

static bool averages_first(const struct ddp_point_spec *spec)
{
    const struct ddp_backend *b = ddp_backend_find(spec->backend);
    return ddp_coll_reduces(spec->coll) && spec->op == DDP_AVG && b &&
           (b->caps & DDP_CAP_AVG_FIRST);
}

void ddp_operands_init(struct ddp_operands *o, const struct ddp_point_spec *spec, int rank,
                       int ranks, void *a, void *b)
{
    const size_t parts = ddp_coll_message_bytes(spec->coll, ranks, 1, DDP_U8);
    *o = (struct ddp_operands){
        .args = {.coll = spec->coll, .dtype = spec->dtype, .op = spec->op, .root = spec->root},
        .a = a,
        .b = b,
        .full_bytes = (size_t)spec->size_bytes,
        .part = (size_t)spec->count / parts,
        .in_place = spec->placement == DDP_IN_PLACE,
        .averages_first = averages_first(spec),
        .rank = rank,
        .ranks = ranks,
    };
    const size_t own = (size_t)rank * o->part;
    o->args.count = o->part;
    o->args.send = o->in_place && sends_part(spec->coll) ? at(a, o, own) : a;
    o->args.recv = !o->in_place ? b : receives_part(spec->coll) ? (void *)at(a, o, own) : a;
    find_input(o, (size_t)spec->count);
}

void ddp_operands_on(struct ddp_operands *o, const struct ddp_device *device, void *image_a,
                     void *image_b)
{
    o->device = device;
    o->image_a = image_a;
    o->image_b = image_b;
}

void ddp_operands_fill(const struct ddp_operands *o, uint64_t round)
{
    void *a = o->device ? o->image_a : o->a, *b = o->device ? o->image_b : o->b;
    /* In place, the input is written to b, which keeps it. Out of place, it is written to the start
     * of a. */
    void *input = o->in_place ? at(b, o, o->input_first) : a;
    memset(b, POISON, o->full_bytes);
    ddp_verify_fill(input, o->input_first, o->input_count, o->args.dtype, o->args.op, o->rank,
                    o->ranks, round);
    if (o->in_place)
        memcpy(a, b, o->full_bytes);
    if (o->device) {
        o->device->copy(o->a, a, o->full_bytes);
        o->device->copy(o->b, b, o->full_bytes);
    }
}

void ddp_operands_restore(const struct ddp_operands *o)
{
    const size_t bytes = o->input_count * ddp_dtype_size(o->args.dtype);
    void *to = at(o->a, o, o->input_first);
    const void *from = at(o->b, o, o->input_first);
    if (o->in_place && o->device)
        o->device->copy(to, from, bytes);
    else if (o->in_place)
        memcpy(to, from, bytes);
}

/* Returns the result in host memory. */
static const unsigned char *result(const struct ddp_operands *o)
{
    const unsigned char *recv = o->args.recv, *from = o->in_place ? o->a : o->b;
    unsigned char *image = o->in_place ? o->image_a : o->image_b;
    if (!o->device)
        return recv;
    o->device->copy(image, from, o->full_bytes);
    return image + (recv - from);
}

static int verify_reduced(const struct ddp_operands *o, size_t first, uint64_t round,
                          int64_t *wrong, struct ddp_err *err)
{
    if (o->averages_first)
        return ddp_verify_averaged_first(result(o), first, o->part, o->args.dtype, o->rank,
                                         o->ranks, round, wrong, err);
    return ddp_verify_reduced(result(o), first, o->part, o->args.dtype, o->args.op, o->rank,
                              o->ranks, round, wrong, err);
}

/* Checks that the o->part elements at recv[element] are equal to the input of rank src from element
 * `first` on. */
static int verify_moved(const struct ddp_operands *o, const unsigned char *recv, size_t element,
                        int src, size_t first, uint64_t round, int64_t *wrong, struct ddp_err *err)
{
    return ddp_verify_moved(recv + element * ddp_dtype_size(o->args.dtype), first, o->part,
                            o->args.dtype, o->args.op, o->rank, src, o->ranks, round, wrong, err);
}

int ddp_operands_verify(const struct ddp_operands *o, uint64_t round, int64_t *elements,
                        int64_t *wrong, struct ddp_err *err)
{
    const size_t own = (size_t)o->rank * o->part;
    const int root = o->args.root;
    const enum ddp_coll coll = o->args.coll;

    *elements = *wrong = 0;
    if (coll == DDP_BARRIER || ((coll == DDP_REDUCE || coll == DDP_GATHER) && o->rank != root))
        return 0;
    *elements = (int64_t)o->part;
    switch (coll) {
    case DDP_ALLREDUCE:
    case DDP_REDUCE:
        return verify_reduced(o, 0, round, wrong, err);
    case DDP_REDUCE_SCATTER:
        return verify_reduced(o, own, round, wrong, err);
    case DDP_BROADCAST:
        return verify_moved(o, result(o), 0, root, 0, round, wrong, err);
    case DDP_SCATTER:
        return verify_moved(o, result(o), 0, root, own, round, wrong, err);
    case DDP_SEND_RECV:
        return verify_moved(o, result(o), 0, (o->rank + o->ranks - 1) % o->ranks, 0, round, wrong,
                            err);
    default: /* all-gather, gather, all-to-all: a chunk from every rank */
        break;
    }
    *elements = (int64_t)(o->part * (size_t)o->ranks);
    const unsigned char *recv = result(o);
    for (int r = 0; r < o->ranks; r++) {
        const size_t place = (size_t)r * o->part;
        DDP_TRY(verify_moved(o, recv, place, r, coll == DDP_ALL_TO_ALL ? own : place, round, wrong,
                             err));
    }
    return 0;
}
