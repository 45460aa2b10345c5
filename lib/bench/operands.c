#include <string.h>

#include "base/mem.h"
#include "bench/operands.h"
#include "bench/split_table.h"
#include "coll/coll_split.h"
#include "comm/backend.h"
#include "device/stream.h"
#include "device/stream_kernels.h"

#define POISON 0xA5 /* fills the result buffer before an operation */
/* Bytes that are checked behind the received data. */
#define GUARD_BYTES ((size_t)64)

static unsigned char *at_element(void *buffer, const struct ddp_operands *o, size_t element)
{
    return (unsigned char *)buffer + element * ddp_dtype_size(o->args.dtype);
}

/* sends_part: true for collectives in which a rank sends one chunk of the full buffer.
 * receives_part: true for collectives in which a rank receives one chunk. */
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
    o->input_count = sends_part(coll) || coll == DDP_ALL_GATHER_V ? o->part : count;
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

void ddp_operands_split(struct ddp_operands *o, const size_t *split)
{
    struct ddp_split_load load;
    ddp_split_loads(o->args.coll, split, o->ranks, &load);
    o->args.split = split;
    o->input_count = ddp_split_send_at(&o->args, o->ranks, o->rank, o->ranks);
    o->full_bytes = load.largest * ddp_dtype_size(o->args.dtype);
}

void ddp_operands_on(struct ddp_operands *o, const struct ddp_operands_device *on)
{
    o->on = on;
}

static void copy(const struct ddp_operands *o, void *to, const void *from, size_t bytes)
{
    if (o->on)
        o->on->device->copy(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

/* Returns the number of elements that are handled at a time. */
static size_t piece(const struct ddp_operands *o)
{
    return o->on ? DDP_OPERANDS_STAGE_BYTES / ddp_dtype_size(o->args.dtype) : SIZE_MAX;
}

/* Describes the input of rank `src`, or the reduction over all ranks if src is -1. */
static struct ddp_expected expected(const struct ddp_operands *o, int src, uint64_t round)
{
    return (struct ddp_expected){
        .input = ddp_verify_input_of(o->args.dtype, o->args.op, o->ranks),
        .round = round,
        .dtype = o->args.dtype,
        .op = o->args.op,
        .src = src,
    };
}

/* Writes the inputs of elements [first, first + count) to `to`. If the kernels fail, the stream
 * keeps the error, and ddp_operands_verify reports it. */
static void write_input(const struct ddp_operands *o, unsigned char *to, size_t first, size_t count,
                        uint64_t round)
{
    const size_t bytes = ddp_dtype_size(o->args.dtype);
    if (o->on && o->on->stream) {
        const struct ddp_expected input = expected(o, o->rank, round);
        o->on->device->stream_kernels->write_expected(o->on->stream, to, &input, first, count);
        return;
    }
    for (size_t done = 0, n; done < count; done += n) {
        n = DDP_MIN(count - done, piece(o));
        ddp_verify_fill(o->on ? o->on->stage : to, first + done, n, o->args.dtype, o->args.op,
                        o->rank, o->ranks, round);
        if (o->on)
            o->on->device->copy(to + done * bytes, o->on->stage, n * bytes);
    }
}

/* Waits until the kernels have written the input. */
static void finish_input(const struct ddp_operands *o)
{
    if (o->on && o->on->stream)
        (void)!o->on->device->streams->wait(o->on->stream, NULL);
}

void ddp_operands_fill(const struct ddp_operands *o, uint64_t round)
{
    /* In place, the input is written to b, which keeps it. Out of place, it is written to the start
     * of a. */
    void *input = o->in_place ? at_element(o->b, o, o->input_first) : o->a;
    if (o->on)
        o->on->device->fill(o->b, POISON, o->full_bytes);
    else
        memset(o->b, POISON, o->full_bytes);
    write_input(o, input, o->input_first, o->input_count, round);
    finish_input(o);
    if (o->in_place)
        copy(o, o->a, o->b, o->full_bytes);
}

void ddp_operands_restore(const struct ddp_operands *o)
{
    if (o->in_place)
        copy(o, at_element(o->a, o, o->input_first), at_element(o->b, o, o->input_first),
             o->input_count * ddp_dtype_size(o->args.dtype));
}

/* Sets *at to the next element from *at on that lies in a block that o->stride selects. Returns the
 * number of elements from this element to the end of the block or to `end`, whichever comes first.
 * If o->stride selects all blocks, ignores their ends. Returns 0 if there is no such element. last:
 * number of the block that is always selected. */
static size_t next_range(const struct ddp_operands *o, size_t *at, size_t end, size_t last)
{
    if (o->stride <= 1)
        return end - *at;
    while (*at < end && *at / DDP_VERIFY_BLOCK % o->stride != 0 && *at / DDP_VERIFY_BLOCK != last)
        *at += DDP_VERIFY_BLOCK - *at % DDP_VERIFY_BLOCK;
    return *at < end ? DDP_MIN(end - *at, DDP_VERIFY_BLOCK - *at % DDP_VERIFY_BLOCK) : 0;
}

/* Returns the number of the last block of the full buffer or, if there is a split, of the send
 * array of rank `src`. */
static size_t last_block(const struct ddp_operands *o, int src)
{
    const size_t count = ddp_coll_has_split(o->args.coll)
                             ? ddp_split_send_at(&o->args, o->ranks, src, o->ranks)
                             : o->full_bytes / ddp_dtype_size(o->args.dtype);
    return count > 0 ? (count - 1) / DDP_VERIFY_BLOCK : 0;
}

void ddp_operands_refill(const struct ddp_operands *o, uint64_t round)
{
    const size_t end = o->input_first + o->input_count, last = last_block(o, o->rank);
    ddp_operands_restore(o);
    for (size_t at = o->input_first, n; (n = next_range(o, &at, end, last)) > 0; at += n)
        write_input(
            o, o->in_place ? at_element(o->a, o, at) : at_element(o->a, o, at - o->input_first), at,
            n, round);
    finish_input(o);
}

/* One comparison of a contiguous array, whose first element has the index `first`. */
struct comparison {
    const struct ddp_operands *o;
    const unsigned char *recv;
    size_t first, count;
    size_t last; /* number of the last block, from last_block() */
    int src;     /* the rank whose input is expected; -1: the reduction over all ranks */
    uint64_t round;
};

/* Compares the received elements [at, at + n), which begin at `recv` in host memory. */
static int compare_range(const struct comparison *c, const void *recv, size_t at, size_t n,
                         int64_t *wrong, struct ddp_err *err)
{
    const struct ddp_operands *o = c->o;
    if (c->src >= 0)
        return ddp_verify_moved(recv, at, n, o->args.dtype, o->args.op, o->rank, c->src, o->ranks,
                                c->round, wrong, err);
    if (o->averages_first)
        return ddp_verify_averaged_first(recv, at, n, o->args.dtype, o->rank, o->ranks, c->round,
                                         wrong, err);
    return ddp_verify_reduced(recv, at, n, o->args.dtype, o->args.op, o->rank, o->ranks, c->round,
                              wrong, err);
}

/* True if kernels can compare the result. They compare bits, so the result must have no rounding
 * errors. */
static bool kernels_compare(const struct comparison *c)
{
    const struct ddp_operands *o = c->o;
    const bool rounds = c->src < 0 && o->averages_first && (o->ranks & (o->ranks - 1)) != 0;
    return o->on && o->on->stream && !rounds;
}

/* Compares the elements with kernels. Adds the number of compared elements to *elements. Sets *same
 * to whether all these elements are right. */
static int compare_there(const struct comparison *c, int64_t *elements, bool *same,
                         struct ddp_err *err)
{
    const struct ddp_operands *o = c->o;
    const struct ddp_operands_device *on = o->on;
    const struct ddp_expected result = expected(o, c->src, c->round);
    const size_t bytes = ddp_dtype_size(o->args.dtype);
    uint64_t *wrong = on->stage;
    size_t at = c->first, n;
    on->device->streams->fill(on->stream, on->wrong, 0, sizeof *wrong);
    for (; (n = next_range(o, &at, c->first + c->count, c->last)) > 0; at += n) {
        *elements += (int64_t)n;
        on->device->stream_kernels->count_wrong(on->stream, c->recv + (at - c->first) * bytes,
                                                &result, at, n, on->wrong);
    }
    on->device->streams->copy(on->stream, wrong, on->wrong, sizeof *wrong);
    DDP_TRY(on->device->streams->wait(on->stream, err));
    *same = *wrong == 0;
    return 0;
}

/* Compares c->count elements, or those of them that o->stride selects. Adds the number of compared
 * elements to *elements. */
static int compare(const struct comparison *c, int64_t *elements, int64_t *wrong,
                   struct ddp_err *err)
{
    const struct ddp_operands *o = c->o;
    const size_t bytes = ddp_dtype_size(o->args.dtype);
    size_t at = c->first, n;
    if (kernels_compare(c)) {
        int64_t compared = 0;
        bool same;
        DDP_TRY(compare_there(c, &compared, &same, err));
        if (same) {
            *elements += compared;
            return 0;
        }
    }
    for (; (n = next_range(o, &at, c->first + c->count, c->last)) > 0; at += n) {
        const unsigned char *recv = c->recv + (at - c->first) * bytes;
        n = DDP_MIN(n, piece(o));
        *elements += (int64_t)n;
        if (o->on)
            o->on->device->copy(o->on->stage, recv, n * bytes);
        DDP_TRY(compare_range(c, o->on ? o->on->stage : recv, at, n, wrong, err));
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

/* Checks the bytes behind the data that this rank received. */
static int check_guard(const struct ddp_operands *o, struct ddp_err *err)
{
    size_t sent, end;
    ddp_split_array_bytes(&o->args, o->ranks, o->rank, &sent, &end);
    const size_t bytes = DDP_MIN(GUARD_BYTES, o->full_bytes - end);
    const unsigned char *guard = (const unsigned char *)o->args.recv + end;

    if (o->on) {
        o->on->device->copy(o->on->stage, guard, bytes);
        guard = o->on->stage;
    }
    for (size_t i = 0; i < bytes; i++)
        if (guard[i] != POISON)
            return ddp_fail(err, DDP_EDATA,
                            "rank %d: byte %zu behind the received data has changed", o->rank, i);
    return 0;
}

/* Compares the parts that this rank receives in a collective with a split. In a reduce-scatter-v,
 * the rank receives the sum of one part. */
static int verify_split(const struct ddp_operands *o, uint64_t round, int64_t *elements,
                        int64_t *wrong, struct ddp_err *err)
{
    const bool reduces = ddp_coll_reduces(o->args.coll);
    struct comparison c = {.o = o, .recv = o->args.recv, .round = round};
    for (int r = 0; r < (reduces ? 1 : o->ranks); r++) {
        c.src = reduces ? -1 : r;
        c.first = ddp_split_send_at(&o->args, o->ranks, r, o->rank);
        c.count = ddp_split_part(&o->args, o->ranks, r, o->rank);
        c.last = last_block(o, r);
        DDP_TRY(compare(&c, elements, wrong, err));
        c.recv += c.count * ddp_dtype_size(o->args.dtype);
    }
    const int rc = check_guard(o, err);
    *wrong += rc != 0; /* bytes behind the data count as one wrong element */
    return rc;
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
    if (ddp_coll_has_split(coll))
        return verify_split(o, round, elements, wrong, err);
    struct comparison c = {.o = o,
                           .recv = o->args.recv,
                           .count = o->part,
                           .last = last_block(o, o->rank),
                           .round = round};
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
