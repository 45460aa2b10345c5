/* A fake GPU, with which backend nccl is tested without a real one. fake_gpu.c is linked into a
 * module that the program under test opens in place of ddpbench-cuda.so. Each stream has a thread
 * of its own, which does the stream's work. The program is killed, with a message that begins with
 * "fake GPU:", if
 *
 *   a thread puts work on a stream of a GPU that it has not selected;
 *   a thread that captures allocates or frees memory, copies or fills synchronously, or waits;
 *   a stream that captures is queried, or its capture ends in another thread;
 *   a destroyed graph is launched or destroyed again;
 *   memory is freed twice.
 *
 * The program also dies if the host accesses the GPU's memory, or if work uses freed memory.
 *
 *   FAKE_GPUS=N         the number of GPUs (default 8); 0: none, "CUDA error 35"
 *   FAKE_GPU_CPUS=LIST  the processors near each GPU, such as 0-1 (default: unknown)
 *   FAKE_GPU_MEMORY=N   the bytes of memory that a process can allocate on its GPU */
#ifndef DDP_TESTS_FAKE_GPU_H
#define DDP_TESTS_FAKE_GPU_H

#include <stdbool.h>
#include <stddef.h>

/* The kernels on its streams that training uses (fake_layers.c). */
extern const struct ddp_stream_kernels fake_gpu_kernels;

/* Memory of the GPU, and the host address of the same bytes. */
void *fake_gpu_alloc(size_t bytes); /* returns NULL if the memory is exhausted */
void fake_gpu_free(void *ptr);
void *fake_gpu_host(const void *ptr); /* returns ptr itself if it is host memory */
/* The GPU that the calling thread has selected. A new thread has selected GPU 0. */
int fake_gpu_selected(void);
void fake_gpu_select(int index);
/* Puts work on a stream. stream: the value of its native(). progress is called with a copy of
 * arg[bytes] until it returns 1. While the stream captures, the work becomes part of the graph. */
void fake_gpu_put(void *stream, int (*progress)(void *arg), const void *arg, size_t bytes);
/* Like fake_gpu_put. `drop` is called when a graph that contains the work has been destroyed and
 * its launches are done. */
void fake_gpu_put_dropped(void *stream, int (*progress)(void *arg), void (*drop)(void *arg),
                          const void *arg, size_t bytes);
bool fake_gpu_captures(void *stream); /* true if work put on the stream becomes part of a graph */

#endif
