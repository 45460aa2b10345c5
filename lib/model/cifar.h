/* CIFAR-10 batch files (Krizhevsky 2009, cs.toronto.edu/~kriz/cifar.html), decoded in memory.
 *
 * Nothing in them is believed: what is not exactly one of the two layouts is refused with
 * DDP_EINPUT, the place named. The python form is a pickle; this reads the one object that these
 * files hold by its grammar, and is no unpickler: no stack, no memo, nothing called. For the
 * reader dataset_cifar10.c and the fuzzers. */
#ifndef DDP_MODEL_CIFAR_H
#define DDP_MODEL_CIFAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_CIFAR_PIXELS     3072 /* 3 planes, red, green, blue, of 32 x 32 */
#define DDP_CIFAR_CLASSES    10
#define DDP_CIFAR_MAX_IMAGES 10000 /* of one file */
/* Most bytes one file may have: 10,000 records, labels and file names are 31 million. */
#define DDP_CIFAR_MAX_BYTES ((size_t)32 << 20)

/* pixels: image i at pixels + i * stride, within the bytes that were decoded. */
struct ddp_cifar_batch {
    size_t count;
    size_t stride;
    const uint8_t *pixels;
    uint8_t labels[DDP_CIFAR_MAX_IMAGES];
};

/* data_batch_1.bin and its like: records of a label byte and 3072 pixels, at least one. name: of
 * the file, for messages. */
int ddp_cifar_decode_binary(const uint8_t *bytes, size_t n, const char *name,
                            struct ddp_cifar_batch *out, struct ddp_err *err) DDP_MUST_CHECK;
/* data_batch_1 and its like: a dict, pickled by Python 2 with protocol 2, of "data" (a uint8 array
 * of at least one row of 3072), "labels" (as many small ints), and maybe "batch_label" (a string)
 * and "filenames" (strings). */
int ddp_cifar_decode_pickle(const uint8_t *bytes, size_t n, const char *name,
                            struct ddp_cifar_batch *out, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
