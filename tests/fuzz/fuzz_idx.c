/* Fuzzes IDX files, plain and gzipped, as files in memory: an accepted file has as many bytes as
 * its header promises. The first byte of the input chooses the number of dimensions. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "model/dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ddp_err err = DDP_ERR_INIT;
    uint32_t dims[DDP_IDX_MAX_DIMS];
    uint8_t *bytes = NULL;
    char path[32];
    if (size == 0)
        return 0;
    int ndim = data[0] % DDP_IDX_MAX_DIMS + 1, fd = memfd_create("idx", 0);
    if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int rc = ddp_idx_read(path, ndim, dims, &bytes, &err);
    if (rc != 0 && ((rc != DDP_EINPUT && rc != DDP_ENOMEM) || bytes || !err.text[0]))
        abort();
    if (rc == 0) {
        size_t total = 1, sum = 0;
        for (int i = 0; i < ndim; i++)
            total *= dims[i];
        for (size_t i = 0; i < total; i++)
            sum += bytes[i];
        if (sum > total * 255)
            abort();
    }
    free(bytes);
    close(fd);
    return 0;
}
