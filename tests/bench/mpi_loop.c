/* A plain benchmark of MPI_Allreduce without any code of ddpbench, which agree.py compares with
 * ddpbench. It sums f32 out of place, in two buffers per rank as large as the largest message. Each
 * iteration calls MPI_Barrier, reads the clock, calls MPI_Allreduce and reads the clock; its time
 * is that of the slowest rank.
 *
 * usage: mpi_loop ITERS WARMUP SIZE...      prints "SIZE MEDIAN_US" a line, then "pingpong NS" */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define HUGE_PAGE (2u << 20)

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, compare);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Maps a buffer on its own pages, huge ones from 4 MiB up, because malloc's pages depend on earlier
 * calls. It is never unmapped. */
static float *make_buffer(size_t bytes)
{
    const size_t align = bytes >= 2 * (size_t)HUGE_PAGE ? HUGE_PAGE : 4096;
    char *p = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 71);
    p += (align - (uintptr_t)p % align) % align;
    if (align == HUGE_PAGE)
        madvise(p, bytes, MADV_HUGEPAGE);
    memset(p, 0, bytes);
    return (float *)(void *)p;
}

static double pingpong_ns(int rank)
{
    enum { ROUNDS = 200 };
    double ns[ROUNDS], word = 0;
    for (int i = 0; i < ROUNDS && rank < 2; i++) {
        double begin = now_ns();
        for (int half = 0; half < 2; half++) {
            if (half == rank)
                MPI_Send(&word, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD);
            else
                MPI_Recv(&word, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        ns[i] = now_ns() - begin;
    }
    return rank < 2 ? median(ns, ROUNDS) : 0;
}

static double measure(float *send, float *recv, size_t bytes, int iters, int warmup)
{
    double *mine = calloc((size_t)iters, sizeof *mine),
           *slowest = calloc((size_t)iters, sizeof *mine);
    if (!mine || !slowest)
        MPI_Abort(MPI_COMM_WORLD, 71);
    for (int i = -warmup; i < iters; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = now_ns();
        MPI_Allreduce(send, recv, (int)(bytes / sizeof *send), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        double end = now_ns();
        if (i >= 0)
            mine[i] = end - begin;
    }
    MPI_Reduce(mine, slowest, iters, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    double ns = median(slowest, iters);
    free(slowest);
    free(mine);
    return ns;
}

int main(int argc, char **argv)
{
    int rank, level;
    size_t largest = 0;
    /* ddpbench asks for the same thread level, which changes Open MPI's times of short messages. */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4)
        MPI_Abort(MPI_COMM_WORLD, 64);
    const int iters = atoi(argv[1]), warmup = atoi(argv[2]);
    for (int i = 3; i < argc; i++) {
        size_t bytes = strtoul(argv[i], NULL, 10);
        largest = bytes > largest ? bytes : largest;
    }
    float *send = make_buffer(largest), *recv = make_buffer(largest);
    for (int i = 3; i < argc; i++) {
        size_t bytes = strtoul(argv[i], NULL, 10);
        double ns = measure(send, recv, bytes, iters, warmup);
        if (rank == 0)
            printf("%zu %.4f\n", bytes, ns / 1e3);
    }
    double ns = pingpong_ns(rank);
    if (rank == 0)
        printf("pingpong %.1f\n", ns);
    MPI_Finalize();
    return 0;
}
