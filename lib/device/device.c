/* The list of devices. */
#include "device/device.h"

#include "device/cuda/cuda_module.h"

const struct ddp_device *const *ddp_device_all(void)
{
    static const struct ddp_device *const all[] = {&ddp_dev_cpu, &ddp_device_cuda, NULL};
    return all;
}
