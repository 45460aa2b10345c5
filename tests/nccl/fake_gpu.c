#include "nccl/fake_gpu.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "device/device.h"
#include "device/stream.h"
#include "device/stream_kernels.h"

/* The GPU's memory is address space without access rights. The byte SPAN behind each of its bytes
 * holds the value. The values of memory that is not allocated cannot be accessed, so that work on
 * freed memory kills the program. */
#define SPAN   ((size_t)16 << 30)
#define PAGE   ((size_t)4096)
#define BLOCKS 65536

#define QUERY_NS 100000 /* longest duration of a query */

/* An allocated block of the GPU's memory. */
struct block {
    char *ptr;
    size_t bytes; /* without the page that no block uses */
};

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static char *memory;
static size_t next, live; /* the next free address; the bytes of all blocks */
static struct block blocks[BLOCKS];
static size_t block_count;
static _Thread_local int selected;
static _Thread_local int capturing; /* captures that this thread has begun */

/* Kills the program. The message names a call that a real GPU would reject. */
static void reject(const char *call)
{
    fprintf(stderr, "fake GPU: %s\n", call);
    abort();
}

/* A capture in mode ThreadLocal forbids calls that allocate memory or wait for the GPU in the
 * thread that began it. A real GPU returns an error and invalidates the capture. */
static void refuse_in_capture(const char *call)
{
    char text[80];
    snprintf(text, sizeof text, "%s during a capture", call);
    if (capturing > 0)
        reject(text);
}

static bool is_gpu(const void *ptr)
{
    return memory && (const char *)ptr >= memory && (const char *)ptr < memory + SPAN;
}

void *fake_gpu_host(const void *ptr)
{
    return is_gpu(ptr) ? (char *)(uintptr_t)ptr + SPAN : (void *)(uintptr_t)ptr;
}

/* Returns the GPU's memory in bytes (FAKE_GPU_MEMORY). */
static size_t capacity(void)
{
    const char *text = getenv("FAKE_GPU_MEMORY");
    return text ? (size_t)strtoull(text, NULL, 10) : SPAN;
}

/* Call this function under the lock. */
static void *alloc_block(size_t bytes)
{
    if (!memory) {
        void *m =
            mmap(NULL, 2 * SPAN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        memory = m == MAP_FAILED ? NULL : m;
    }
    const size_t size = (bytes + PAGE - 1) / PAGE * PAGE;
    if (!memory || block_count == BLOCKS || live + size > capacity() || next + size > SPAN ||
        mprotect(memory + SPAN + next, size, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    blocks[block_count++] = (struct block){memory + next, size};
    live += size;
    next += size + PAGE;
    return blocks[block_count - 1].ptr;
}

void *fake_gpu_alloc(size_t bytes)
{
    refuse_in_capture("an allocation");
    pthread_mutex_lock(&memory_lock);
    void *ptr = alloc_block(bytes ? bytes : 1);
    pthread_mutex_unlock(&memory_lock);
    return ptr;
}

void fake_gpu_free(void *ptr)
{
    if (!ptr)
        return;
    refuse_in_capture("freeing memory");
    pthread_mutex_lock(&memory_lock);
    size_t i = 0;
    while (i < block_count && blocks[i].ptr != ptr)
        i++;
    if (i == block_count)
        reject("freed memory is not allocated");
    if (madvise(blocks[i].ptr + SPAN, blocks[i].bytes, MADV_DONTNEED) != 0 ||
        mprotect(blocks[i].ptr + SPAN, blocks[i].bytes, PROT_NONE) != 0)
        abort();
    live -= blocks[i].bytes;
    blocks[i] = blocks[--block_count];
    pthread_mutex_unlock(&memory_lock);
}

static void gpu_free(void *ptr, size_t bytes)
{
    (void)bytes;
    fake_gpu_free(ptr);
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

void fake_gpu_select(int index)
{
    selected = index;
}

static int info(int index, struct ddp_device_info *out, struct ddp_err *err)
{
    (void)err;
    const char *cpus = getenv("FAKE_GPU_CPUS"), *capability = getenv("FAKE_GPU_CAPABILITY");
    *out = (struct ddp_device_info){.name = "Fake",
                                    .runtime = "CUDA fake",
                                    .memory_bytes = (int64_t)capacity(),
                                    .capability = capability ? atoi(capability) : 90};
    snprintf(out->cpus, sizeof out->cpus, "%s", cpus ? cpus : "");
    snprintf(out->bus, sizeof out->bus, "0000:%02x:00.0", index);
    return 0;
}

static void copy(void *dst, const void *src, size_t bytes)
{
    refuse_in_capture("a synchronous copy");
    memcpy(fake_gpu_host(dst), fake_gpu_host(src), bytes);
}

static void fill(void *dst, unsigned char byte, size_t bytes)
{
    refuse_in_capture("a synchronous fill");
    memset(fake_gpu_host(dst), byte, bytes);
}

/* One piece of work of a stream or a graph. */
struct work {
    struct work *next;
    int (*progress)(void *arg);
    void (*drop)(void *arg); /* called when a graph that contains the work is freed; may be NULL */
    struct ddp_graph *launched; /* the last work of a launch: the graph; else NULL */
    size_t bytes;
    max_align_t arg[];
};

/* A destroyed graph is freed when its last launch is done. Its struct remains, so that later uses
 * are detected. */
struct ddp_graph {
    struct work *first;
    atomic_int launches; /* launches that are not done, plus 1 until it is destroyed */
    atomic_bool dead;    /* destroyed */
};

/* Its thread does the work in order. Any thread of the program may put work on the stream. */
struct ddp_stream {
    pthread_mutex_t lock;   /* protects first and stopping */
    pthread_cond_t changed; /* first or stopping has changed */
    pthread_t thread;
    struct work *first;
    bool stopping;
    struct ddp_graph *capturing;
    pthread_t captures; /* the thread that began the capture */
    int gpu;
    atomic_bool held;
};

struct ddp_event {
    _Atomic(int64_t) ns;
    _Atomic(uint64_t) recorded, happened; /* the number of records, and of those that happened */
    struct ddp_stream *on;                /* the stream of the last record */
};

static struct work *new_work(int (*progress)(void *), void (*drop)(void *), const void *arg,
                             size_t bytes)
{
    struct work *w = malloc(sizeof *w + bytes);
    if (!w)
        abort();
    *w = (struct work){.progress = progress, .drop = drop, .bytes = bytes};
    if (bytes > 0)
        memcpy(w->arg, arg, bytes);
    return w;
}

static void append(struct work **list, struct work *w)
{
    while (*list)
        list = &(*list)->next;
    *list = w;
}

/* Frees the work of a graph that is destroyed and that no stream executes. */
static void graph_unref(struct ddp_graph *g)
{
    if (atomic_fetch_sub(&g->launches, 1) > 1)
        return;
    while (g->first) {
        struct work *after = g->first->next;
        if (g->first->drop)
            g->first->drop(g->first->arg);
        free(g->first);
        g->first = after;
    }
}

/* Sleeps longer from poll to poll, because the ranks of a test share few cores. */
static void pause_after(unsigned polls)
{
    if (polls < 20)
        sched_yield();
    else
        ddp_sleep_ns(polls < 100 ? 20000 : 200000);
}

static void *run_stream(void *arg)
{
    struct ddp_stream *s = arg;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->first && !s->stopping)
            pthread_cond_wait(&s->changed, &s->lock);
        struct work *w = s->first;
        if (!w)
            break;
        pthread_mutex_unlock(&s->lock);
        for (unsigned polls = 0; !w->progress(w->arg); polls++)
            pause_after(polls);
        if (w->launched)
            graph_unref(w->launched);
        pthread_mutex_lock(&s->lock);
        s->first = w->next;
        free(w);
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void fake_gpu_put_dropped(void *stream, int (*progress)(void *arg), void (*drop)(void *arg),
                          const void *arg, size_t bytes)
{
    struct ddp_stream *s = stream;
    if (s->gpu != selected)
        reject("work for a stream of a GPU that the thread has not selected");
    pthread_mutex_lock(&s->lock);
    append(s->capturing ? &s->capturing->first : &s->first, new_work(progress, drop, arg, bytes));
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void fake_gpu_put(void *stream, int (*progress)(void *arg), const void *arg, size_t bytes)
{
    fake_gpu_put_dropped(stream, progress, NULL, arg, bytes);
}

bool fake_gpu_captures(void *stream)
{
    struct ddp_stream *s = stream;
    return s->capturing != NULL;
}

static int create(struct ddp_stream **out, struct ddp_err *err)
{
    struct ddp_stream *s = *out = ddp_calloc(1, sizeof *s);
    if (!s)
        return ddp_fail(err, DDP_ENOMEM, "no memory");
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->gpu = selected;
    if (pthread_create(&s->thread, NULL, run_stream, s) == 0)
        return 0;
    free(s);
    return ddp_fail(err, DDP_EUNAVAIL, "no thread for a stream");
}

static int stream_select(struct ddp_stream *s, struct ddp_err *err)
{
    return select_gpu(s->gpu, err);
}

/* Waits until the stream has done a piece of work, at most QUERY_NS. A rank that polls a real GPU
 * has a core of its own. Here, it would keep the core from the streams of the other ranks. */
static void wait_briefly(struct ddp_stream *s)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += QUERY_NS;
    if (end.tv_nsec >= 1000000000) {
        end.tv_nsec -= 1000000000;
        end.tv_sec++;
    }
    pthread_cond_timedwait(&s->changed, &s->lock, &end);
}

static int query(struct ddp_stream *s, struct ddp_err *err)
{
    (void)err;
    if (s->capturing)
        reject("a query of a stream that captures");
    pthread_mutex_lock(&s->lock);
    if (s->first)
        wait_briefly(s);
    const int done = s->first == NULL;
    pthread_mutex_unlock(&s->lock);
    return done;
}

static int wait_all(struct ddp_stream *s, struct ddp_err *err)
{
    (void)err;
    if (s->capturing)
        reject("a wait for a stream that captures");
    pthread_mutex_lock(&s->lock);
    while (s->first)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static void destroy(struct ddp_stream *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->changed);
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
    memcpy(fake_gpu_host(c->dst), fake_gpu_host(c->src), c->bytes);
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
    memset(fake_gpu_host(f->dst), f->byte, f->bytes);
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
    uint64_t wanted;
};

static int do_await(void *arg)
{
    const struct await_arg *a = arg;
    return atomic_load(&a->event->happened) >= a->wanted;
}

static void event_await(struct ddp_stream *s, struct ddp_event *e)
{
    const struct await_arg a = {e, atomic_load(&e->recorded)};
    if (e->on && e->on != s)
        fake_gpu_put(s, do_await, &a, sizeof a);
}

/* cudaEventSynchronize waits for the events; without a record there is no time. */
static int event_elapsed(struct ddp_event *from, struct ddp_event *to, double *ns,
                         struct ddp_err *err)
{
    refuse_in_capture("a wait for an event");
    if (!from->on || !to->on)
        return ddp_fail(err, DDP_EUNAVAIL, "cudaEventElapsedTime: CUDA error 400");
    for (unsigned polls = 0; atomic_load(&from->happened) < atomic_load(&from->recorded) ||
                             atomic_load(&to->happened) < atomic_load(&to->recorded);
         polls++)
        pause_after(polls);
    *ns = (double)(atomic_load(&to->ns) - atomic_load(&from->ns));
    return 0;
}

static int do_hold(void *arg)
{
    const struct ddp_stream *s = *(struct ddp_stream **)arg;
    return !atomic_load(&s->held);
}

static void hold(struct ddp_stream *s)
{
    if (!query(s, NULL))
        reject("the hold of a stream that is not idle");
    atomic_store(&s->held, true);
    fake_gpu_put(s, do_hold, &s, sizeof s);
}

static void release(struct ddp_stream *s)
{
    atomic_store(&s->held, false);
}

static int capture_begin(struct ddp_stream *s, struct ddp_err *err)
{
    if (s->capturing)
        reject("a second capture of a stream");
    struct ddp_graph *g = ddp_calloc(1, sizeof *g);
    if (!g)
        return ddp_fail(err, DDP_ENOMEM, "no memory");
    atomic_store(&g->launches, 1);
    s->captures = pthread_self();
    s->capturing = g;
    capturing++;
    return 0;
}

static int capture_end(struct ddp_stream *s, struct ddp_graph **out, struct ddp_err *err)
{
    (void)err;
    if (!s->capturing || !pthread_equal(s->captures, pthread_self()))
        reject("the end of a capture in a thread that did not begin it");
    *out = s->capturing;
    s->capturing = NULL;
    capturing--;
    return 0;
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 1;
}

static void graph_launch(struct ddp_graph *g, struct ddp_stream *s)
{
    if (atomic_load(&g->dead))
        reject("the launch of a destroyed graph");
    atomic_fetch_add(&g->launches, 1);
    pthread_mutex_lock(&s->lock);
    for (const struct work *w = g->first; w; w = w->next)
        append(&s->first, new_work(w->progress, NULL, w->arg, w->bytes));
    struct work *last = new_work(do_nothing, NULL, NULL, 0);
    last->launched = g;
    append(&s->first, last);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void graph_destroy(struct ddp_graph *g)
{
    if (!g)
        return;
    if (atomic_exchange(&g->dead, true))
        reject("a graph is destroyed twice");
    graph_unref(g);
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
    .hold = hold,
    .release = release,
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
