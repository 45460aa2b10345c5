/* One line per backend: DDP_BACKEND(symbol). */
DDP_BACKEND(self)
DDP_BACKEND(shm)
DDP_BACKEND(mpi)
DDP_BACKEND(ucx)
DDP_BACKEND(nccl)
