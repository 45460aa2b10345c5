/* One line an algorithm: DDP_COLL(symbol). Order matters only to people: help and `list` show it.
 */
DDP_COLL(allreduce_flat)
DDP_COLL(allreduce_direct)
DDP_COLL(allreduce_staged)
DDP_COLL(allreduce_native)
DDP_COLL(allreduce_self)
