/* Compares the gradient kernels with plain loops on one core: `make bench-kernels`.
 * tests/bench/compare_kernels.py loads this file as a library and compares the kernels of two
 * builds, reductions included: `make bench-kernels OLD=DIR`.
 *
 * Every round runs the plain loops and every kernel once, so that both see the same conditions. The
 * bound of a kernel is the fastest of the plain loops that read and write arrays as the kernel
 * does. For example, Adam reads four arrays and overwrites three of them, and so does a loop. A
 * kernel's fraction is the rate of its fastest round divided by that of the bound's fastest round.
 * The bytes counted are those that a kernel must move at least. Usage: bench_kernels
 * [ELEMENTS [ROUNDS]]. Without arguments it measures 25M elements, and a size that fits the
 * second-level cache, for which there are no goals. DDPBENCH_SIMD limits the SIMD level. Exits with
 * 1 when a kernel misses its goal. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/bench_bounds.h"
#include "device/device.h"
#include "device/sparse.h"

/* Moves the code of the library, because identical loops at other addresses differ by up to 30 %.
 */
#ifdef CODE_OFFSET
__asm__(".text\n.skip " CODE_OFFSET "\n");
#endif

#define MAX_ROUNDS 101
/* Calls on small arrays are repeated for this time in each round. */
#define ROUND_NS 2000000
/* Arrays of at least this many elements lie outside the caches; the goals apply to them. */
#define LARGE ((size_t)4 << 20)
/* Reductions of small arrays are repeated until they have covered this many elements. */
#define REDUCE_ELEMENTS ((size_t)32 << 10)
/* Selection must be this many times as fast as std::nth_element. */
#define NTH_GOAL 25.0

enum bound {
    COPY,
    COPY_NT,
    READ,
    ADD,
    NARROW,
    WIDEN,
    ADD_HALF,
    UPDATE_1,
    UPDATE_2,
    UPDATE_3,
    LOOPS
};

/* Sets of plain loops, one bit per enum bound. A set holds the loops whose mix of reads and writes
 * is the same, or has more accesses per line than the kernel's. */
enum {
    NO_BOUND = 0,
    BY_NARROW = 1 << COPY | 1 << COPY_NT | 1 << NARROW,
    BY_WIDEN = 1 << COPY | 1 << COPY_NT | 1 << WIDEN,
    BY_READ = 1 << READ,
    BY_ADD = 1 << ADD | 1 << UPDATE_1,
    BY_ADD_HALF = BY_ADD | 1 << ADD_HALF,
    BY_UPDATE_2 = BY_ADD | 1 << UPDATE_2,
    BY_UPDATE_3 = BY_ADD | 1 << UPDATE_3
};

struct arrays {
    const struct ddp_device *device;
    enum ddp_simd level;
    size_t n;
    float *normal, *heavy, *in, *kept, *residual, *a, *b, *c; /* [n] */
    uint32_t *index;                                          /* [n] */
    void *scratch;                                            /* [n] of 8 bytes */
    uint32_t hint;
    float sink;
};

struct row {
    const char *name;
    void (*run)(struct arrays *x, double argument);
    double argument; /* density, threshold */
    double bytes;    /* per element, by the formulas of the header */
    unsigned bounds; /* set of plain loops; the fastest is the bound */
    double goal;
    enum { SAME, FEEDBACK, HEAVY, HEAVY_FEEDBACK, HINTED } input;
};

static size_t kept_count(const struct arrays *x, double density)
{
    return (size_t)ceil(density * (double)x->n);
}

static void run_copy(struct arrays *x, double argument)
{
    (void)argument;
    x->device->copy(x->c, x->a, x->n * 4);
}

static void run_copy_nt(struct arrays *x, double argument)
{
    (void)argument;
    x->device->copy_nt(x->c, x->a, x->n * 4);
}

static void run_read(struct arrays *x, double argument)
{
    (void)argument;
    x->sink += x->level == DDP_SIMD_AVX512 ? ddp_bench_read_avx512(x->a, x->n)
                                           : ddp_bench_read_avx2(x->a, x->n);
}

static void run_add(struct arrays *x, double argument)
{
    (void)argument;
    const struct ddp_reduce r = {.dst = (void *[]){x->c},
                                 .dst_count = 1,
                                 .src = (const void *[]){x->c, x->a},
                                 .src_count = 2,
                                 .count = x->n,
                                 .dtype = DDP_F32,
                                 .op = DDP_SUM,
                                 .divisor = 1};
    x->device->reduce(&r);
}

/* Adds `from` to `count` arrays of n elements. */
static void update(const struct arrays *x, float *const *to, int count, const float *from, size_t n)
{
    if (x->level == DDP_SIMD_AVX512)
        ddp_bench_update_avx512(to, count, from, n);
    else
        ddp_bench_update_avx2(to, count, from, n);
}

/* The traffic of f32 += f16: reads n and n / 2 floats, and overwrites the n floats. */
static void run_add_half(struct arrays *x, double argument)
{
    float *const to[] = {x->c, x->c + x->n / 2};
    (void)argument;
    update(x, to, 2, x->a, x->n / 2);
}

/* The traffic of SGD and of Adam: overwrites all arrays that are read, except the gradient. With
 * one array, the traffic of a selection with feedback. */
static void run_update(struct arrays *x, double argument)
{
    float *const to[] = {x->c, x->b, x->residual};
    update(x, to, (int)argument, x->a, x->n);
}

/* The traffic of a conversion: reads n floats and writes n / 2, or the reverse. */
static void run_resize(struct arrays *x, double argument)
{
    const bool narrow = argument < 1;
    const size_t half = x->n / 2;
    const struct ddp_reduce r = {.dst = (void *[]){x->c, x->c + half},
                                 .dst_count = narrow ? 1 : 2,
                                 .src = (const void *[]){x->a, x->a + half},
                                 .src_count = narrow ? 2 : 1,
                                 .count = half,
                                 .dtype = DDP_F32,
                                 .op = DDP_SUM,
                                 .divisor = 1};
    x->device->reduce(&r);
}

static void run_narrow_f16(struct arrays *x, double argument)
{
    x->device->grad->narrow(x->c, x->a, x->n, DDP_F16, (float)argument, 0);
}

static void run_narrow_bf16(struct arrays *x, double argument)
{
    x->device->grad->narrow(x->c, x->a, x->n, DDP_BF16, (float)argument, 0);
}

static void run_widen_f16(struct arrays *x, double argument)
{
    (void)argument;
    x->device->grad->widen(x->c, x->a, x->n, DDP_F16);
}

static void run_widen_bf16(struct arrays *x, double argument)
{
    (void)argument;
    x->device->grad->widen(x->c, x->a, x->n, DDP_BF16);
}

/* `make bench-kernels OLD=DIR` also compiles this file with the headers of builds that cannot
 * quantise. ddp_bench_ns() leaves the rows out there. */
#if __has_include("device/quant.h")
#define CAN_QUANTIZE true
static const struct ddp_quant quants[] = {{.code = DDP_QUANT_I8, .block = 128},
                                          {.code = DDP_QUANT_I4, .block = 128},
                                          {.code = DDP_QUANT_E4M3, .block = 128},
                                          {.code = DDP_QUANT_SIGN, .block = 128}};

/* argument: index in `quants`. */
static void run_quantize(struct arrays *x, double argument)
{
    x->device->grad->quantize(x->c, x->a, x->n, quants[(int)argument], 0.5f);
}

/* argument: index in `quants`. Decodes an array that was encoded in the first round. */
static void run_dequantize(struct arrays *x, double argument)
{
    static struct {
        void *blocks;
        size_t n;
    } encoded[DDP_COUNT_OF(quants)];
    const size_t k = (size_t)argument;
    const struct ddp_quant quant = quants[k];
    if (encoded[k].n != x->n) {
        free(encoded[k].blocks);
        encoded[k].blocks = malloc(ddp_quant_blocks(quant, x->n) * ddp_quant_block_bytes(quant));
        if (encoded[k].blocks == NULL)
            exit(71);
        x->device->grad->quantize(encoded[k].blocks, x->a, x->n, quant, 1);
        encoded[k].n = x->n;
    }
    x->device->grad->dequantize(x->c, encoded[k].blocks, x->n, quant, false);
}
#else
#define CAN_QUANTIZE false
static void run_quantize(struct arrays *x, double argument)
{
    (void)x, (void)argument;
}

static void run_dequantize(struct arrays *x, double argument)
{
    (void)x, (void)argument;
}
#endif

static void run_widen_add(struct arrays *x, double argument)
{
    (void)argument;
    x->device->grad->widen_add(x->c, x->a, x->n, DDP_F16);
}

static void run_threshold(struct arrays *x, double argument)
{
    struct ddp_select s = {x->in, x->residual, x->n, {x->index, x->b, 0}};
    x->device->grad->select_threshold(&s, (float)argument);
}

static void run_topk(struct arrays *x, double argument)
{
    struct ddp_select s = {x->in, x->residual, x->n, {x->index, x->b, 0}};
    x->device->grad->select_topk(&s, kept_count(x, argument), &x->hint, x->scratch);
}

static void run_select(struct arrays *x, double argument)
{
    struct ddp_select s = {x->in, NULL, x->n, {x->index, x->b, 0}};
    x->device->grad->select_topk(&s, kept_count(x, argument), &x->hint, x->scratch);
}

static void run_nth_float(struct arrays *x, double argument)
{
    x->sink += ddp_bench_nth_float((float *)x->scratch, x->in, x->n, kept_count(x, argument));
}

static void run_nth_value(struct arrays *x, double argument)
{
    ddp_bench_nth_value((uint32_t *)x->scratch, x->in, x->n, kept_count(x, argument));
}

static void run_nth_entry(struct arrays *x, double argument)
{
    ddp_bench_nth_entry((uint64_t *)x->scratch, x->in, x->n, kept_count(x, argument));
}

static void run_sgd(struct arrays *x, double argument)
{
    x->device->grad->sgd(x->c, x->b, x->a, x->n, (float)argument, 0.9f, 1e-5f);
}

static void run_adam(struct arrays *x, double argument)
{
    const struct ddp_adam adam = {(float)argument, 0.9f, 0.999f, 1e-8f, 1e-3f, 10};
    x->device->grad->adam(x->c, x->b, x->residual, x->a, x->n, &adam);
}

/* The first LOOPS rows are the plain loops, in the order of enum bound. */
static const struct row rows[] = {
    {"copy", run_copy, 0, 8, NO_BOUND, 0, SAME},
    {"copy, non-temporal", run_copy_nt, 0, 8, NO_BOUND, 0, SAME},
    {"read", run_read, 0, 4, NO_BOUND, 0, SAME},
    {"c += a", run_add, 0, 12, NO_BOUND, 0, SAME},
    {"two halves added", run_resize, .5, 6, NO_BOUND, 0, SAME},
    {"half copied twice", run_resize, 2, 6, NO_BOUND, 0, SAME},
    {"c += half of a, twice", run_add_half, 0, 10, NO_BOUND, 0, SAME},
    {"c += a, plain", run_update, 1, 12, NO_BOUND, 0, SAME},
    {"2 arrays += a", run_update, 2, 20, NO_BOUND, 0, SAME},
    {"3 arrays += a", run_update, 3, 28, NO_BOUND, 0, SAME},
    {"f32 to f16", run_narrow_f16, 0.5, 6, BY_NARROW, .72, SAME},
    {"f32 to bf16", run_narrow_bf16, 0.5, 6, BY_NARROW, .72, SAME},
    {"f16 to f32", run_widen_f16, 0, 6, BY_WIDEN, .72, SAME},
    {"bf16 to f32", run_widen_bf16, 0, 6, BY_WIDEN, .72, SAME},
    {"f32 += f16", run_widen_add, 0, 10, BY_ADD_HALF, .72, SAME},
    {"f32 to q8", run_quantize, 0, 5 + 1 / 32., BY_NARROW, .8, SAME},
    {"f32 to q4", run_quantize, 1, 4.5 + 1 / 32., BY_NARROW, .8, SAME},
    {"f32 to fp8-e4m3", run_quantize, 2, 5 + 1 / 32., BY_NARROW, .8, SAME},
    {"f32 to sign", run_quantize, 3, 4.125 + 1 / 32., BY_NARROW, .8, SAME},
    {"q8 to f32", run_dequantize, 0, 5 + 1 / 32., BY_WIDEN, .8, SAME},
    {"q4 to f32", run_dequantize, 1, 4.5 + 1 / 32., BY_WIDEN, .8, SAME},
    {"fp8-e4m3 to f32", run_dequantize, 2, 5 + 1 / 32., BY_WIDEN, .8, SAME},
    {"sign to f32", run_dequantize, 3, 4.125 + 1 / 32., BY_WIDEN, .8, SAME},
    {"threshold + feedback, 0.1 %", run_threshold, 3.6792, 12 + .008, BY_ADD, .75, FEEDBACK},
    {"threshold + feedback, 1 %", run_threshold, 2.8799, 12 + .08, BY_ADD, .75, FEEDBACK},
    {"threshold + feedback, 5 %", run_threshold, 2.1913, 12 + .4, BY_ADD, .75, FEEDBACK},
    {"top-k + feedback, 0.1 %", run_topk, .001, 12 + .008, BY_ADD, .45, FEEDBACK},
    {"top-k + feedback, 1 %", run_topk, .01, 12 + .08, BY_ADD, .45, FEEDBACK},
    {"top-k + feedback, 5 %", run_topk, .05, 12 + .4, BY_ADD, .45, FEEDBACK},
    {"  heavy-tailed, 0.1 %", run_topk, .001, 12 + .008, BY_ADD, .45, HEAVY_FEEDBACK},
    {"  heavy-tailed, 1 %", run_topk, .01, 12 + .08, BY_ADD, .45, HEAVY_FEEDBACK},
    {"  heavy-tailed, 5 %", run_topk, .05, 12 + .4, BY_ADD, .45, HEAVY_FEEDBACK},
    {"  with a hint, 1 %", run_topk, .01, 12 + .08, BY_ADD, .60, HINTED},
    {"top-k alone, 0.1 %", run_select, .001, 4 + .008, BY_READ, .60, SAME},
    {"top-k alone, 1 %", run_select, .01, 4 + .08, BY_READ, .45, SAME},
    {"top-k alone, 5 %", run_select, .05, 4 + .4, BY_READ, 0, SAME},
    {"  heavy-tailed, 0.1 %", run_select, .001, 4 + .008, BY_READ, .60, HEAVY},
    {"  heavy-tailed, 1 %", run_select, .01, 4 + .08, BY_READ, .45, HEAVY},
    {"std::nth_element, 0.1 %", run_nth_float, .001, 4, BY_READ, 0, SAME},
    {"std::nth_element, 1 %", run_nth_float, .01, 4, BY_READ, 0, SAME},
    {"  of bits", run_nth_value, .01, 4, BY_READ, 0, SAME},
    {"  of bits, with positions", run_nth_entry, .01, 4, BY_READ, 0, SAME},
    {"SGD with momentum", run_sgd, 1e-9, 20, BY_UPDATE_2, .85, SAME},
    {"Adam", run_adam, 1e-9, 28, BY_UPDATE_3, .85, SAME},
};
#define ROWS DDP_COUNT_OF(rows)

/* Restores the input and the state of the caches before a call; not timed. */
static void prepare(struct arrays *x, const struct row *row)
{
    const bool heavy = row->input == HEAVY || row->input == HEAVY_FEEDBACK;
    x->in = heavy ? x->heavy : x->normal;
    if (row->input == FEEDBACK || row->input == HINTED || row->input == HEAVY_FEEDBACK)
        memcpy(x->residual, x->kept, x->n * 4);
    if (row->input != HINTED) {
        x->hint = 0;
    } else if (x->hint == 0) { /* the hint comes from an earlier call */
        row->run(x, row->argument);
        memcpy(x->residual, x->kept, x->n * 4);
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(const double *values, int count)
{
    double sorted[MAX_ROUNDS];
    memcpy(sorted, values, (size_t)count * sizeof(*values));
    qsort(sorted, (size_t)count, sizeof(*sorted), by_value);
    return sorted[count / 2];
}

/* Returns the CPU time of this thread for large arrays, so that other processes on this core do not
 * count. For small arrays, where the system call would take too long, it returns the wall clock. */
static int64_t now_ns(size_t n)
{
    struct timespec t;
    if (n < LARGE)
        return ddp_now_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double measure_ns(struct arrays *x, const struct row *row)
{
    double ns[MAX_ROUNDS], spent = 0;
    int calls = 0;
    x->hint = 0;
    do {
        prepare(x, row);
        const int64_t start = now_ns(x->n);
        row->run(x, row->argument);
        ns[calls] = (double)(now_ns(x->n) - start);
        spent += ns[calls++];
    } while (spent < ROUND_NS && calls < MAX_ROUNDS);
    return median(ns, calls);
}

/* Prints how many times as fast the selection is as the forms of std::nth_element, as medians over
 * rounds. The goal applies to the plain form. Returns false if it is missed. */
static bool print_times(double (*ns)[MAX_ROUNDS], int rounds)
{
    bool good = true;
    for (size_t r = 0; r < ROWS; r++)
        for (size_t other = 0; other < ROWS; other++) {
            double times[MAX_ROUNDS];
            const bool judged = rows[other].run == run_nth_float;
            if (rows[r].run != run_select || rows[r].input != SAME ||
                !(judged || rows[other].run == run_nth_value) ||
                rows[other].argument != rows[r].argument)
                continue;
            for (int i = 0; i < rounds; i++)
                times[i] = ns[other][i] / ns[r][i];
            const double m = median(times, rounds);
            printf("%s: %.1f times as fast as std::nth_element%s", rows[r].name, m,
                   judged ? "" : " of bits\n");
            if (judged)
                printf(", goal %g%s\n", NTH_GOAL, m < NTH_GOAL ? "  below" : "");
            good = good && !(judged && m < NTH_GOAL);
        }
    return good;
}

static double fastest(const double *values, int count)
{
    double least = values[0];
    for (int i = 1; i < count; i++)
        least = DDP_MIN(least, values[i]);
    return least;
}

/* Returns the plain loop with the highest rate in its fastest round. bounds: not NO_BOUND. */
static const struct row *find_bound(double (*ns)[MAX_ROUNDS], int rounds, unsigned bounds,
                                    double *rate)
{
    const struct row *best = NULL;
    *rate = 0;
    for (int b = 0; b < LOOPS; b++) {
        const double other = rows[b].bytes / fastest(ns[b], rounds);
        if (!(bounds >> b & 1) || other <= *rate)
            continue;
        *rate = other;
        best = &rows[b];
    }
    return best;
}

/* Returns false if a kernel misses its goal. */
static bool print_rows(double (*ns)[MAX_ROUNDS], int rounds, size_t n)
{
    bool good = true;
    printf("%-30s %10s %8s %9s  %-22s %9s %6s\n", "kernel", "us", "GB/s", "Gelem/s", "bound",
           "fraction", "goal");
    for (size_t r = 0; r < ROWS; r++) {
        const struct row *row = &rows[r];
        const double us = median(ns[r], rounds) / 1e3;
        printf("%-30s %10.1f %8.1f %9.2f", row->name, us, row->bytes * (double)n / us / 1e3,
               (double)n / us / 1e3);
        if (row->bounds != NO_BOUND) {
            double rate;
            const struct row *bound = find_bound(ns, rounds, row->bounds, &rate);
            const double fraction = row->bytes / fastest(ns[r], rounds) / rate;
            printf("  %-22s %9.3f", bound->name, fraction);
            if (row->goal > 0 && n >= LARGE) {
                printf(" %6.2f%s", row->goal, fraction < row->goal ? "  below" : "");
                good = good && fraction >= row->goal;
            }
        }
        printf("\n");
    }
    return (n < LARGE || print_times(ns, rounds)) && good;
}

static float *new_floats(size_t n)
{
    float *x = (float *)ddp_alloc_pages(n * 4);
    if (!x) {
        fprintf(stderr, "bench_kernels: not enough memory\n");
        exit(71);
    }
    memset(x, 0, n * 4);
    return x;
}

static void fill(struct arrays *x)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, 1, 0);
    for (size_t i = 0; i < x->n; i++) {
        x->normal[i] = (float)ddp_rng_normal(&rng);
        x->kept[i] = (float)(0.5 * ddp_rng_normal(&rng)); /* sums have variance 1.25 */
        x->a[i] = (float)ddp_rng_normal(&rng);
        x->heavy[i] = (float)(ddp_rng_normal(&rng) / sqrt(1e-12 + ddp_rng_double(&rng)));
    }
}

static bool bench_size(enum ddp_simd level, size_t n, int rounds)
{
    static double ns[ROWS][MAX_ROUNDS];
    struct arrays x = {.device = ddp_device_cpu(level), .level = level, .n = n};
    float **all[] = {&x.normal, &x.heavy, &x.kept, &x.residual, &x.a, &x.b, &x.c};
    for (size_t i = 0; i < DDP_COUNT_OF(all); i++)
        *all[i] = new_floats(n);
    x.index = (uint32_t *)(void *)new_floats(n);
    x.scratch = new_floats(2 * n);
    fill(&x);
    for (int round = -1; round < rounds; round++) /* the first only warms up */
        for (size_t r = 0; r < ROWS; r++)
            ns[r][round < 0 ? 0 : round] = measure_ns(&x, &rows[r]);
    printf("\n%zu elements, %s, one core, %d rounds\n", n, ddp_simd_name(level), rounds);
    const bool good = print_rows(ns, rounds, n);
    for (size_t i = 0; i < DDP_COUNT_OF(all); i++)
        ddp_free_pages(*all[i], n * 4);
    ddp_free_pages(x.index, n * 4);
    ddp_free_pages(x.scratch, 2 * n * 4);
    return good;
}

/* Reductions of src_count arrays into dst_count other arrays, divided by `divisor`. The sources
 * stay as they are, because the time of some operations depends on the values. */
struct reduction {
    enum ddp_dtype dtype;
    enum ddp_op op;
    int src_count, dst_count, divisor;
};

static const struct reduction reductions[] = {
    {DDP_F32, DDP_SUM, 2, 1, 1},  {DDP_F32, DDP_SUM, 2, 2, 1},  {DDP_F32, DDP_SUM, 4, 4, 1},
    {DDP_F32, DDP_SUM, 3, 1, 1},  {DDP_F32, DDP_SUM, 3, 2, 1},  {DDP_F32, DDP_AVG, 2, 2, 2},
    {DDP_F32, DDP_AVG, 3, 1, 3},  {DDP_F32, DDP_PROD, 2, 1, 1}, {DDP_F32, DDP_MAX, 2, 2, 1},
    {DDP_F16, DDP_SUM, 2, 1, 1},  {DDP_F16, DDP_AVG, 2, 2, 2},  {DDP_F16, DDP_MIN, 2, 1, 1},
    {DDP_BF16, DDP_SUM, 2, 1, 1}, {DDP_BF16, DDP_AVG, 2, 2, 2}, {DDP_BF16, DDP_MAX, 4, 4, 1},
    {DDP_F64, DDP_SUM, 2, 1, 1},  {DDP_F64, DDP_SUM, 2, 2, 1},  {DDP_F64, DDP_MIN, 2, 1, 1},
    {DDP_I32, DDP_SUM, 2, 1, 1},  {DDP_I32, DDP_AVG, 2, 2, 2},  {DDP_I32, DDP_MAX, 2, 1, 1},
    {DDP_U8, DDP_SUM, 2, 1, 1},   {DDP_U8, DDP_PROD, 2, 2, 1},  {DDP_U8, DDP_AVG, 2, 1, 2},
};

static void run_reduction(struct arrays *x, double argument)
{
    const struct reduction *of = &reductions[(int)argument];
    const struct ddp_reduce r = {.dst = (void *[]){x->c, x->b, x->residual, x->scratch},
                                 .dst_count = of->dst_count,
                                 .src = (const void *[]){x->a, x->normal, x->kept, x->heavy},
                                 .src_count = of->src_count,
                                 .count = x->n * 4 / ddp_dtype_size(of->dtype),
                                 .dtype = of->dtype,
                                 .op = of->op,
                                 .divisor = of->divisor};
    for (size_t done = 0; done < REDUCE_ELEMENTS; done += x->n)
        x->device->reduce(&r);
}

/* The functions that compare_kernels.py calls. Both builds measure in the same memory, so that
 * their results do not differ by where it lies. */
size_t ddp_bench_memory(size_t n);
void ddp_bench_open(float *memory, size_t n, int level);
int ddp_bench_name(int i, char *name, size_t size);
double ddp_bench_ns(int i);

static struct arrays shared;

/* Returns the bytes of memory that arrays of n elements need. */
size_t ddp_bench_memory(size_t n)
{
    return 11 * n * sizeof(float);
}

void ddp_bench_open(float *memory, size_t n, int level)
{
    struct arrays *x = &shared;
    float **all[] = {&x->normal, &x->heavy, &x->kept, &x->residual, &x->a, &x->b, &x->c};
    *x = (struct arrays){
        .device = ddp_device_cpu((enum ddp_simd)level), .level = (enum ddp_simd)level, .n = n};
    for (size_t i = 0; i < DDP_COUNT_OF(all); i++, memory += n)
        *all[i] = memory;
    x->index = (uint32_t *)(void *)memory;
    x->scratch = memory + n;
    fill(x);
    memset(x->residual, 0, n * sizeof(float));
    memset(x->b, 0, n * sizeof(float));
    memset(x->c, 0, n * sizeof(float));
}

/* Stores the name of kernel i in `name`. Returns 0 if there is no kernel i. */
int ddp_bench_name(int i, char *name, size_t size)
{
    const int reduction = i - (int)ROWS;
    if (i < 0 || reduction >= (int)DDP_COUNT_OF(reductions))
        return 0;
    if (reduction < 0) {
        snprintf(name, size, "%s", rows[i].name);
        return 1;
    }
    const struct reduction *of = &reductions[reduction];
    snprintf(name, size, "reduce %s %s, %d into %d", ddp_dtype_name(of->dtype), ddp_op_name(of->op),
             of->src_count, of->dst_count);
    return 1;
}

/* Measures kernel i and returns its nanoseconds. Returns 0 for a loop that is no kernel of ours,
 * and for a kernel that this build does not have. */
double ddp_bench_ns(int i)
{
    if (i >= (int)ROWS) {
        const struct row row = {.run = run_reduction, .argument = i - (int)ROWS};
        return measure_ns(&shared, &row);
    }
    if (rows[i].run == run_read || rows[i].run == run_update || rows[i].run == run_add_half ||
        rows[i].run == run_resize || rows[i].run == run_nth_float || rows[i].run == run_nth_value ||
        rows[i].run == run_nth_entry)
        return 0;
    if (!CAN_QUANTIZE && (rows[i].run == run_quantize || rows[i].run == run_dequantize))
        return 0;
    return measure_ns(&shared, &rows[i]);
}

int main(int argc, char **argv)
{
    const char *cap = ddp_conf_get(DDP_CONF_SIMD);
    enum ddp_simd level = ddp_cpu_best_simd();
    struct ddp_err err = {0};
    if (ddp_conf_check(&err) != 0) {
        fprintf(stderr, "bench_kernels: DDPBENCH_SIMD is not scalar, avx2 or avx512\n");
        return 64;
    }
    if (level == DDP_SIMD_SCALAR) {
        fprintf(stderr, "bench_kernels: this processor has no AVX2\n");
        return 69;
    }
    if (cap != NULL)
        level = DDP_MIN(level, (enum ddp_simd)ddp_simd_parse(cap));
    char none = 0, *n_end = &none, *rounds_end = &none;
    const long n = argc > 1 ? strtol(argv[1], &n_end, 10) : 0;
    const long rounds = argc > 2 ? strtol(argv[2], &rounds_end, 10) : 15;
    if (*n_end != '\0' || *rounds_end != '\0' || n < 0 || n >= 1l << 32 || rounds < 1 ||
        rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: bench_kernels [ELEMENTS [ROUNDS]]\n");
        return 64;
    }
    const bool good = bench_size(level, n > 0 ? (size_t)n : 25000000, (int)rounds);
    if (n == 0)
        bench_size(level, 49152, (int)rounds);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "bench_kernels: the output could not be written\n");
        return 74;
    }
    return good ? 0 : 1;
}
