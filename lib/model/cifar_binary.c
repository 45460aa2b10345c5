/* The binary form of CIFAR-10: records of 3073 bytes. */
#include "model/cifar.h"

#define RECORD (1 + DDP_CIFAR_PIXELS)

int ddp_cifar_decode_binary(const uint8_t *bytes, size_t n, const char *name,
                            struct ddp_cifar_batch *out, struct ddp_err *err)
{
    size_t count = n / RECORD;
    if (n == 0 || n % RECORD != 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' has %zu bytes, which is not a multiple of %d", name,
                        n, RECORD);
    if (count > DDP_CIFAR_MAX_IMAGES)
        return ddp_fail(err, DDP_EINPUT, "'%s' holds %zu images, at most %d are accepted", name,
                        count, DDP_CIFAR_MAX_IMAGES);
    for (size_t i = 0; i < count; i++) {
        uint8_t label = bytes[i * RECORD];
        if (label >= DDP_CIFAR_CLASSES)
            return ddp_fail(err, DDP_EINPUT, "label %zu of '%s' is %u, at most %d is legal", i,
                            name, label, DDP_CIFAR_CLASSES - 1);
        out->labels[i] = label;
    }
    out->count = count;
    out->pixels = bytes + 1;
    out->stride = RECORD;
    return 0;
}
