#include "nccl/fake_gpu.h"

#include <pthread.h>
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

/* The GPU's memory is address space without access rights. The byte SPAN behind each of its bytes
 * holds the value. */
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
        abort(); /* the address is not in the GPU's memory */
}

static int gpus(void)
{
    const char *text = getenv("FAKE_GPUS");
    return text ? (int)strtol(text, NULL, 10) : 8;
}

static int probe(struct ddp_err *err)
{
    return gpus() > 0 ? 0 : ddp_fail(err, DDP_EUNAVAIL, "no usable GPU: CUDA error 35");
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

/* One piece of work of a stream or a graph. */
struct work {
    struct work *next;
    int (*progress)(void *arg);
    size_t bytes;
    max_align_t arg[];
};

struct ddp_graph {
    struct work *first;
};

/* One thread puts work on the stream; other threads may drive it as well. */
struct ddp_stream {
    pthread_mutex_t lock; /* protects first and busy */
    struct work *first;
    bool busy; /* a thread is doing the first piece of work */
    struct ddp_graph *capturing;
    int gpu;
};

struct ddp_event {
    _Atomic(int64_t) ns;
    _Atomic(uint64_t) recorded, happened; /* the number of records, and of those that happened */
    struct ddp_stream *on;                /* the stream of the last record */
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
    if (s->gpu != selected)
        abort(); /* on a real GPU the launch fails */
    pthread_mutex_lock(&s->lock);
    append(s->capturing ? &s->capturing->first : &s->first, progress, arg, bytes);
    pthread_mutex_unlock(&s->lock);
}

static int create(struct ddp_stream **out, struct ddp_err *err)
{
    struct ddp_stream *s = *out = ddp_calloc(1, sizeof *s);
    if (!s)
        return ddp_fail(err, DDP_ENOMEM, "no memory");
    pthread_mutex_init(&s->lock, NULL);
    s->gpu = selected;
    return 0;
}

static int stream_select(struct ddp_stream *s, struct ddp_err *err)
{
    return select_gpu(s->gpu, err);
}

/* Each call makes one step of the first piece of work; no work is done without a call. The lock is
 * not held meanwhile, because the step may drive another stream. */
static int query(struct ddp_stream *s, struct ddp_err *err)
{
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct work *w = s->busy ? NULL : s->first;
    s->busy = s->busy || w;
    pthread_mutex_unlock(&s->lock);
    const bool finished = w && w->progress(w->arg);
    pthread_mutex_lock(&s->lock);
    if (finished) {
        s->first = w->next;
        free(w);
    }
    if (w)
        s->busy = false;
    const int done = s->first == NULL;
    pthread_mutex_unlock(&s->lock);
    return done;
}

static int wait_all(struct ddp_stream *s, struct ddp_err *err)
{
    while (!query(s, err))
        ;
    return 0;
}

static void destroy(struct ddp_stream *s)
{
    struct ddp_err ignored = DDP_ERR_INIT;
    if (!s)
        return;
    (void)!wait_all(s, &ignored);
    pthread_mutex_destroy(&s->lock);
    free(s);
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
    atomic_store(&e->ns, ddp_now_ns());
    atomic_fetch_add(&e->happened, 1);
    return 1;
}

static void event_record(struct ddp_event *e, struct ddp_stream *s)
{
    e->on = s;
    atomic_fetch_add(&e->recorded, 1);
    fake_gpu_put(s, do_record, &e, sizeof e);
}

struct await_arg {
    struct ddp_event *event;
    struct ddp_stream *on;
    uint64_t wanted;
};

/* The streams of a real GPU proceed by themselves. Here the waiting stream drives the other one. */
static int do_await(void *arg)
{
    const struct await_arg *a = arg;
    if (atomic_load(&a->event->happened) >= a->wanted)
        return 1;
    (void)query(a->on, NULL);
    return atomic_load(&a->event->happened) >= a->wanted;
}

static void event_await(struct ddp_stream *s, struct ddp_event *e)
{
    const struct await_arg a = {e, e->on, atomic_load(&e->recorded)};
    if (a.on && a.on != s)
        fake_gpu_put(s, do_await, &a, sizeof a);
}

static int event_elapsed(struct ddp_event *from, struct ddp_event *to, double *ns,
                         struct ddp_err *err)
{
    (void)err;
    *ns = (double)(atomic_load(&to->ns) - atomic_load(&from->ns));
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
    pthread_mutex_lock(&s->lock);
    for (const struct work *w = g->first; w; w = w->next)
        append(&s->first, w->progress, w->arg, w->bytes);
    pthread_mutex_unlock(&s->lock);
}

static void graph_destroy(struct ddp_graph *g)
{
    if (g)
        drop_all(&g->first);
    free(g);
}

static const struct ddp_stream_ops streams = {
    .create = create,
    .select = stream_select,
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
