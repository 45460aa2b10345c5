/* One line an algorithm: DDP_SPARSE(symbol). Order matters only to people, and where two cost the
 * same: the first is taken. */
DDP_SPARSE(direct)
DDP_SPARSE(allgather)
DDP_SPARSE(rd)
DDP_SPARSE(oktopk)
