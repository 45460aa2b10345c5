/* Communicators of the fake NCCL (fake_nccl.c): a shared file in which each rank publishes its
 * state and data. */
#ifndef DDP_TESTS_FAKE_NCCL_COMM_H
#define DDP_TESTS_FAKE_NCCL_COMM_H

#include <fcntl.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nccl/fake_gpu.h"

#define RANKS      16
#define AREA       ((size_t)8 << 20)
#define SLOW_POLLS 5 /* additional answers "in progress" while a communicator opens */
#define MOVES      (2 * RANKS)

/* The part of the shared file that one rank writes and all ranks read. */
struct shown {
    atomic_int here, splits, windows; /* present; the splits and windows that the rank requested */
    char host[64];
    int gpu;
    /* Operations whose data is in area, and operations that this rank has finished. A rank writes
     * its area again only when all ranks have finished the operation before. */
    _Atomic(uint64_t) published, done;
    size_t sent[RANKS]; /* the offset in area of the data for each peer, plus 1 */
    unsigned char area[AREA];
};

/* The call that NCCL's thread is working on while the communicator is in progress. */
enum job { IDLE, INIT, SPLIT, WINDOW, LAUNCH, FINALIZE };

enum what { REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, MOVE };

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
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t dtype;
    ncclRedOp_t op;
    int root; /* -1: all ranks */
    struct move moves[MOVES];
    int move_count;
};

struct ncclComm {
    struct shown *all;
    char path[NCCL_UNIQUE_ID_BYTES];
    enum job job;
    ncclComm_t child;        /* SPLIT: the communicator that is being opened */
    ncclComm_t *split;       /* SPLIT: the caller's variable */
    ncclWindow_t *window;    /* WINDOW: the caller's variable */
    void *buffer;            /* WINDOW: the buffer that is being registered */
    struct operation launch; /* LAUNCH: the operation that goes to the stream */
    cudaStream_t stream;
    int rank, size, polls, at;
    uint64_t seq;
    ncclResult_t state;
    bool aborted;
    const char *fault;
};

static ncclResult_t make_file(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)(RANKS * sizeof(struct shown))) != 0)
        return ncclSystemError;
    close(fd);
    return ncclSuccess;
}

static void begin(struct ncclComm *c, enum job job)
{
    c->job = job;
    c->polls = 0;
    c->state = ncclInProgress;
}

static void end(struct ncclComm *c, ncclResult_t state)
{
    c->job = IDLE;
    c->state = state;
}

static bool faulty(const struct ncclComm *c, const char *fault)
{
    return c->fault && strcmp(c->fault, fault) == 0;
}

/* ncclCommEnsureReady (src/init.cc): a call before the last one is done is an invalid argument. */
static ncclResult_t ensure_ready(const struct ncclComm *c)
{
    return c->state == ncclInProgress ? ncclInvalidArgument : c->state;
}

static ncclResult_t join(ncclComm_t *comm, int nranks, const char *path, int rank)
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
    c->rank = rank;
    c->size = nranks;
    c->fault = rank == 1 ? getenv("FAKE_NCCL_FAULT") : NULL;
    c->at = at ? (int)strtol(at, NULL, 10) : 3;
    begin(c, INIT);
    snprintf(c->all[rank].host, sizeof c->all[rank].host, "%s", host ? host : "");
    c->all[rank].gpu = fake_gpu_selected();
    atomic_store(&c->all[rank].here, 1);
    if (rank == nranks - 1)
        c->polls = -SLOW_POLLS; /* the last one is slowest */
    *comm = c;
    return ncclInProgress;
}

static void name_split(const struct ncclComm *c, int n, char *path, size_t bytes)
{
    snprintf(path, bytes, "%.100s-%d", c->path, n);
}

static void finish_init(struct ncclComm *c)
{
    if (faulty(c, "init-hangs"))
        return;
    if (faulty(c, "init-fails")) {
        end(c, ncclSystemError);
        return;
    }
    for (int r = 0; r < c->size; r++)
        if (!atomic_load(&c->all[r].here))
            return;
    for (int r = 0; r < c->size; r++)
        for (int q = 0; q < r; q++)
            if (c->all[q].gpu == c->all[r].gpu && strcmp(c->all[q].host, c->all[r].host) == 0)
                end(c, ncclInvalidUsage);
    if (c->state == ncclInProgress && ++c->polls > SLOW_POLLS) {
        end(c, ncclSuccess);
        if (c->rank == 0)
            unlink(c->path);
    }
}

/* ncclCommInitRankFunc (src/init.cc): the thread sets the caller's variable when the child is
 * complete. The child is never in progress itself; the parent is. */
static void finish_split(struct ncclComm *c)
{
    char path[NCCL_UNIQUE_ID_BYTES];
    if (faulty(c, "split-hangs"))
        return;
    if (faulty(c, "split-fails")) {
        end(c, ncclSystemError);
        return;
    }
    const int mine = atomic_load(&c->all[c->rank].splits);
    for (int r = 0; r < c->size; r++)
        if (atomic_load(&c->all[r].splits) < mine)
            return;
    name_split(c, mine, path, sizeof path);
    if (c->child == NULL && join(&c->child, c->size, path, c->rank) != ncclInProgress) {
        end(c, ncclSystemError);
        return;
    }
    finish_init(c->child);
    if (c->child->state == ncclInProgress)
        return;
    *c->split = c->child;
    end(c, c->child->state);
    c->child = NULL;
}

/* ncclDevrWindowRegisterInGroup (src/dev_runtime.cc): the thread sets the caller's variable, then
 * all ranks meet in bootstrapBarrier. */
static void finish_window(struct ncclComm *c)
{
    if (faulty(c, "window-hangs"))
        return;
    if (faulty(c, "window-fails")) {
        end(c, ncclSystemError);
        return;
    }
    *c->window = c->buffer;
    const int mine = atomic_load(&c->all[c->rank].windows);
    for (int r = 0; r < c->size; r++)
        if (atomic_load(&c->all[r].windows) < mine)
            return;
    end(c, ncclSuccess);
}

static void finish_finalize(struct ncclComm *c)
{
    end(c, ncclSuccess);
}

#endif
