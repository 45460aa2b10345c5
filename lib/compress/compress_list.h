/* One line per compressor: DDP_COMPRESSOR(symbol). Help and `ddpbench list` show them in this
 * order. */
DDP_COMPRESSOR(none)
DDP_COMPRESSOR(fp16)
DDP_COMPRESSOR(bf16)
DDP_COMPRESSOR(topk)
DDP_COMPRESSOR(threshold)
DDP_COMPRESSOR(oktopk)
