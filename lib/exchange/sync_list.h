/* One line per strategy: DDP_SYNC(symbol). `compressed` stands for all compressors. */
DDP_SYNC(dense)
DDP_SYNC(compressed)
DDP_SYNC(zero1)
DDP_SYNC(partial)
DDP_SYNC(local)
DDP_SYNC(diloco)
DDP_SYNC(none)
