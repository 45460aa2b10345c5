/* Arranges the operands of one measured operation, for every collective: the place of its arrays in
 * two buffers, the input of this rank, and the result that this rank must get.
 *
 * Each rank has two buffers, `a` and `b`, of the full size. Out of place, the operation sends from
 * `a` and receives in `b`. In place, it works on `a`, and `b` keeps a copy of the input, so that
 * `a` can be restored. In place, one of the arrays args.send and args.recv may be a part of the
 * other; coll.h says which part. The values of the input come from verify.h. They differ between
 * ranks, positions in the full buffer and rounds. A chunk at a wrong position or from a wrong rank
 * is therefore detected, unless it has only a few elements. */
#ifndef DDP_BENCH_OPERANDS_H
#define DDP_BENCH_OPERANDS_H

#include "bench/verify.h"
#include "device/device.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of host memory that operands on a device need, whatever the size of the operation. */
#define DDP_OPERANDS_STAGE_BYTES ((size_t)4 << 20)

/* The device in whose memory a and b lie. */
struct ddp_operands_device {
    const struct ddp_device *device;
    /* Kernels on this stream write and compare the data. NULL: the host does it. */
    struct ddp_stream *stream;
    uint64_t *wrong; /* device memory for the kernels' count of wrong elements */
    /* [DDP_OPERANDS_STAGE_BYTES]: host memory, preferably from host_alloc (device/stream.h). The
     * host writes and compares pieces of the data here. */
    void *stage;
};

/* Callers read only args, full_bytes, part and in_place, and set only stride. */
struct ddp_operands {
    struct ddp_coll_args args;
    void *a, *b;
    const struct ddp_operands_device *on; /* NULL: a and b are host memory */
    size_t full_bytes;
    /* Elements of one rank's chunk, or all elements if there are no chunks. A table of part sizes
     * (ddp_operands_split) replaces this equal size. */
    size_t part;
    /* The elements that this rank contributes. input_count is 0 if there are none. */
    size_t input_first, input_count;
    bool in_place;
    bool averages_first; /* the backend divides, and rounds, before the sum (verify.h) */
    int rank, ranks;
    /* ddp_operands_refill and ddp_operands_verify handle only every stride-th block of verify.h,
     * and the last block. 0 and 1: all blocks. */
    size_t stride;
};

/* rank, ranks: this rank's number in the group, and the size of the group. a, b:
 * [spec->size_bytes], borrowed. */
void ddp_operands_init(struct ddp_operands *o, const struct ddp_point_spec *spec, int rank,
                       int ranks, void *a, void *b);
/* Declares that a and b lie in memory of a device, which the host cannot access. If the kernels
 * find a wrong element, or if a result may have rounding errors, the host compares a copy of the
 * data. *on is borrowed. */
void ddp_operands_on(struct ddp_operands *o, const struct ddp_operands_device *on);
/* Sets the table of a collective with a split (bench/split_table.h). Without this call all parts
 * are equal. a and b must have room for the largest array of any rank. *split is borrowed. */
void ddp_operands_split(struct ddp_operands *o, const size_t *split);
/* Writes the input of `round`. Elements of the result buffer that are not input get a poison
 * value. */
void ddp_operands_fill(const struct ddp_operands *o, uint64_t round);
/* In place: restores the input. Out of place: does nothing, because the operation did not change
 * the input. */
void ddp_operands_restore(const struct ddp_operands *o);
/* Writes the input of `round` to the blocks that o->stride selects. The other blocks keep their
 * input. In place, the whole input is restored first. The result buffer is not poisoned. */
void ddp_operands_refill(const struct ddp_operands *o, uint64_t round);
/* Compares this rank's result with the expected one, in the blocks that o->stride selects. If parts
 * may have different sizes, also checks that the 64 bytes behind the received data still have the
 * poison value, as far as the buffer reaches. *elements: number of elements compared. Returns
 * DDP_EDATA as in verify.h, or an error of the device. With DDP_EDATA, *wrong is the number of
 * wrong elements in the first array or chunk that is wrong. If o->stride is above 1, *wrong counts
 * only the first block that is wrong. On a device it may count only the first
 * DDP_OPERANDS_STAGE_BYTES that are wrong. Changed bytes behind the data count as one wrong
 * element. */
int ddp_operands_verify(const struct ddp_operands *o, uint64_t round, int64_t *elements,
                        int64_t *wrong, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
