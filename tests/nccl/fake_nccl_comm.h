/* Communicators of the fake NCCL (fake_nccl.c): a shared file in which each rank publishes its
 * state and data, the work that a call starts, and the registered memory. */
#ifndef DDP_TESTS_FAKE_NCCL_COMM_H
#define DDP_TESTS_FAKE_NCCL_COMM_H

#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "nccl/fake_gpu.h"

#define RANKS     16
#define AREA      ((size_t)8 << 20)
#define MOVES     (2 * RANKS)
#define REGIONS   64
#define POLL_NS   100000
#define SLOW_NS   3000000   /* additional time that the last rank needs to open a communicator */
#define REPORT_NS 500000000 /* an abort that takes longer reports that it waits for graphs */

/* The part of the shared file that one rank writes and all ranks read. */
struct shown {
    /* Present; has started its first operation; has called ncclCommFinalize; the splits and the
     * windows that the rank requested. */
    atomic_int here, connects, finalizes, splits, windows;
    char host[64];
    int gpu;
    /* Operations whose data is in area, and operations that this rank has finished. A rank writes
     * its area again only when all ranks have finished the operation before. */
    _Atomic(uint64_t) published, done;
    size_t sent[RANKS]; /* the offset in area of the data for each peer, plus 1 */
    unsigned char area[AREA];
};

enum what { REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, MOVE, REDUCE_PARTS };

/* A send, a receive, or a reduce inside a group. The peer of a reduce is its root. */
struct move {
    bool sends;
    int peer;
    const void *from;
    void *to;
    size_t bytes;
};

struct operation {
    enum what what;
    ncclComm_t comm;
    uint64_t seq;
    bool published;
    int64_t done_ns; /* 0, or the end of the time that the operation takes on the GPU */
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t dtype;
    ncclRedOp_t op;
    int root; /* -1: all ranks */
    struct move moves[MOVES];
    int move_count;
};

/* Memory that is registered with a communicator, or that ncclMemAlloc returned. */
struct region {
    const char *ptr; /* NULL: the entry is free */
    size_t bytes;
};

struct ncclComm {
    struct shown *all;
    char path[NCCL_UNIQUE_ID_BYTES];
    bool blocking;
    /* The work of the last call. It is called until it no longer returns ncclInProgress, in
     * `thread` if the communicator is non-blocking, else in the calling thread. */
    ncclResult_t (*work)(struct ncclComm *);
    pthread_t thread;
    bool running;               /* `thread` must be joined */
    _Atomic(int) state, graphs; /* an ncclResult_t; the operations in graphs that exist */
    atomic_bool aborted, connected;
    ncclComm_t child; /* a split: the communicator that is being opened */
    bool child_blocking;
    ncclComm_t *split;       /* a split: the caller's variable */
    ncclWindow_t *window;    /* a window: the caller's variable */
    struct region region;    /* a window: the memory that is being registered */
    struct operation launch; /* an operation that goes to the stream */
    cudaStream_t stream;
    struct region registered[REGIONS];
    int rank, size, at;
    uint64_t seq;
    uint64_t put; /* operations that were put on a stream, without those in graphs */
    const char *fault;
};

static void pause_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns the value of a variable in microseconds, as nanoseconds; 0 if it is not set. */
static long delay_ns(const char *name)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) * 1000 : 0;
}

static ncclResult_t make_file(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)(RANKS * sizeof(struct shown))) != 0)
        return ncclSystemError;
    close(fd);
    return ncclSuccess;
}

static bool faulty(const struct ncclComm *c, const char *fault)
{
    return c->fault && strcmp(c->fault, fault) == 0;
}

static ncclResult_t finish(struct ncclComm *c)
{
    ncclResult_t result;
    while ((result = c->work(c)) == ncclInProgress && !atomic_load(&c->aborted))
        pause_ns(POLL_NS);
    return result == ncclInProgress ? ncclInternalError : result;
}

static void *run_work(void *arg)
{
    struct ncclComm *c = arg;
    fake_gpu_select(c->all[c->rank].gpu);
    pause_ns(POLL_NS); /* the caller's call returns before the work is done */
    atomic_store(&c->state, (int)finish(c));
    return NULL;
}

/* ncclGroupEndInternal (src/group.cc): does the work of a call and returns its result. If the
 * communicator is non-blocking, starts a thread for the work and returns ncclInProgress. */
static ncclResult_t begin(struct ncclComm *c, ncclResult_t (*work)(struct ncclComm *))
{
    c->work = work;
    if (c->blocking) {
        atomic_store(&c->state, (int)finish(c));
        return (ncclResult_t)atomic_load(&c->state);
    }
    atomic_store(&c->state, (int)ncclInProgress);
    if (pthread_create(&c->thread, NULL, run_work, c) != 0)
        abort();
    c->running = true;
    return ncclInProgress;
}

/* Joins the thread of the last call, which has ended or ends soon. */
static void join_thread(struct ncclComm *c)
{
    if (c->running)
        pthread_join(c->thread, NULL);
    c->running = false;
}

/* ncclCommEnsureReady (src/init.cc): a call before the last one is done is an invalid argument. */
static ncclResult_t ensure_ready(struct ncclComm *c)
{
    const ncclResult_t state = (ncclResult_t)atomic_load(&c->state);
    if (state == ncclInProgress)
        return ncclInvalidArgument;
    join_thread(c);
    return atomic_load(&c->aborted) ? ncclInvalidUsage : state;
}

/* True if all ranks have requested at least as many as this rank. `offset`: of the member. */
static bool all_reached(const struct ncclComm *c, size_t offset)
{
    const char *first = (const char *)c->all;
    const int mine = atomic_load((atomic_int *)(first + offset + (size_t)c->rank * sizeof *c->all));
    for (int r = 0; r < c->size; r++)
        if (atomic_load((atomic_int *)(first + offset + (size_t)r * sizeof *c->all)) < mine)
            return false;
    return true;
}

static ncclResult_t init_work(struct ncclComm *c)
{
    if (faulty(c, "init-hangs"))
        return ncclInProgress;
    if (faulty(c, "init-fails"))
        return ncclSystemError;
    if (!all_reached(c, offsetof(struct shown, here)))
        return ncclInProgress;
    for (int r = 0; r < c->size; r++)
        for (int q = 0; q < r; q++)
            if (c->all[q].gpu == c->all[r].gpu && strcmp(c->all[q].host, c->all[r].host) == 0)
                return ncclInvalidUsage;
    if (c->rank == c->size - 1)
        ddp_sleep_ns(SLOW_NS + delay_ns("FAKE_NCCL_INIT_US"));
    if (c->rank == 0)
        unlink(c->path);
    return ncclSuccess;
}

static ncclResult_t join(ncclComm_t *comm, int nranks, const char *path, int rank, bool blocking)
{
    const char *host = getenv("NCCL_HOSTID"), *at = getenv("FAKE_NCCL_AT");
    struct ncclComm *c = calloc(1, sizeof *c);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (nranks > RANKS || !c || fd < 0)
        return ncclInvalidArgument;
    snprintf(c->path, sizeof c->path, "%s", path);
    c->all = mmap(NULL, RANKS * sizeof *c->all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (c->all == MAP_FAILED)
        return ncclSystemError;
    c->blocking = blocking;
    c->rank = rank;
    c->size = nranks;
    c->fault = rank == 1 ? getenv("FAKE_NCCL_FAULT") : NULL;
    c->at = at ? (int)strtol(at, NULL, 10) : 3;
    snprintf(c->all[rank].host, sizeof c->all[rank].host, "%s", host ? host : "");
    c->all[rank].gpu = fake_gpu_selected();
    atomic_store(&c->all[rank].here, 1);
    *comm = c;
    return ncclSuccess;
}

static void name_split(const struct ncclComm *c, int n, char *path, size_t bytes)
{
    snprintf(path, bytes, "%.100s-%d", c->path, n);
}

/* ncclCommInitRankFunc (src/init.cc): the thread sets the caller's variable when the child is
 * complete. The child is never in progress itself; the parent is. */
static ncclResult_t split_work(struct ncclComm *c)
{
    char path[NCCL_UNIQUE_ID_BYTES];
    if (faulty(c, "split-hangs"))
        return ncclInProgress;
    if (faulty(c, "split-fails"))
        return ncclSystemError;
    if (!all_reached(c, offsetof(struct shown, splits)))
        return ncclInProgress;
    name_split(c, atomic_load(&c->all[c->rank].splits), path, sizeof path);
    if (c->child == NULL && join(&c->child, c->size, path, c->rank, c->child_blocking) != 0)
        return ncclSystemError;
    const ncclResult_t opened = init_work(c->child);
    if (opened == ncclInProgress)
        return ncclInProgress;
    *c->split = c->child;
    c->child = NULL;
    return opened;
}

static struct region *find_region(struct region *list, size_t count, const void *ptr)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].ptr && (const char *)ptr >= list[i].ptr &&
            (const char *)ptr < list[i].ptr + list[i].bytes)
            return &list[i];
    return NULL;
}

static ncclResult_t add_region(struct region *list, size_t count, struct region r)
{
    for (size_t i = 0; i < count; i++)
        if (!list[i].ptr) {
            list[i] = r;
            return ncclSuccess;
        }
    return ncclSystemError;
}

/* ncclDevrWindowRegisterInGroup (src/dev_runtime.cc): the thread sets the caller's variable, then
 * all ranks meet in bootstrapBarrier. */
static ncclResult_t window_work(struct ncclComm *c)
{
    if (faulty(c, "window-hangs"))
        return ncclInProgress;
    if (faulty(c, "window-fails"))
        return ncclSystemError;
    *c->window = (ncclWindow_t)(uintptr_t)c->region.ptr;
    if (!all_reached(c, offsetof(struct shown, windows)))
        return ncclInProgress;
    return add_region(c->registered, REGIONS, c->region);
}

/* commDestroySync (src/init.cc) waits until all graphs that contain an operation of the
 * communicator are destroyed. */
static ncclResult_t graphs_work(struct ncclComm *c)
{
    return atomic_load(&c->graphs) > 0 ? ncclInProgress : ncclSuccess;
}

static ncclResult_t finalize_work(struct ncclComm *c)
{
    return all_reached(c, offsetof(struct shown, finalizes)) ? graphs_work(c) : ncclInProgress;
}

static void wait_for_graphs(struct ncclComm *c, const char *call)
{
    for (long waited = 0; graphs_work(c) == ncclInProgress; waited += POLL_NS) {
        if (waited == REPORT_NS)
            fprintf(stderr, "fake NCCL: %s waits for %d captured operations\n", call,
                    atomic_load(&c->graphs));
        pause_ns(POLL_NS);
    }
}

#endif
