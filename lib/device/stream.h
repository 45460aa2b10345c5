/* Streams, events and graphs: work that a device does later, in order, while the host continues.
 *
 * Callers reach these functions through struct ddp_device (member `streams`). On the CPU a stream
 * does its work at once. Functions that put work on a stream return nothing. The stream keeps the
 * first error of its work; `query` and `wait` return this error. The results of all later work are
 * undefined. These functions allocate no device memory and do not communicate. Only one thread at a
 * time uses a stream or an event, except that another thread may wait for a recorded event.
 *
 * The driver of an accelerator does not work in a child process if the parent has started the
 * driver before fork(). Therefore a process must not use an accelerator, not even by
 * ddp_device.probe, before it forks ranks. */
#ifndef DDP_DEVICE_STREAM_H
#define DDP_DEVICE_STREAM_H

#include <stddef.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_stream;
struct ddp_event;
struct ddp_graph;

struct ddp_stream_ops {
    /* Creates a stream on the device that the calling thread has selected (`select` in device.h).
     * Fails with DDP_EUNAVAIL or DDP_ENOMEM. */
    int (*create)(struct ddp_stream **out, struct ddp_err *err) DDP_MUST_CHECK;
    /* Makes the calling thread use the device of s from now on. A thread that did not create s
     * calls this first. */
    int (*select)(struct ddp_stream *s, struct ddp_err *err) DDP_MUST_CHECK;
    /* Waits for the stream's work, then frees the stream. NULL is allowed. */
    void (*destroy)(struct ddp_stream *s);
    /* Returns 1 if all work is done, 0 if not yet, or a negative code if work failed. Never blocks,
     * so that the caller can poll and check a deadline. */
    int (*query)(struct ddp_stream *s, struct ddp_err *err) DDP_MUST_CHECK;
    /* Returns when all work is done. This function has no deadline, so use it only for work that
     * does not wait for other ranks. */
    int (*wait)(struct ddp_stream *s, struct ddp_err *err) DDP_MUST_CHECK;
    /* Returns the device library's own stream handle (cudaStream_t), or NULL on the CPU. */
    void *(*native)(struct ddp_stream *s);

    /* Copies bytes. dst and src are device or host memory. The copy is asynchronous only if all
     * host memory comes from host_alloc. The caller must not touch the buffers until the stream has
     * completed the copy. */
    void (*copy)(struct ddp_stream *s, void *dst, const void *src, size_t bytes);
    void (*fill)(struct ddp_stream *s, void *dst, unsigned char byte, size_t bytes);
    /* Returns host memory that the device can read and write directly, or NULL if memory is
     * exhausted. */
    void *(*host_alloc)(size_t bytes);
    void (*host_free)(void *ptr, size_t bytes);

    int (*event_create)(struct ddp_event **out, struct ddp_err *err) DDP_MUST_CHECK;
    void (*event_destroy)(struct ddp_event *e);
    /* The event occurs when the stream has done all work that was put on it before. Recording the
     * event again replaces the earlier recording. */
    void (*event_record)(struct ddp_event *e, struct ddp_stream *s);
    /* Work that is put on s after this call waits for the event. */
    void (*event_await)(struct ddp_stream *s, struct ddp_event *e);
    /* Waits until both events have occurred and sets *ns to the time between them by the device's
     * clock. */
    int (*event_elapsed)(struct ddp_event *from, struct ddp_event *to, double *ns,
                         struct ddp_err *err) DDP_MUST_CHECK;

    /* Work that is put on s after hold() waits until release() is called. The caller can thus put
     * several pieces of work on the stream before the first one begins. s must be idle when hold()
     * is called. Between the two calls the caller must not wait for s, and must put at most about
     * 100 pieces of work on s. Otherwise the wait or the last piece of work might block forever. On
     * the CPU, whose streams work at once, both functions do nothing. */
    void (*hold)(struct ddp_stream *s);
    void (*release)(struct ddp_stream *s);

    /* The device does not execute work that is put on s between capture_begin and capture_end.
     * Instead, the work is recorded in a graph, and graph_launch executes the graph with one call.
     * On the CPU, which has no graphs, capture_begin returns DDP_EUNAVAIL. A failed capture creates
     * no graph. */
    int (*capture_begin)(struct ddp_stream *s, struct ddp_err *err) DDP_MUST_CHECK;
    int (*capture_end)(struct ddp_stream *s, struct ddp_graph **out,
                       struct ddp_err *err) DDP_MUST_CHECK;
    void (*graph_launch)(struct ddp_graph *g, struct ddp_stream *s);
    void (*graph_destroy)(struct ddp_graph *g);
};

#ifdef __cplusplus
}
#endif
#endif
