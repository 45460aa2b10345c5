/* The list of sparse algorithms, one DDP_SPARSE(symbol) per line. Help shows this order. If two
 * algorithms cost the same, `auto` uses the first one. */
DDP_SPARSE(direct)
DDP_SPARSE(allgather)
DDP_SPARSE(rd)
DDP_SPARSE(oktopk)
