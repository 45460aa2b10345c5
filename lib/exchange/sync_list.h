/* One line a strategy: DDP_SYNC(symbol). */
DDP_SYNC(dense)
DDP_SYNC(none)
