/* The table of devices. */
#include "device/device.h"

#define DDP_DEVICE(symbol) extern const struct ddp_device ddp_dev_##symbol;
#include "device/device_list.h"
#undef DDP_DEVICE

const struct ddp_device *const *ddp_device_all(void)
{
    static const struct ddp_device *const all[] = {
#define DDP_DEVICE(symbol) &ddp_dev_##symbol,
#include "device/device_list.h"
#undef DDP_DEVICE
        NULL,
    };
    return all;
}
