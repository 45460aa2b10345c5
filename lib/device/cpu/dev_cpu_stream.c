/* Streams of the processor. Each call completes its work before it returns. With these streams,
 * code for accelerators can run and be tested on machines without an accelerator. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "device/cpu/dev_cpu_impl.h"

struct ddp_stream {
    int unused;
};

struct ddp_event {
    int64_t ns;
};

static int stream_create(struct ddp_stream **out, struct ddp_err *err)
{
    struct ddp_stream *s = ddp_calloc(1, sizeof *s);
    if (s == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a stream");
    *out = s;
    return 0;
}

static int stream_select(struct ddp_stream *s, struct ddp_err *err)
{
    return 0;
}

static void stream_destroy(struct ddp_stream *s)
{
    free(s);
}

static int stream_query(struct ddp_stream *s, struct ddp_err *err)
{
    return 1;
}

static int stream_wait(struct ddp_stream *s, struct ddp_err *err)
{
    return 0;
}

static void *stream_native(struct ddp_stream *s)
{
    return NULL;
}

static void stream_copy(struct ddp_stream *s, void *dst, const void *src, size_t bytes)
{
    if (bytes != 0)
        memcpy(dst, src, bytes);
}

static void stream_fill(struct ddp_stream *s, void *dst, unsigned char byte, size_t bytes)
{
    if (bytes != 0)
        memset(dst, byte, bytes);
}

static int event_create(struct ddp_event **out, struct ddp_err *err)
{
    struct ddp_event *e = ddp_calloc(1, sizeof *e);
    if (e == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for an event");
    *out = e;
    return 0;
}

static void event_destroy(struct ddp_event *e)
{
    free(e);
}

static void event_record(struct ddp_event *e, struct ddp_stream *s)
{
    e->ns = ddp_now_ns();
}

static void event_await(struct ddp_stream *s, struct ddp_event *e)
{
}

static int event_elapsed(struct ddp_event *from, struct ddp_event *to, double *ns,
                         struct ddp_err *err)
{
    *ns = (double)(to->ns - from->ns);
    return 0;
}

static int capture_begin(struct ddp_stream *s, struct ddp_err *err)
{
    return ddp_fail(err, DDP_EUNAVAIL, "device cpu has no graphs: its streams do all work at once");
}

static int capture_end(struct ddp_stream *s, struct ddp_graph **out, struct ddp_err *err)
{
    return capture_begin(s, err);
}

static void graph_launch(struct ddp_graph *g, struct ddp_stream *s)
{
}

static void graph_destroy(struct ddp_graph *g)
{
}

const struct ddp_stream_ops ddp_cpu_streams = {
    .create = stream_create,
    .select = stream_select,
    .destroy = stream_destroy,
    .query = stream_query,
    .wait = stream_wait,
    .native = stream_native,
    .copy = stream_copy,
    .fill = stream_fill,
    .host_alloc = ddp_alloc_pages,
    .host_free = ddp_free_pages,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_await = event_await,
    .event_elapsed = event_elapsed,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
};
