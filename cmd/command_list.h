/* One line a command: DDP_COMMAND(symbol). The order is the order in help. */
DDP_COMMAND(allreduce)
DDP_COMMAND(train)
DDP_COMMAND(doctor)
DDP_COMMAND(list)
DDP_COMMAND(explain)
DDP_COMMAND(completion)
DDP_COMMAND(help)
