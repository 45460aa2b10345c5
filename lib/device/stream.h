/* Streams, events and graphs: work that a device does later, in order, while the host goes on.
 *
 * Reached through struct ddp_device (member `streams`). On the CPU a stream does its work at once.
 * Functions that put work on a stream return nothing: what fails then or later is kept by the
 * stream, whose work is undefined from there on, and told by query and wait. What it does not do:
 * allocate, choose a device (ddp_device.select), communicate. A stream belongs to one thread at a
 * time, an event too, but that what it was recorded for may be awaited by another.
 *
 * Nothing of a device survives fork(): the first call that needs one, ddp_device.probe included,
 * belongs into the process that uses it, after the ranks were started. */
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
    /* On the device that this thread selected. DDP_EUNAVAIL, DDP_ENOMEM. */
    int (*create)(struct ddp_stream **out, struct ddp_err *err) DDP_MUST_CHECK;
    /* This thread uses the device of s from now on: first of all where another one created it. */
    int (*select)(struct ddp_stream *s, struct ddp_err *err) DDP_MUST_CHECK;
    /* Waits for its work. NULL is fine. */
    void (*destroy)(struct ddp_stream *s);
    /* 1: all work is done; 0: not yet; below 0 what failed. Never blocks, so that a caller can poll
     * it beside a deadline. */
    int (*query)(struct ddp_stream *s, struct ddp_err *err) DDP_MUST_CHECK;
    /* Returns when all work is done, without a deadline: for work that waits for no other rank. */
    int (*wait)(struct ddp_stream *s, struct ddp_err *err) DDP_MUST_CHECK;
    /* What the device's own library calls a stream (cudaStream_t); NULL on the CPU. */
    void *(*native)(struct ddp_stream *s);

    /* dst, src: memory of the device, or of the host (for the host's side to be asynchronous, from
     * host_alloc). Both stay as they are until the stream has passed here. */
    void (*copy)(struct ddp_stream *s, void *dst, const void *src, size_t bytes);
    void (*fill)(struct ddp_stream *s, void *dst, unsigned char byte, size_t bytes);
    /* Memory of the host that the device reads and writes directly; NULL when exhausted. */
    void *(*host_alloc)(size_t bytes);
    void (*host_free)(void *ptr, size_t bytes);

    int (*event_create)(struct ddp_event **out, struct ddp_err *err) DDP_MUST_CHECK;
    void (*event_destroy)(struct ddp_event *e);
    /* The event happens when what is on the stream now is done; recorded again: from then on. */
    void (*event_record)(struct ddp_event *e, struct ddp_stream *s);
    /* What comes on s from here on waits for the event. */
    void (*event_await)(struct ddp_stream *s, struct ddp_event *e);
    /* Waits until both have happened; *ns: from `from` to `to` by the device's clock. */
    int (*event_elapsed)(struct ddp_event *from, struct ddp_event *to, double *ns,
                         struct ddp_err *err) DDP_MUST_CHECK;

    /* Work put on s between begin and end is not done but becomes a graph, which does it at each
     * launch with one call. DDP_EUNAVAIL where there are none (the CPU). A failed capture leaves
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
