/* Device cuda in a build without CUDA. The device is listed, but its functions fail, and `probe`
 * returns the reason. */
#include "device/device.h"

static int absent(struct ddp_err *err)
{
    ddp_fail(err, DDP_EUNAVAIL, "not built: this ddpbench was made without CUDA");
    return ddp_hint(err, "install the CUDA toolkit and build with `make CUDA=1`");
}

static int no_count(void)
{
    return 0;
}

static int no_select(int index, struct ddp_err *err)
{
    return absent(err);
}

static int no_info(int index, struct ddp_device_info *out, struct ddp_err *err)
{
    return absent(err);
}

static void *no_alloc(size_t bytes)
{
    return NULL;
}

static void no_free(void *ptr, size_t bytes)
{
}

const struct ddp_device ddp_dev_cuda = {
    .name = "cuda",
    .summary = "NVIDIA GPUs",
    .probe = absent,
    .count = no_count,
    .select = no_select,
    .info = no_info,
    .alloc = no_alloc,
    .free = no_free,
};
