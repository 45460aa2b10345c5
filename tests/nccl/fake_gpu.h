/* A GPU that is none: for tests of backend nccl where there is no GPU. The binary under test is
 * linked with fake_gpu.c in place of device cuda; its streams hold work until somebody asks them,
 * or one that awaits them, and the host cannot touch what lies in its memory: a program that tries
 * dies of it. So does a thread that puts work on a stream of another GPU than the one it selected.
 *
 *   FAKE_GPUS=N      there are so many (default 8); 0: none, "driver error 35" */
#ifndef DDP_TESTS_FAKE_GPU_H
#define DDP_TESTS_FAKE_GPU_H

#include <stddef.h>

/* Kernels on its streams (fake_layers.c): those that training uses. */
extern const struct ddp_stream_kernels fake_gpu_kernels;

/* Memory of the GPU, and what the host may use in its stead. */
void *fake_gpu_alloc(size_t bytes);
void *fake_gpu_host(const void *ptr); /* ptr itself when it is the host's */
int fake_gpu_selected(void);
/* Puts work on a stream (what its native() gave): progress is called, with a copy of arg [bytes] of
 * its own, until it returns 1. While the stream captures it becomes part of a graph. */
void fake_gpu_put(void *stream, int (*progress)(void *arg), const void *arg, size_t bytes);

#endif
