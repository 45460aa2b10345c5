/* The list of compressors, one DDP_COMPRESSOR(symbol) per line, for `allreduce --compress` and
 * `train --sync`. Help and `ddpbench list` show this order. */
DDP_COMPRESSOR(none)
DDP_COMPRESSOR(fp16)
DDP_COMPRESSOR(bf16)
DDP_COMPRESSOR(q8)
DDP_COMPRESSOR(q4)
DDP_COMPRESSOR(fp8_e4m3)
DDP_COMPRESSOR(fp8_e5m2)
DDP_COMPRESSOR(sign)
DDP_COMPRESSOR(powersgd)
DDP_COMPRESSOR(topk)
DDP_COMPRESSOR(threshold)
DDP_COMPRESSOR(oktopk)
