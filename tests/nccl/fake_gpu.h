/* A fake GPU, with which backend nccl is tested without a real one. fake_gpu.c is linked into a
 * module that the program under test opens in place of ddpbench-cuda.so. Streams do their work only
 * when they, or a stream that awaits them, are queried. A program is killed if the host accesses
 * the GPU's memory, or if a thread puts work on a stream of a GPU that it has not selected.
 *
 *   FAKE_GPUS=N      the number of GPUs (default 8); 0: none, "CUDA error 35" */
#ifndef DDP_TESTS_FAKE_GPU_H
#define DDP_TESTS_FAKE_GPU_H

#include <stddef.h>

/* The kernels on its streams that training uses (fake_layers.c). */
extern const struct ddp_stream_kernels fake_gpu_kernels;

/* Memory of the GPU, and the host address of the same bytes. */
void *fake_gpu_alloc(size_t bytes);
void *fake_gpu_host(const void *ptr); /* returns ptr itself if it is host memory */
int fake_gpu_selected(void);
/* Puts work on a stream. stream: the value of its native(). progress is called with a copy of
 * arg[bytes] until it returns 1. While the stream captures, the work becomes part of the graph. */
void fake_gpu_put(void *stream, int (*progress)(void *arg), const void *arg, size_t bytes);

#endif
