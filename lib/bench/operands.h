/* The operands of one measured operation, for every collective: where its arrays lie in two
 * buffers, which input this rank writes, and which result it must get.
 *
 * Each rank has two buffers, a and b, of the full size. Out of place, a is sent and b receives. In
 * place, the operation works on a, and b keeps the input, which is then restored (coll.h says where
 * send lies in recv, or recv in send). The input consists of the values of verify.h, numbered by
 * their position in the full buffer, so that a chunk at a wrong position or from a wrong rank is
 * wrong. The sampler runs the operation. */
#ifndef DDP_BENCH_OPERANDS_H
#define DDP_BENCH_OPERANDS_H

#include "bench/verify.h"
#include "device/device.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Callers use only args and full_bytes. */
struct ddp_operands {
    struct ddp_coll_args args;
    void *a, *b;
    const struct ddp_device *device; /* owner of the memory of a and b; NULL: the host */
    void *image_a, *image_b;         /* [full_bytes]: the host's copies of a device's buffers */
    size_t full_bytes;
    size_t part; /* elements of one rank's chunk; all elements if there are no chunks */
    /* The elements that this rank contributes; input_count 0: none. */
    size_t input_first, input_count;
    bool in_place;
    bool averages_first; /* the backend divides, and rounds, before the sum (verify.h) */
    int rank, ranks;
};

/* rank, ranks: in the group. a, b: [spec->size_bytes], borrowed. */
void ddp_operands_init(struct ddp_operands *o, const struct ddp_point_spec *spec, int rank,
                       int ranks, void *a, void *b);
/* Declares that a and b are memory of `device`, which the host cannot access. The host then writes
 * and compares the images, which have the same size and are copied. Borrowed. */
void ddp_operands_on(struct ddp_operands *o, const struct ddp_device *device, void *image_a,
                     void *image_b);
/* Writes the input of `round`, and poisons the result buffer. */
void ddp_operands_fill(const struct ddp_operands *o, uint64_t round);
/* In place: restores the input. Out of place: does nothing, because the input is still there. */
void ddp_operands_restore(const struct ddp_operands *o);
/* Compares this rank's result with the expected one. *elements: how many were compared. Returns
 * DDP_EDATA as in verify.h; *wrong then counts the array or chunk that failed. */
int ddp_operands_verify(const struct ddp_operands *o, uint64_t round, int64_t *elements,
                        int64_t *wrong, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
