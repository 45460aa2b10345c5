/* Decoders for CIFAR-10 batch files (Krizhevsky 2009, cs.toronto.edu/~kriz/cifar.html) in memory.
 *
 * The files are not trusted. CIFAR-10 exists in a binary form and in a python form, and each form
 * has a decoder. A file that does not have exactly the layout of its form is rejected with
 * DDP_EINPUT. The python form is a pickle. Its decoder accepts only the fixed sequence of objects
 * that these files contain. Unlike an unpickler, this decoder has no stack and no memo, and calls
 * no functions. */
#ifndef DDP_MODEL_CIFAR_H
#define DDP_MODEL_CIFAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_CIFAR_PIXELS     3072 /* red, green and blue planes of 32 x 32 pixels */
#define DDP_CIFAR_CLASSES    10
#define DDP_CIFAR_MAX_IMAGES 10000 /* in one file */
/* Largest accepted file. 10,000 records with labels and file names take 31 million bytes. */
#define DDP_CIFAR_MAX_BYTES ((size_t)32 << 20)

/* The images of one file. */
struct ddp_cifar_batch {
    size_t count;          /* images */
    size_t stride;         /* bytes from one image to the next */
    const uint8_t *pixels; /* the first image, within the decoded bytes (borrowed) */
    uint8_t labels[DDP_CIFAR_MAX_IMAGES];
};

/* Decodes the binary form, such as data_batch_1.bin: one or more records of a label byte and 3072
 * pixel bytes. name is the file name for messages. Returns DDP_EINPUT if the layout is wrong. */
int ddp_cifar_decode_binary(const uint8_t *bytes, size_t n, const char *name,
                            struct ddp_cifar_batch *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Decodes the python form, such as data_batch_1: a dict that Python 2 pickled with protocol 2.
 * "data" is a uint8 array of at least one row of 3072 pixels, and "labels" has one small int per
 * row. "batch_label" (a string) and "filenames" (strings) are optional. Returns DDP_EINPUT if the
 * layout is wrong. */
int ddp_cifar_decode_pickle(const uint8_t *bytes, size_t n, const char *name,
                            struct ddp_cifar_batch *out, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
