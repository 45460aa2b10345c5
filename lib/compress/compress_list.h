/* The list of compressors, one DDP_COMPRESSOR(symbol) per line, for `allreduce --compress` and
 * `train --sync`. Help and `ddpbench list` show this order. */
DDP_COMPRESSOR(none)
DDP_COMPRESSOR(fp16)
DDP_COMPRESSOR(bf16)
DDP_COMPRESSOR(topk)
DDP_COMPRESSOR(threshold)
DDP_COMPRESSOR(oktopk)
