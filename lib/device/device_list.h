/* One line a device: DDP_DEVICE(symbol), defined as `const struct ddp_device ddp_dev_<symbol>`. */
DDP_DEVICE(cpu)
DDP_DEVICE(cuda)
