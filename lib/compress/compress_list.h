/* One line a compressor: DDP_COMPRESSOR(symbol). Order matters only to people: help and `list` show
 * it. */
DDP_COMPRESSOR(none)
DDP_COMPRESSOR(fp16)
DDP_COMPRESSOR(bf16)
DDP_COMPRESSOR(topk)
DDP_COMPRESSOR(threshold)
DDP_COMPRESSOR(oktopk)
