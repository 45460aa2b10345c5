/* Fuzzes CIFAR-10's python form: an accepted file has as many legal labels as images, and both
 * lie inside the input. */
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "model/cifar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ddp_cifar_batch batch;
    struct ddp_err err = DDP_ERR_INIT;
    int rc = ddp_cifar_decode_pickle(data, size, "input", &batch, &err);
    if (rc != 0 && (rc != DDP_EINPUT || err.code != rc || !err.text[0]))
        abort();
    if (rc == 0 && (batch.count < 1 || batch.count > DDP_CIFAR_MAX_IMAGES ||
                    batch.stride != DDP_CIFAR_PIXELS || batch.pixels < data ||
                    batch.pixels + batch.count * batch.stride > data + size))
        abort();
    for (size_t i = 0; rc == 0 && i < batch.count; i++)
        if (batch.labels[i] > 9)
            abort();
    return 0;
}
