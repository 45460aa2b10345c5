/* Drives a fuzz target without libFuzzer: replays a corpus, then feeds mutations of it.
 *
 *     fuzz_X [--seconds S] [--seed N] [--most BYTES] [FILE_OR_FOLDER...]
 *
 * The default of S is 1. Without operands the program uses the corpus in tests/fuzz/corpus/X.
 * It prints TAP: one test for the replay, one for the mutations. The current input is always on
 * disk in fuzz_X.current beside the program (8 bytes of length, then the input), so it survives a
 * crash; the file is removed at the end. The same seed and corpus give the same inputs in the same
 * order, and the time limits their number. Coverage does not guide the mutations, so a corpus must
 * hold a valid input of each kind. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "fuzz/fuzz.h"

#define CORPUS_MAX  1024
#define INPUT_BYTES ((size_t)1 << 20) /* largest size of an input */
#define ONE_MAX_S   10                /* a single input that takes longer is a finding */

struct input {
    uint8_t *bytes;
    size_t n;
};

struct fuzz {
    const char *name; /* "pickle" of fuzz_pickle */
    double seconds;
    uint64_t seed;
    size_t most;
    struct input corpus[CORPUS_MAX];
    int count;
    char current[512];
    uint8_t *shown; /* the mapped file `current`: 8 bytes of length, then the input */
};

static void die(const char *what, const char *subject)
{
    printf("Bail out! %s '%s': %s\n", what, subject, strerror(errno));
    exit(2);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_file(struct fuzz *f, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in || f->count == CORPUS_MAX)
        die("cannot take", path);
    struct input *to = &f->corpus[f->count++];
    to->bytes = malloc(INPUT_BYTES);
    to->n = fread(to->bytes, 1, INPUT_BYTES, in);
    fclose(in);
}

/* Adds a file, or all files of a folder in the order of their names. */
static void add_path(struct fuzz *f, const char *path)
{
    struct stat st;
    char *names[CORPUS_MAX];
    int n = 0;
    if (stat(path, &st) != 0)
        die("no corpus", path);
    if (!S_ISDIR(st.st_mode)) {
        add_file(f, path);
        return;
    }
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir)) && n < CORPUS_MAX;) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.')
            names[n++] = strdup(file);
    }
    closedir(dir);
    qsort(names, (size_t)n, sizeof *names, by_name);
    for (int i = 0; i < n; i++) {
        add_file(f, names[i]);
        free(names[i]);
    }
}

/* Runs one input from a block of its exact size, so that a sanitizer detects every access beyond
 * its end. */
static void run(struct fuzz *f, const uint8_t *bytes, size_t n)
{
    uint64_t length = n;
    uint8_t *exact = malloc(n ? n : 1);
    memcpy(exact, bytes, n);
    memcpy(f->shown, &length, sizeof length);
    memcpy(f->shown + sizeof length, bytes, n);
    alarm(ONE_MAX_S); /* SIGALRM ends the process, which is a finding */
    LLVMFuzzerTestOneInput(exact, n);
    alarm(0);
    free(exact);
}

static uint64_t below(struct ddp_rng *rng, size_t n)
{
    return n ? ddp_rng_below(rng, n) : 0;
}

/* Writes a value at which lengths and counts tend to go wrong, in 1, 2, 4 or 8 bytes and either
 * byte order. */
static void put_edge(struct ddp_rng *rng, uint8_t *bytes, size_t n)
{
    static const uint64_t edges[] = {0,          1,           0x7f,       0x80,
                                     0xff,       0x100,       0x7fff,     0x8000,
                                     0xffff,     0x10000,     0x7fffffff, 0x80000000,
                                     0xffffffff, 0x100000000, UINT64_MAX, 0x8000000000000000};
    size_t width = (size_t)1 << ddp_rng_below(rng, 4);
    uint64_t value = edges[ddp_rng_below(rng, DDP_COUNT_OF(edges))];
    if (ddp_rng_below(rng, 2))
        value = __builtin_bswap64(value) >> (64 - 8 * width);
    if (width <= n)
        memcpy(bytes + below(rng, n - width + 1), &value, width);
}

/* Moves the bytes from offset `from` to offset `to`, which removes or repeats a piece. Returns
 * the new length. */
static size_t move_tail(struct ddp_rng *rng, uint8_t *bytes, size_t n, size_t most)
{
    size_t from = below(rng, n + 1), to = below(rng, n + 1), tail = n - from;
    if (to + tail > most)
        tail = most - to;
    memmove(bytes + to, bytes + from, tail);
    return to + tail;
}

static size_t mutate(struct fuzz *f, struct ddp_rng *rng, uint8_t *bytes, size_t n)
{
    const struct input *other = &f->corpus[ddp_rng_below(rng, (uint64_t)f->count)];
    switch (ddp_rng_below(rng, 7)) {
    case 0:
        if (n)
            bytes[below(rng, n)] ^= (uint8_t)(1u << ddp_rng_below(rng, 8));
        return n;
    case 1:
        if (n)
            bytes[below(rng, n)] = (uint8_t)ddp_rng_below(rng, 256);
        return n;
    case 2:
        put_edge(rng, bytes, n);
        return n;
    case 3: /* cut the end */
        return below(rng, n + 1);
    case 4:
        return move_tail(rng, bytes, n, f->most);
    case 5: { /* copy a piece of another input over this one */
        size_t from = below(rng, other->n), at = below(rng, n);
        size_t piece = below(rng, DDP_MIN(other->n - from, n - at) + 1);
        memcpy(bytes + at, other->bytes + from, piece);
        return n;
    }
    default: { /* or append it */
        size_t from = below(rng, other->n), at = below(rng, n + 1);
        size_t piece = DDP_MIN(other->n - from, f->most - at);
        memcpy(bytes + at, other->bytes + from, piece);
        return at + piece;
    }
    }
}

/* Half of the mutations are small ones near the start, where formats describe the content that
 * follows. */
static size_t make(struct fuzz *f, struct ddp_rng *rng, uint8_t *bytes)
{
    const struct input *base = &f->corpus[ddp_rng_below(rng, (uint64_t)f->count)];
    size_t n = DDP_MIN(base->n, f->most), head = DDP_MIN(n, (size_t)256);
    memcpy(bytes, base->bytes, n);
    for (uint64_t i = ddp_rng_below(rng, 4) + 1; i > 0; i--) {
        if (head && ddp_rng_below(rng, 2))
            bytes[below(rng, head)] ^= (uint8_t)(1 + ddp_rng_below(rng, 255));
        else
            n = mutate(f, rng, bytes, n);
        head = DDP_MIN(n, head);
    }
    return n;
}

static void show_current(struct fuzz *f, const char *program)
{
    snprintf(f->current, sizeof f->current, "%s.current", program);
    int fd = open(f->current, O_RDWR | O_CREAT | O_TRUNC, 0644);
    size_t bytes = sizeof(uint64_t) + INPUT_BYTES;
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        die("cannot write", f->current);
    f->shown = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (f->shown == MAP_FAILED)
        die("cannot map", f->current);
    close(fd);
}

static double number(int argc, char **argv, int i)
{
    char *end = NULL;
    double v = i < argc ? strtod(argv[i], &end) : 0.0;
    if (i >= argc || end == argv[i] || *end)
        die("a number must follow", argv[i - 1]);
    return v;
}

static void parse(struct fuzz *f, int argc, char **argv)
{
    int given = 0;
    const char *base = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    f->name = strncmp(base, "fuzz_", 5) == 0 ? base + 5 : base;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seconds") == 0)
            f->seconds = number(argc, argv, ++i);
        else if (strcmp(argv[i], "--seed") == 0)
            f->seed = (uint64_t)number(argc, argv, ++i);
        else if (strcmp(argv[i], "--most") == 0)
            f->most = DDP_MIN((size_t)number(argc, argv, ++i), INPUT_BYTES);
        else {
            add_path(f, argv[i]);
            given++;
        }
    }
    if (!given) {
        char path[256];
        snprintf(path, sizeof path, "tests/fuzz/corpus/%s", f->name);
        add_path(f, path);
    }
}

int main(int argc, char **argv)
{
    static struct fuzz f = {.seconds = 1.0, .seed = 1, .most = 65536};
    static uint8_t bytes[INPUT_BYTES];
    struct ddp_rng rng;
    long long runs = 0;
    parse(&f, argc, argv);
    show_current(&f, argv[0]);
    printf("1..2\n");
    for (int i = 0; i < f.count; i++)
        run(&f, f.corpus[i].bytes, f.corpus[i].n);
    printf("%sok 1 - %s: %d inputs of the corpus\n", f.count ? "" : "not ", f.name, f.count);
    fflush(stdout);
    ddp_rng_init(&rng, f.seed, 0);
    int64_t end = ddp_now_ns() + (int64_t)(f.seconds * 1e9);
    while (f.count && ddp_now_ns() < end) {
        run(&f, bytes, make(&f, &rng, bytes));
        runs++;
    }
    printf("ok 2 - %s: %lld mutations in %g s, seed %llu\n", f.name, runs, f.seconds,
           (unsigned long long)f.seed);
    unlink(f.current);
    for (int i = 0; i < f.count; i++)
        free(f.corpus[i].bytes);
    return f.count ? 0 : 1;
}
