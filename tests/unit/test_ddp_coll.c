/* libddp: all_reduce, reduce, bcast, all_gather and reduce_scatter, with lists, groups,
 * division, and arrays in any kind of memory. Ranks are threads (DDP_LAUNCH_THREADS) and
 * processes. */
#include "base/mem.h"
#include "ddp_ranks.h"

/* The memory of a test's arrays. SKEWED: registered on all ranks, at different offsets; MIXED:
 * registered on rank 0 only. */
enum place { PRIVATE, REGISTERED, SKEWED, MIXED, PLACES };

/* One block, from which take() cuts arrays in turn. */
struct arena {
    struct ddp *d;
    unsigned char *private, *at;
    void *block;
};

#define ARENA_BYTES ((size_t)4 << 20)

static int arena_open(struct arena *arena, struct ddp *d, enum place place, struct ddp_err *err)
{
    arena->d = d;
    arena->private = calloc(1, ARENA_BYTES);
    DDP_TRY(ddp_alloc(d, ARENA_BYTES, &arena->block, err));
    CHECK(arena->private != NULL);
    const bool registered =
        place == REGISTERED || place == SKEWED || (place == MIXED && ddp_rank(d) == 0);
    arena->at = registered ? arena->block : arena->private;
    if (place == SKEWED)
        arena->at += 1024 * (size_t)ddp_rank(d);
    return 0;
}

static void arena_close(struct arena *arena)
{
    free(arena->private);
    ddp_free(arena->d, arena->block);
}

/* Returns an array that begins `gap` bytes after the previous one. */
static struct ddp_array take(struct arena *arena, size_t count, enum ddp_dtype dtype, size_t gap)
{
    arena->at += gap;
    const struct ddp_array array = {arena->at, count, dtype};
    arena->at += count * ddp_dtype_size(dtype);
    return array;
}

static float value(int rank, size_t list, size_t i)
{
    return (float)((rank + 1) * (int)(i % 11 + list + 1));
}

/* Arrays of f32 and, every third one, i32. */
static void fill(const struct ddp_array *arrays, int n, int rank)
{
    for (int l = 0; l < n; l++)
        for (size_t i = 0; i < arrays[l].count; i++) {
            if (arrays[l].dtype == DDP_F32)
                ((float *)arrays[l].data)[i] = value(rank, (size_t)l, i);
            else
                ((int32_t *)arrays[l].data)[i] = (int32_t)value(rank, (size_t)l, i);
        }
}

/* Returns true if all values are `factor` times rank 0's values (integers: truncated). */
static bool holds(const struct ddp_array *arrays, int n, float factor)
{
    for (int l = 0; l < n; l++)
        for (size_t i = 0; i < arrays[l].count; i++) {
            const float expected = value(0, (size_t)l, i) * factor;
            if (arrays[l].dtype == DDP_F32 ? ((float *)arrays[l].data)[i] != expected
                                           : ((int32_t *)arrays[l].data)[i] != (int32_t)expected)
                return false;
        }
    return true;
}

#define LIST 7

/* Takes arrays of several counts: zero, small, larger than a slot, not a multiple of anything;
 * `gap` bytes lie between them. */
static void take_list(struct arena *arena, struct ddp_array list[LIST], size_t gap)
{
    static const size_t counts[LIST] = {5, 0, 1000, 1, 30011, 64, 3};
    for (int l = 0; l < LIST; l++)
        list[l] = take(arena, counts[l], l % 3 == 2 ? DDP_I32 : DDP_F32, l > 0 ? gap : 0);
}

static int check_list(struct ddp *d, struct ddp_array list[LIST], const struct ddp_call *call,
                      struct ddp_err *err)
{
    const int n = ddp_size(d), me = ddp_rank(d);
    const float sum = (float)(n * (n + 1)) / 2, all = call->division ? sum / (float)n : sum;
    fill(list, LIST, me);
    DDP_TRY(ddp_all_reduce(d, list, LIST, call, err));
    CHECK(holds(list, LIST, all));
    for (int root = 0; root < n; root++) {
        fill(list, LIST, me);
        DDP_TRY(ddp_reduce(d, list, LIST, root, call, err));
        CHECK(holds(list, LIST, me == root ? all : (float)(me + 1)));
        struct ddp_call plain = *call;
        plain.division = false;
        fill(list, LIST, me);
        DDP_TRY(ddp_bcast(d, list, LIST, root, &plain, err));
        CHECK(holds(list, LIST, (float)(root + 1)));
    }
    return 0;
}

static int body_lists(struct ddp *d, void *arg, struct ddp_err *err)
{
    for (int place = 0; place < PLACES; place++) {
        for (int variant = 0; variant < 8; variant++) {
            const struct ddp_call call = {.division = variant & 1, .each = variant & 2};
            struct ddp_array list[LIST];
            struct arena arena;
            /* Averages of integers are compared only for odd n, where they come out even. */
            if (call.division && ddp_size(d) % 2 == 0)
                continue;
            DDP_TRY(arena_open(&arena, d, (enum place)place, err));
            take_list(&arena, list, variant & 4 ? 20 : 0);
            DDP_TRY(check_list(d, list, &call, err));
            arena_close(&arena);
        }
    }
    return 0;
}

static void test_lists(void **state)
{
    run_all_ranks(4, body_lists, NULL);
}

/* The most common use: default options and one registered array; and averages. */
static int body_plain(struct ddp *d, void *arg, struct ddp_err *err)
{
    void *block;
    DDP_TRY(ddp_alloc(d, 1000 * sizeof(float), &block, err));
    const struct ddp_array array = {block, 1000, DDP_F32};
    const int n = ddp_size(d), me = ddp_rank(d);
    fill(&array, 1, me);
    DDP_TRY(ddp_all_reduce(d, &array, 1, NULL, err));
    CHECK(holds(&array, 1, (float)(n * (n + 1)) / 2));
    fill(&array, 1, me);
    DDP_TRY(ddp_reduce(d, &array, 1, n - 1, NULL, err));
    CHECK(holds(&array, 1, me == n - 1 ? (float)(n * (n + 1)) / 2 : (float)(me + 1)));
    fill(&array, 1, me);
    DDP_TRY(ddp_bcast(d, &array, 1, n - 1, NULL, err));
    CHECK(holds(&array, 1, (float)n));
    DDP_TRY(ddp_all_reduce(d, NULL, 0, NULL, err));

    /* division averages; averages of integers are truncated toward zero. */
    float x[2] = {(float)me, (float)(-2 * me)};
    int32_t i = me == 0 ? -7 : 0;
    const struct ddp_array mixed[] = {{x, 2, DDP_F32}, {&i, 1, DDP_I32}};
    const struct ddp_call call = {.division = true};
    DDP_TRY(ddp_all_reduce(d, mixed, 2, &call, err));
    CHECK(x[0] == (float)(n - 1) / 2 && x[1] == -(float)(n - 1) && i == -7 / n);
    return 0;
}

static void test_plain(void **state)
{
    run_all_ranks(4, body_plain, NULL);
}

static int check_shards(struct ddp *d, enum place place, int variant, struct ddp_err *err)
{
    const int n = ddp_size(d), me = ddp_rank(d);
    const bool in_place = variant & 1;
    const size_t gap = variant & 2 ? 36 : 0, count = variant & 4 ? 30011 : 3;
    const struct ddp_call call = {.division = variant & 8};
    const float sum = (float)(n * (n + 1)) / 2;
    struct ddp_array parts[4], whole;
    struct arena arena;
    DDP_TRY(arena_open(&arena, d, place, err));
    for (int r = 0; r < n; r++)
        parts[r] = take(&arena, count, DDP_F32, gap);
    whole = in_place ? parts[me] : take(&arena, count, DDP_F32, 4);

    fill(&whole, 1, me);
    DDP_TRY(ddp_all_gather(d, &whole, parts, NULL, err));
    for (int r = 0; r < n; r++)
        CHECK(holds(&parts[r], 1, (float)(r + 1)));
    CHECK(holds(&whole, 1, (float)(me + 1)));

    for (int r = 0; r < n; r++)
        for (size_t i = 0; i < count; i++)
            ((float *)parts[r].data)[i] = value(me, 0, i) * (float)(r + 1);
    DDP_TRY(ddp_reduce_scatter(d, parts, &whole, &call, err));
    const float mine = (float)(me + 1) * (call.division ? sum / (float)n : sum);
    if (n == 1 || n == 3 || !call.division)
        CHECK(holds(&whole, 1, mine));
    for (int r = 0; r < n; r++)
        if (!in_place || r != me)
            CHECK(holds(&parts[r], 1, (float)((me + 1) * (r + 1))));
    arena_close(&arena);
    return 0;
}

static int body_shards(struct ddp *d, void *arg, struct ddp_err *err)
{
    for (int place = 0; place < PLACES; place++)
        for (int variant = 0; variant < 16; variant++)
            DDP_TRY(check_shards(d, (enum place)place, variant, err));
    const struct ddp_array none = {NULL, 0, DDP_F32}, nones[4] = {none, none, none, none};
    DDP_TRY(ddp_all_gather(d, &none, nones, NULL, err));
    return ddp_reduce_scatter(d, nones, &none, NULL, err);
}

static void test_shards(void **state)
{
    run_all_ranks(4, body_shards, NULL);
}

/* In a group, ranks count within the group. Two groups work at the same time, and an array
 * larger than the first message is packed in separate memory. */
static int body_groups(struct ddp *d, void *arg, struct ddp_err *err)
{
    static const int odd[] = {1, 3}, even[] = {0, 2, 4};
    const int me = ddp_rank(d), mine = me / 2, n = me % 2 ? 2 : 3;
    DDP_TRY(ddp_new_group(d, "odd", odd, 2, err));
    DDP_TRY(ddp_new_group(d, "even", even, 3, err));
    const struct ddp_call call = {.group = ddp_get_group(d, me % 2 ? "odd" : "even")};
    static const size_t counts[] = {3, 40000};
    for (int c = 0; c < 2; c++) {
        struct ddp_array a[] = {{malloc(counts[c] * 4), counts[c], DDP_F32},
                                {malloc(400), 100, DDP_I32}};
        struct ddp_array parts[3];
        for (int r = 0; r < 3; r++)
            parts[r] = (struct ddp_array){malloc(counts[c] * 4), counts[c], DDP_F32};
        fill(a, 2, mine);
        DDP_TRY(ddp_all_reduce(d, a, 2, &call, err));
        CHECK(holds(a, 2, (float)(n * (n + 1)) / 2));
        fill(a, 2, mine);
        DDP_TRY(ddp_reduce(d, a, 2, 1, &call, err));
        CHECK(holds(a, 2, mine == 1 ? (float)(n * (n + 1)) / 2 : (float)(mine + 1)));
        fill(a, 2, mine);
        DDP_TRY(ddp_bcast(d, a, 2, 1, &call, err));
        CHECK(holds(a, 2, 2));
        fill(a, 1, mine);
        DDP_TRY(ddp_all_gather(d, a, parts, call.group, err));
        for (int r = 0; r < n; r++)
            CHECK(holds(&parts[r], 1, (float)(r + 1)));
        DDP_TRY(ddp_reduce_scatter(d, parts, a, &call, err));
        CHECK(holds(a, 1, (float)((mine + 1) * n)));
        CHECK_FAILS(DDP_EUSAGE, "dst 3", ddp_reduce(d, a, 2, 3, &call, refused));
        for (int i = 0; i < 2; i++)
            free(a[i].data);
        for (int r = 0; r < 3; r++)
            free(parts[r].data);
    }
    return 0;
}

static void test_groups(void **state)
{
    run_ranks(5, body_groups, NULL);
}

/* Every documented error. The world can be used afterwards. */
static int body_errors(struct ddp *d, void *arg, struct ddp_err *err)
{
    float x[4] = {1, 1, 1, 1};
    const struct ddp_array good[] = {{&x[0], 1, DDP_F32}, {&x[1], 1, DDP_F32}};
    const struct ddp_array null = {NULL, 3, DDP_F32}, odd = {x, 1, (enum ddp_dtype) - 1},
                           huge = {x, SIZE_MAX / 2, DDP_F32},
                           huge_together = {x, SIZE_MAX / 4 - 1, DDP_F32};
    const struct ddp_array longer[] = {{&x[0], 1, DDP_F32}, {&x[2], 2, DDP_F32}};
    const struct ddp_array other[] = {{&x[0], 1, DDP_F32}, {&x[2], 1, DDP_I32}};
    const struct ddp_call division = {.division = true};
    CHECK_FAILS(DDP_EUSAGE, "", ddp_all_reduce(d, &null, 1, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "dtype", ddp_all_reduce(d, &odd, 1, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "0", ddp_all_reduce(d, &huge, 1, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "", ddp_all_reduce(d, &huge_together, 1, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "-1", ddp_all_reduce(d, good, -1, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "", ddp_all_reduce(d, NULL, 1, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "", ddp_reduce(d, &null, 1, 0, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "-1", ddp_reduce(d, good, 1, -1, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "2", ddp_reduce(d, good, 1, 2, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "", ddp_bcast(d, &null, 1, 0, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "-1", ddp_bcast(d, good, 1, -1, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "2", ddp_bcast(d, good, 1, 2, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "division", ddp_bcast(d, good, 1, 0, &division, refused));
    CHECK_FAILS(DDP_EUSAGE, "1|2", ddp_all_gather(d, good, longer, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "i32", ddp_all_gather(d, good, other, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "", ddp_all_gather(d, NULL, good, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "", ddp_all_gather(d, &null, good, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "1|2", ddp_reduce_scatter(d, longer, good, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "i32", ddp_reduce_scatter(d, other, good, NULL, refused));
    CHECK_FAILS(DDP_EUSAGE, "", ddp_reduce_scatter(d, NULL, good, NULL, refused));
    CHECK(x[0] == 1 && x[1] == 1);
    DDP_TRY(ddp_all_reduce(d, good, 2, NULL, err));
    CHECK(x[0] == 2 && x[1] == 2 && x[2] == 1);
    return 0;
}

/* One rank makes an invalid or different call: both ranks fail at once with the same error. */
static int body_disagree(struct ddp *d, void *arg, struct ddp_err *err)
{
    float x[4] = {1, 1, 1, 1};
    const int me = ddp_rank(d);
    const struct ddp_array bad = {me == 1 ? NULL : x, 1, DDP_F32},
                           size = {x, me == 1 ? 2 : 1, DDP_F32},
                           type = {x, 1, me == 1 ? DDP_F32 : DDP_I32}, good = {x, 1, DDP_F32},
                           parts[] = {{&x[0], size.count, DDP_F32}, {&x[2], size.count, DDP_F32}};
    const struct ddp_call call = {.division = me == 1}, each = {.each = me == 1};
    CHECK_FAILS(DDP_EUSAGE, "", ddp_all_reduce(d, &bad, 1, NULL, refused));
    CHECK_FAILS(DDP_EMISMATCH, "0|1|all_reduce", ddp_all_reduce(d, &size, 1, NULL, refused));
    CHECK_FAILS(DDP_EMISMATCH, "0|1", ddp_all_reduce(d, &type, 1, NULL, refused));
    CHECK_FAILS(DDP_EMISMATCH, "0|1", ddp_all_reduce(d, &good, me, NULL, refused));
    CHECK_FAILS(DDP_EMISMATCH, "0|1", ddp_all_reduce(d, &good, 1, &call, refused));
    CHECK_FAILS(DDP_EMISMATCH, "0|1", ddp_all_reduce(d, &good, 1, &each, refused));
    CHECK_FAILS(DDP_EMISMATCH, "0|1", ddp_reduce(d, &good, 1, me, NULL, refused));
    CHECK_FAILS(DDP_EMISMATCH, "0|1", ddp_bcast(d, &good, 1, me, NULL, refused));
    CHECK_FAILS(DDP_EMISMATCH, "0|1", ddp_all_gather(d, &size, parts, NULL, refused));
    CHECK_FAILS(DDP_EMISMATCH, "0|1", ddp_reduce_scatter(d, parts, &size, NULL, refused));
    DDP_TRY(ddp_all_reduce(d, &good, 1, NULL, err));
    CHECK(x[0] == 2 && x[1] == 1);
    return 0;
}

static void test_errors(void **state)
{
    run_ranks(2, body_errors, NULL);
    run_ranks(2, body_disagree, NULL);
}

/* All ranks hold the same bits even if sums are rounded, as ddp.h promises. */
static int body_bits(struct ddp *d, void *arg, struct ddp_err *err)
{
    enum { COUNT = 5000 };
    float *mine = malloc(COUNT * 4), *all = malloc(4 * COUNT * 4);
    struct ddp_array array = {mine, COUNT, DDP_F32}, parts[4];
    CHECK(mine != NULL && all != NULL);
    for (int i = 0; i < COUNT; i++)
        mine[i] = 1.0f / (float)(i * 7 + ddp_rank(d) * 13 + 3);
    const struct ddp_call call = {.division = true};
    DDP_TRY(ddp_all_reduce(d, &array, 1, &call, err));
    for (int r = 0; r < ddp_size(d); r++)
        parts[r] = (struct ddp_array){all + r * COUNT, COUNT, DDP_F32};
    DDP_TRY(ddp_all_gather(d, &array, parts, NULL, err));
    for (int r = 0; r < ddp_size(d); r++)
        CHECK(memcmp(parts[r].data, mine, COUNT * 4) == 0);
    free(mine);
    free(all);
    return 0;
}

static void test_bits(void **state)
{
    run_ranks(3, body_bits, NULL);
    run_ranks(4, body_bits, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),  cmocka_unit_test(test_lists),  cmocka_unit_test(test_shards),
        cmocka_unit_test(test_groups), cmocka_unit_test(test_errors), cmocka_unit_test(test_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
