/* One line a device: DDP_DEVICE(symbol). */
DDP_DEVICE(cpu)
