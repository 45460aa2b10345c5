#include <string.h>

#include "base/mem.h"
#include "bench/operands.h"
#include "comm/backend.h"

#define POISON 0xA5 /* fills the result buffer before an operation */

static unsigned char *at_element(void *buffer, const struct ddp_operands *o, size_t element)
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
    o->args.send = o->in_place && sends_part(spec->coll) ? at_element(a, o, own) : a;
    o->args.recv = !o->in_place ? b : receives_part(spec->coll) ? (void *)at_element(a, o, own) : a;
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
    void *input = o->in_place ? at_element(b, o, o->input_first) : a;
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
    void *to = at_element(o->a, o, o->input_first);
    const void *from = at_element(o->b, o, o->input_first);
    if (o->in_place && o->device)
        o->device->copy(to, from, bytes);
    else if (o->in_place)
        memcpy(to, from, bytes);
}

/* Sets *at to the next element from *at on that lies in a block that o->stride selects. Returns the
 * number of elements from this element to the end of the block or to `end`. Returns 0 if there is
 * no such element. last: number of the block that is always selected. */
static size_t next_range(const struct ddp_operands *o, size_t *at, size_t end, size_t last)
{
    if (o->stride <= 1)
        return end - *at;
    while (*at < end && *at / DDP_VERIFY_BLOCK % o->stride != 0 && *at / DDP_VERIFY_BLOCK != last)
        *at += DDP_VERIFY_BLOCK - *at % DDP_VERIFY_BLOCK;
    return *at < end ? DDP_MIN(end - *at, DDP_VERIFY_BLOCK - *at % DDP_VERIFY_BLOCK) : 0;
}

/* Returns the number of the last block of the full buffer. */
static size_t last_block(const struct ddp_operands *o)
{
    const size_t count = o->full_bytes / ddp_dtype_size(o->args.dtype);
    return count > 0 ? (count - 1) / DDP_VERIFY_BLOCK : 0;
}

void ddp_operands_refill(const struct ddp_operands *o, uint64_t round)
{
    const size_t end = o->input_first + o->input_count;
    if (o->device) {
        ddp_operands_fill(o, round);
        return;
    }
    ddp_operands_restore(o);
    for (size_t at = o->input_first, n; (n = next_range(o, &at, end, last_block(o))) > 0; at += n)
        ddp_verify_fill(o->in_place ? at_element(o->a, o, at)
                                    : at_element(o->a, o, at - o->input_first),
                        at, n, o->args.dtype, o->args.op, o->rank, o->ranks, round);
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

/* One comparison of a contiguous array, whose first element has the index `first`. */
struct comparison {
    const struct ddp_operands *o;
    const unsigned char *recv;
    size_t first;
    int src; /* the rank whose input is expected; -1: the reduction over all ranks */
    uint64_t round;
};

static int compare_range(const struct comparison *c, size_t at, size_t n, int64_t *wrong,
                         struct ddp_err *err)
{
    const struct ddp_operands *o = c->o;
    const unsigned char *recv = c->recv + (at - c->first) * ddp_dtype_size(o->args.dtype);
    if (c->src >= 0)
        return ddp_verify_moved(recv, at, n, o->args.dtype, o->args.op, o->rank, c->src, o->ranks,
                                c->round, wrong, err);
    if (o->averages_first)
        return ddp_verify_averaged_first(recv, at, n, o->args.dtype, o->rank, o->ranks, c->round,
                                         wrong, err);
    return ddp_verify_reduced(recv, at, n, o->args.dtype, o->args.op, o->rank, o->ranks, c->round,
                              wrong, err);
}

/* Compares o->part elements, or those of them that o->stride selects. Adds the number of compared
 * elements to *elements. */
static int compare(const struct comparison *c, int64_t *elements, int64_t *wrong,
                   struct ddp_err *err)
{
    const struct ddp_operands *o = c->o;
    size_t at = c->first, n;
    for (; (n = next_range(o, &at, c->first + o->part, last_block(o))) > 0; at += n) {
        *elements += (int64_t)n;
        DDP_TRY(compare_range(c, at, n, wrong, err));
    }
    return 0;
}

/* Sets *first to the index of the first element that this rank receives, and *src to the rank whose
 * input it receives; -1: the reduction over all ranks. Used for collectives in which a rank
 * receives one array. */
static void find_result(const struct ddp_operands *o, size_t *first, int *src)
{
    const size_t own = (size_t)o->rank * o->part;
    *first = receives_part(o->args.coll) ? own : 0;
    *src = ddp_coll_reduces(o->args.coll)  ? -1
           : o->args.coll == DDP_SEND_RECV ? (o->rank + o->ranks - 1) % o->ranks
                                           : o->args.root;
}

int ddp_operands_verify(const struct ddp_operands *o, uint64_t round, int64_t *elements,
                        int64_t *wrong, struct ddp_err *err)
{
    const size_t own = (size_t)o->rank * o->part;
    const enum ddp_coll coll = o->args.coll;
    const bool all_parts = coll == DDP_ALL_GATHER || coll == DDP_GATHER || coll == DDP_ALL_TO_ALL;

    *elements = *wrong = 0;
    if (coll == DDP_BARRIER ||
        ((coll == DDP_REDUCE || coll == DDP_GATHER) && o->rank != o->args.root))
        return 0;
    struct comparison c = {.o = o, .recv = result(o), .round = round};
    if (!all_parts) {
        find_result(o, &c.first, &c.src);
        return compare(&c, elements, wrong, err);
    }
    const unsigned char *recv = c.recv;
    for (c.src = 0; c.src < o->ranks; c.src++) {
        const size_t place = (size_t)c.src * o->part;
        c.recv = recv + place * ddp_dtype_size(o->args.dtype);
        c.first = coll == DDP_ALL_TO_ALL ? own : place;
        DDP_TRY(compare(&c, elements, wrong, err));
    }
    return 0;
}
