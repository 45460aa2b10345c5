/* The operands of one measured operation: where its arrays lie in two buffers, what this rank puts
 * in, and what it must get out, for every collective.
 *
 * Two buffers a rank, a and b, of the full size S each. Out of place: a is sent, b received. In
 * place: a is worked on, b keeps the input that is put back (coll.h says where send lies in recv,
 * or the other way round). What a rank puts in: the values of verify.h, numbered by their place in
 * the full buffer, so that a part that ends at a wrong place, or comes from a wrong rank, is a
 * wrong part. What it does not do: run anything. */
#ifndef DDP_BENCH_OPERANDS_H
#define DDP_BENCH_OPERANDS_H

#include "bench/verify.h"
#include "device/device.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* part: elements a rank has of the full buffer, count where it is one array. input_first,
 * input_count: the elements this rank puts in; 0: none. device: whose memory a and b are, NULL: the
 * host can touch them; image_a, image_b [full_bytes]: else what it sees of them. averages_first:
 * the backend rounds before it sums (verify.h). All members are the functions' below. */
struct ddp_operands {
    struct ddp_coll_args args;
    void *a, *b;
    const struct ddp_device *device;
    void *image_a, *image_b;
    size_t full_bytes;
    size_t part;
    size_t input_first, input_count;
    bool in_place;
    bool averages_first;
    int rank, ranks;
};
void ddp_operands_init(struct ddp_operands *o, const struct ddp_point_spec *spec, int rank,
                       int ranks, void *a, void *b);
/* a and b are memory of `device`, which the host cannot touch: it writes and compares images of its
 * own, of the same size, that are copied. Borrowed. */
void ddp_operands_on(struct ddp_operands *o, const struct ddp_device *device, void *image_a,
                     void *image_b);
/* Writes the input of `round`, and what is no right answer where the result will be. */
void ddp_operands_fill(const struct ddp_operands *o, uint64_t round);
/* In place: puts the input back. Out of place it is still there. */
void ddp_operands_restore(const struct ddp_operands *o);
/* Compares this rank's result with what it must be. *elements: how many were compared. DDP_EDATA as
 * in verify.h, *wrong of the array or part that failed. */
int ddp_operands_verify(const struct ddp_operands *o, uint64_t round, int64_t *elements,
                        int64_t *wrong, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
