/* One line per device: DDP_DEVICE(symbol) stands for `const struct ddp_device ddp_dev_<symbol>`. */
DDP_DEVICE(cpu)
DDP_DEVICE(cuda)
