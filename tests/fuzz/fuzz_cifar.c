/* Fuzzes CIFAR-10's binary form: an accepted file consists of whole records with legal labels,
 * and its images lie inside the input. */
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "model/cifar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ddp_cifar_batch batch;
    struct ddp_err err = DDP_ERR_INIT;
    int rc = ddp_cifar_decode_binary(data, size, "input", &batch, &err);
    if (rc != 0 && (rc != DDP_EINPUT || err.code != rc || !err.text[0]))
        abort();
    for (size_t i = 0; rc == 0 && i < batch.count; i++) {
        const uint8_t *image = batch.pixels + i * batch.stride;
        if (batch.labels[i] > 9 || image < data || image + 3072 > data + size)
            abort();
    }
    return 0;
}
