#include "nccl/fake_gpu.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/mem.h"
#include "device/device.h"
#include "device/stream.h"
#include "device/stream_kernels.h"

/* The GPU's memory is address space that nobody may touch; SPAN behind each byte is the real one.
 */
#define SPAN ((size_t)16 << 30)

static char *memory;
static atomic_size_t used;
static _Thread_local int selected;

static bool is_gpu(const void *ptr)
{
    return memory && (const char *)ptr >= memory && (const char *)ptr < memory + SPAN;
}

void *fake_gpu_host(const void *ptr)
{
    return is_gpu(ptr) ? (char *)(uintptr_t)ptr + SPAN : (void *)(uintptr_t)ptr;
}

void *fake_gpu_alloc(size_t bytes)
{
    if (!memory) {
        void *m =
            mmap(NULL, 2 * SPAN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        memory = m == MAP_FAILED ? NULL : m;
    }
    const size_t size = (bytes + 4095) / 4096 * 4096 + 4096;
    const size_t at = atomic_fetch_add(&used, size);
    if (!memory || at + size > SPAN ||
        mprotect(memory + SPAN + at, size, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    return memory + at;
}

static void gpu_free(void *ptr, size_t bytes)
{
    (void)bytes;
    if (ptr && !is_gpu(ptr))
        abort(); /* never ours */
}

static int gpus(void)
{
    const char *text = getenv("FAKE_GPUS");
    return text ? (int)strtol(text, NULL, 10) : 8;
}

static int probe(struct ddp_err *err)
{
    return gpus() > 0 ? 0 : ddp_fail(err, DDP_EUNAVAIL, "no usable GPU: driver error 35");
}

static int select_gpu(int index, struct ddp_err *err)
{
    if (index < 0 || index >= gpus())
        return ddp_fail(err, DDP_EUNAVAIL, "there is no GPU %d", index);
    selected = index;
    return 0;
}

int fake_gpu_selected(void)
{
    return selected;
}

static int info(int index, struct ddp_device_info *out, struct ddp_err *err)
{
    (void)err;
    *out = (struct ddp_device_info){.name = "Fake", .runtime = "CUDA fake", .memory_bytes = SPAN};
    snprintf(out->bus, sizeof out->bus, "0000:%02x:00.0", index);
    return 0;
}

static void copy(void *dst, const void *src, size_t bytes)
{
    memcpy(fake_gpu_host(dst), fake_gpu_host(src), bytes);
}

static void fill(void *dst, unsigned char byte, size_t bytes)
{
    memset(fake_gpu_host(dst), byte, bytes);
}

/* One piece of work, and of a graph. */
struct work {
    struct work *next;
    int (*progress)(void *arg);
    size_t bytes;
    max_align_t arg[];
};

struct ddp_graph {
    struct work *first;
};

struct ddp_stream {
    struct work *first;
    struct ddp_graph *capturing;
};

struct ddp_event {
    int64_t ns;
};

static void append(struct work **list, int (*progress)(void *), const void *arg, size_t bytes)
{
    struct work *w = malloc(sizeof *w + bytes);
    if (!w)
        abort();
    w->next = NULL;
    w->progress = progress;
    w->bytes = bytes;
    memcpy(w->arg, arg, bytes);
    while (*list)
        list = &(*list)->next;
    *list = w;
}

static void drop_all(struct work **list)
{
    while (*list) {
        struct work *next = (*list)->next;
        free(*list);
        *list = next;
    }
}

void fake_gpu_put(void *stream, int (*progress)(void *arg), const void *arg, size_t bytes)
{
    struct ddp_stream *s = stream;
    append(s->capturing ? &s->capturing->first : &s->first, progress, arg, bytes);
}

static int create(struct ddp_stream **out, struct ddp_err *err)
{
    *out = ddp_calloc(1, sizeof **out);
    return *out ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory");
}

static void destroy(struct ddp_stream *s)
{
    if (s)
        drop_all(&s->first);
    free(s);
}

/* A step of the first piece at each call: nothing is done before somebody asks. */
static int query(struct ddp_stream *s, struct ddp_err *err)
{
    (void)err;
    struct work *w = s->first;
    if (w && w->progress(w->arg)) {
        s->first = w->next;
        free(w);
    }
    return s->first == NULL;
}

static int wait_all(struct ddp_stream *s, struct ddp_err *err)
{
    while (!query(s, err))
        ;
    return 0;
}

static void *native(struct ddp_stream *s)
{
    return s;
}

struct copy_arg {
    void *dst;
    const void *src;
    size_t bytes;
};

static int do_copy(void *arg)
{
    const struct copy_arg *c = arg;
    copy(c->dst, c->src, c->bytes);
    return 1;
}

static void stream_copy(struct ddp_stream *s, void *dst, const void *src, size_t bytes)
{
    const struct copy_arg c = {dst, src, bytes};
    fake_gpu_put(s, do_copy, &c, sizeof c);
}

struct fill_arg {
    void *dst;
    size_t bytes;
    unsigned char byte;
};

static int do_fill(void *arg)
{
    const struct fill_arg *f = arg;
    fill(f->dst, f->byte, f->bytes);
    return 1;
}

static void stream_fill(struct ddp_stream *s, void *dst, unsigned char byte, size_t bytes)
{
    const struct fill_arg f = {dst, bytes, byte};
    fake_gpu_put(s, do_fill, &f, sizeof f);
}

static int event_create(struct ddp_event **out, struct ddp_err *err)
{
    *out = ddp_calloc(1, sizeof **out);
    return *out ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory");
}

static void event_destroy(struct ddp_event *e)
{
    free(e);
}

static int do_record(void *arg)
{
    struct ddp_event *e = *(struct ddp_event **)arg;
    e->ns = ddp_now_ns();
    return 1;
}

static void event_record(struct ddp_event *e, struct ddp_stream *s)
{
    fake_gpu_put(s, do_record, &e, sizeof e);
}

static void event_await(struct ddp_stream *s, struct ddp_event *e)
{
    (void)s;
    (void)e;
}

static int event_elapsed(struct ddp_event *from, struct ddp_event *to, double *ns,
                         struct ddp_err *err)
{
    (void)err;
    *ns = (double)(to->ns - from->ns);
    return 0;
}

static int capture_begin(struct ddp_stream *s, struct ddp_err *err)
{
    s->capturing = ddp_calloc(1, sizeof *s->capturing);
    return s->capturing ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory");
}

static int capture_end(struct ddp_stream *s, struct ddp_graph **out, struct ddp_err *err)
{
    (void)err;
    *out = s->capturing;
    s->capturing = NULL;
    return 0;
}

static void graph_launch(struct ddp_graph *g, struct ddp_stream *s)
{
    for (const struct work *w = g->first; w; w = w->next)
        append(&s->first, w->progress, w->arg, w->bytes);
}

static void graph_destroy(struct ddp_graph *g)
{
    if (g)
        drop_all(&g->first);
    free(g);
}

static const struct ddp_stream_ops streams = {
    .create = create,
    .destroy = destroy,
    .query = query,
    .wait = wait_all,
    .native = native,
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

extern const struct ddp_device ddp_dev_cuda; /* device_list.h */
const struct ddp_device ddp_dev_cuda = {
    .name = "cuda",
    .summary = "fake GPUs",
    .probe = probe,
    .count = gpus,
    .select = select_gpu,
    .info = info,
    .alloc = fake_gpu_alloc,
    .free = gpu_free,
    .copy = copy,
    .copy_nt = copy,
    .fill = fill,
    .streams = &streams,
    .stream_kernels = &fake_gpu_kernels,
};
