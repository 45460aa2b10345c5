/* Times a plain loop in N processes at once: plain_loop LOOP BYTES N [restore]. LOOP is copy
 * (b = a), add (a += b) or both (a = b = a + b). BYTES is the size of both arrays together. With
 * `restore` both arrays are copied from others before each round, as the sampler does before an
 * operation in place, so that the round finds the same lines in the caches. Long rounds are cut
 * into slices, as the bound of ddpbench is, and the processes start each slice together. Prints the
 * GB/s that all processes read and write. The slowest process counts in each slice, and the fastest
 * round of each slice. tests/bench/bound.py compares the figure with the bound of ddpbench. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS    1000
#define RANKS_MAX 64
/* Rounds end earlier once they have moved this many bytes, but there are at least 8. */
#define TOTAL ((size_t)4 << 30)
/* A slice has at least this many bytes of both arrays. */
#define SLICE_BYTES ((size_t)2 << 20)
#define SLICES_MAX  256

struct shared {
    atomic_int arrived;
    double ns[ROUNDS][SLICES_MAX][RANKS_MAX];
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The functions are not inlined, so that the compiler knows that the arrays do not overlap. */
#define LOOP(name, statement)                                                                      \
    static __attribute__((noinline)) void name(float *restrict a, float *restrict b, size_t n)     \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            statement;                                                                             \
    }
LOOP(copy, b[i] = a[i])
LOOP(add, a[i] += b[i])
LOOP(both, a[i] = b[i] = a[i] + b[i])

static float *new_array(size_t bytes)
{
    const size_t page = (size_t)2 << 20;
    float *p = aligned_alloc(page, (bytes + page - 1) / page * page);
    if (p == NULL)
        exit(71);
    madvise(p, bytes, MADV_HUGEPAGE);
    memset(p, 0, bytes);
    return p;
}

static void work(struct shared *s, char loop, size_t bytes, int rank, int ranks, int rounds,
                 size_t slices, bool restore)
{
    float *a = new_array(bytes / 2), *b = new_array(bytes / 2);
    float *inputs = restore ? new_array(bytes) : NULL;
    const size_t n = bytes / 8;
    for (int i = 0; i < rounds; i++) {
        if (restore) {
            memcpy(a, inputs, bytes / 2);
            memcpy(b, inputs + bytes / 8, bytes / 2);
        }
        for (size_t k = 0; k < slices; k++) {
            const size_t from = n * k / slices, to = n * (k + 1) / slices;
            atomic_fetch_add(&s->arrived, 1);
            while (atomic_load(&s->arrived) < (i * (int)slices + (int)k + 1) * ranks)
                ;
            const double begin = now_ns();
            (loop == 'c' ? copy : loop == 'a' ? add : both)(a + from, b + from, to - from);
            s->ns[i][k][rank] = now_ns() - begin;
        }
    }
    exit(0);
}

static size_t slices_of(size_t bytes)
{
    const size_t slices = bytes / SLICE_BYTES;
    return slices < 1 ? 1 : slices > SLICES_MAX ? SLICES_MAX : slices;
}

/* Returns the sum of each slice's time in its fastest round. The first round warms up. */
static double fastest_ns(const struct shared *s, size_t slices, int ranks, int rounds)
{
    double sum = 0;
    for (size_t k = 0; k < slices; k++) {
        double fastest = 1e300;
        for (int i = 1; i < rounds; i++) {
            double slowest = 1;
            for (int r = 0; r < ranks; r++)
                slowest = s->ns[i][k][r] > slowest ? s->ns[i][k][r] : slowest;
            fastest = slowest < fastest ? slowest : fastest;
        }
        sum += fastest;
    }
    return sum;
}

int main(int argc, char **argv)
{
    const bool restore = argc == 5 && strcmp(argv[4], "restore") == 0;
    const size_t bytes = argc == 4 || restore ? strtoull(argv[2], NULL, 10) : 0;
    const int ranks = bytes > 0 ? atoi(argv[3]) : 0;
    if (bytes < 64 || ranks < 1 || ranks > RANKS_MAX || strchr("cab", argv[1][0]) == NULL) {
        fprintf(stderr, "usage: plain_loop copy|add|both BYTES N [restore]\n");
        return 64;
    }
    struct shared *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        return 71;
    const size_t fits = TOTAL / bytes, slices = slices_of(bytes);
    const int rounds = fits < 8 ? 8 : fits > ROUNDS ? ROUNDS : (int)fits;
    for (int r = 0; r < ranks; r++)
        if (fork() == 0)
            work(s, argv[1][0], bytes, r, ranks, rounds, slices, restore);
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status;
    /* accesses of each pair of elements: copy 2, add 3, both 4 */
    const double accesses = argv[1][0] == 'c' ? 2 : argv[1][0] == 'a' ? 3 : 4;
    printf("%.2f\n", accesses / 2 * (double)bytes * ranks / fastest_ns(s, slices, ranks, rounds));
    return failed != 0;
}
