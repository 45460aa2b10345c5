/* The list of devices. */
#include "device/device.h"

#include <string.h>

#include "device/cuda/cuda_module.h"

const struct ddp_device *const *ddp_device_all(void)
{
    static const struct ddp_device *const all[] = {&ddp_dev_cpu, &ddp_device_cuda, NULL};
    return all;
}

const struct ddp_device *ddp_device_find(const char *name)
{
    const struct ddp_device *const *d = ddp_device_all();
    while (*d != NULL && strcmp((*d)->name, name) != 0)
        d++;
    return *d;
}

bool ddp_device_is_cpu(const struct ddp_device *device)
{
    return strcmp(device->name, ddp_dev_cpu.name) == 0;
}
