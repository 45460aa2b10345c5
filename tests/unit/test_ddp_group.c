/* libddp: named groups and registered parameters. Ranks are threads (DDP_LAUNCH_THREADS) and
 * processes. */
#include "ddp_ranks.h"

static int body_names(struct ddp *d, void *arg, struct ddp_err *err)
{
    static const int all[] = {0, 1, 2}, outer[] = {0, 2}, one[] = {1};
    const int *ranks = all;
    const int me = ddp_rank(d);
    CHECK(strcmp(ddp_list_groups(d, 0), "world") == 0 && ddp_list_groups(d, 1) == NULL);
    CHECK(ddp_find_group(d, "outer", &ranks) == 0 && ranks == NULL);
    CHECK(ddp_get_group(d, "outer") == NULL);
    DDP_TRY(ddp_new_group(d, "outer", outer, 2, err));
    DDP_TRY(ddp_new_group(d, "one", one, 1, err));
    DDP_TRY(ddp_new_group(d, "all", all, 3, err));

    static const char *const names[] = {"world", "outer", "one", "all"};
    for (int i = 0; i < 4; i++)
        CHECK(strcmp(ddp_list_groups(d, i), names[i]) == 0);
    CHECK(ddp_list_groups(d, 4) == NULL && ddp_list_groups(d, -1) == NULL);
    CHECK(ddp_find_group(d, "outer", &ranks) == 2 && ranks[0] == 0 && ranks[1] == 2);
    CHECK(ddp_find_group(d, "one", &ranks) == 1 && ranks[0] == 1);
    CHECK(ddp_find_group(d, "world", &ranks) == 3 && ranks[0] == 0 && ranks[2] == 2);
    CHECK(ddp_find_group(d, "", &ranks) == 0 && ranks == NULL);

    /* All ranks have the handle. Members have a rank within the group, the others -1. */
    struct ddp_group *group = ddp_get_group(d, "outer");
    CHECK(group != NULL && group != ddp_get_group(d, "world"));
    CHECK(ddp_group_rank(d, group) == (me == 1 ? -1 : me / 2));
    CHECK(ddp_group_rank(d, ddp_get_group(d, "one")) == (me == 1 ? 0 : -1));
    CHECK(ddp_group_rank(d, NULL) == me && ddp_group_rank(d, ddp_get_group(d, "world")) == me);
    CHECK(ddp_get_group(d, "Outer") == NULL && ddp_get_group(d, NULL) == NULL);
    return 0;
}

static void test_names(void **state)
{
    run_ranks(3, body_names, NULL);
}

/* Every documented error. A failed call leaves no group behind. */
static int body_errors(struct ddp *d, void *arg, struct ddp_err *err)
{
    static const int good[] = {0, 1}, low[] = {-1, 0}, high[] = {0, 3}, twice[] = {1, 1},
                     down[] = {1, 0};
    char longest[65];
    memset(longest, 'x', 64);
    longest[64] = '\0';
    CHECK_FAILS(DDP_EUSAGE, "'world'", ddp_new_group(d, "world", good, 2, refused));
    CHECK_FAILS(DDP_EUSAGE, "", ddp_new_group(d, "", good, 2, refused));
    CHECK_FAILS(DDP_EUSAGE, "", ddp_new_group(d, NULL, good, 2, refused));
    CHECK_FAILS(DDP_EUSAGE, "63", ddp_new_group(d, longest, good, 2, refused));
    CHECK_FAILS(DDP_EUSAGE, "-1|3", ddp_new_group(d, "g", low, 2, refused));
    CHECK_FAILS(DDP_EUSAGE, "3", ddp_new_group(d, "g", high, 2, refused));
    CHECK_FAILS(DDP_EUSAGE, "'g'|1", ddp_new_group(d, "g", twice, 2, refused));
    CHECK_FAILS(DDP_EUSAGE, "'g'", ddp_new_group(d, "g", down, 2, refused));
    CHECK_FAILS(DDP_EUSAGE, "'g'|0", ddp_new_group(d, "g", good, 0, refused));
    CHECK_FAILS(DDP_EUSAGE, "'g'", ddp_new_group(d, "g", NULL, 2, refused));
    CHECK(ddp_get_group(d, "g") == NULL && ddp_list_groups(d, 1) == NULL);
    longest[63] = '\0';
    DDP_TRY(ddp_new_group(d, longest, good, 2, err));
    CHECK_FAILS(DDP_EUSAGE, "", ddp_new_group(d, longest, good, 2, refused));
    CHECK(ddp_get_group(d, longest) != NULL);

    /* One rank passes a bad name: all ranks get an error that quotes it. */
    const char *name = ddp_rank(d) == 2 ? "" : "h";
    CHECK_FAILS(DDP_EUSAGE, "", ddp_new_group(d, name, good, 2, refused));
    name = ddp_rank(d) == 2 ? "i" : "h";
    CHECK_FAILS(DDP_EMISMATCH, "new_group", ddp_new_group(d, name, good, 2, refused));
    CHECK_FAILS(DDP_EMISMATCH, "new_group",
                ddp_new_group(d, "h", good, ddp_rank(d) == 2 ? 1 : 2, refused));
    CHECK(ddp_get_group(d, "h") == NULL && ddp_get_group(d, "i") == NULL);
    return ddp_barrier(d, NULL, err);
}

static void test_errors(void **state)
{
    run_ranks(3, body_errors, NULL);
}

/* Every call with a group that this rank is not a member of. */
static int body_outside(struct ddp *d, void *arg, struct ddp_err *err)
{
    static const int ranks[] = {0};
    float x = 1, y[2];
    const struct ddp_array array = {&x, 1, DDP_F32};
    const struct ddp_array two[] = {{&y[0], 1, DDP_F32}, {&y[1], 1, DDP_F32}};
    DDP_TRY(ddp_new_group(d, "first", ranks, 1, err));
    const struct ddp_call call = {.group = ddp_get_group(d, "first")};
    struct ddp_bucketer *bucketer;
    static const char words[] = "rank 1|'first'";
    if (ddp_rank(d) == 0)
        return ddp_barrier(d, call.group, err);
    CHECK_FAILS(DDP_EUSAGE, words, ddp_barrier(d, call.group, refused));
    CHECK_FAILS(DDP_EUSAGE, words, ddp_all_reduce(d, &array, 1, &call, refused));
    CHECK_FAILS(DDP_EUSAGE, words, ddp_reduce(d, &array, 1, 0, &call, refused));
    CHECK_FAILS(DDP_EUSAGE, words, ddp_bcast(d, &array, 1, 0, &call, refused));
    CHECK_FAILS(DDP_EUSAGE, words, ddp_all_gather(d, &array, two, call.group, refused));
    CHECK_FAILS(DDP_EUSAGE, words, ddp_reduce_scatter(d, two, &array, &call, refused));
    CHECK_FAILS(DDP_EUSAGE, words, ddp_all_reduce_parameters(d, &call, refused));
    CHECK_FAILS(DDP_EUSAGE, words, ddp_bucketer_create(d, &array, 1, 0, &call, &bucketer, refused));
    CHECK(x == 1);
    return 0;
}

static void test_outside(void **state)
{
    run_ranks(2, body_outside, NULL);
}

/* A group's barrier blocks its members only. */
static int body_barrier(struct ddp *d, void *arg, struct ddp_err *err)
{
    static const int ranks[] = {1, 2};
    DDP_TRY(ddp_new_group(d, "pair", ranks, 2, err));
    for (int i = 0; i < 50 && ddp_rank(d) > 0; i++)
        DDP_TRY(ddp_barrier(d, ddp_get_group(d, "pair"), err));
    return ddp_barrier(d, NULL, err);
}

/* At the limit of groups all ranks get the error, members or not. */
static int body_many(struct ddp *d, void *arg, struct ddp_err *err)
{
    static const int ranks[] = {0};
    char name[32];
    for (int i = 0; i < 63; i++) {
        name[0] = (char)('A' + i / 26);
        name[1] = (char)('a' + i % 26);
        name[2] = '\0';
        DDP_TRY(ddp_new_group(d, name, ranks, 1, err));
    }
    DDP_TRY(ddp_new_group(d, "last", ranks, 1, err));
    CHECK_FAILS(DDP_EUNAVAIL, "", ddp_new_group(d, "more", ranks, 1, refused));
    CHECK(ddp_get_group(d, "more") == NULL && ddp_get_group(d, "last") != NULL);
    return ddp_barrier(d, NULL, err);
}

static void test_barrier_and_room(void **state)
{
    run_ranks(3, body_barrier, NULL);
    run_ranks(2, body_many, NULL);
}

static int body_parameters(struct ddp *d, void *arg, struct ddp_err *err)
{
    float w[10], b[3];
    int32_t steps = ddp_rank(d) + 1;
    const int n = ddp_size(d), sum = n * (n + 1) / 2;
    for (int i = 0; i < 10; i++)
        w[i] = (float)((ddp_rank(d) + 1) * (i + 1));
    for (int i = 0; i < 3; i++)
        b[i] = (float)(ddp_rank(d) + 1);
    /* no parameters are registered, so nothing happens */
    DDP_TRY(ddp_all_reduce_parameters(d, NULL, err));
    DDP_TRY(ddp_add_parameter(d, "w", (struct ddp_array){w, 10, DDP_F32}, err));
    DDP_TRY(ddp_add_parameter(d, "b", (struct ddp_array){b, 3, DDP_F32}, err));
    DDP_TRY(ddp_add_parameter(d, "steps", (struct ddp_array){&steps, 1, DDP_I32}, err));
    DDP_TRY(ddp_add_parameter(d, "empty", (struct ddp_array){NULL, 0, DDP_F16}, err));
    CHECK_FAILS(DDP_EUSAGE, "'b'",
                ddp_add_parameter(d, "b", (struct ddp_array){w, 10, DDP_F32}, refused));
    CHECK_FAILS(DDP_EUSAGE, "",
                ddp_add_parameter(d, "", (struct ddp_array){w, 10, DDP_F32}, refused));
    CHECK_FAILS(DDP_EUSAGE, "",
                ddp_add_parameter(d, NULL, (struct ddp_array){w, 10, DDP_F32}, refused));
    CHECK_FAILS(DDP_EUSAGE, "10",
                ddp_add_parameter(d, "c", (struct ddp_array){NULL, 10, DDP_F32}, refused));
    CHECK_FAILS(DDP_EUSAGE, "dtype",
                ddp_add_parameter(d, "c", (struct ddp_array){w, 10, (enum ddp_dtype)77}, refused));
    DDP_TRY(ddp_all_reduce_parameters(d, NULL, err));
    for (int i = 0; i < 10; i++)
        CHECK(w[i] == (float)(sum * (i + 1)));
    CHECK(b[0] == (float)sum && b[2] == (float)sum && steps == sum);
    const struct ddp_call average = {.division = true};
    DDP_TRY(ddp_all_reduce_parameters(d, &average, err)); /* the average of equal values */
    CHECK(w[9] == (float)(sum * 10) && b[1] == (float)sum && steps == sum);

    /* After clearing, the arrays are not touched and their names can be used again. */
    ddp_clear_parameters(d);
    DDP_TRY(ddp_all_reduce_parameters(d, NULL, err));
    CHECK(w[9] == (float)(sum * 10));
    if (ddp_rank(d) > 0)
        DDP_TRY(ddp_add_parameter(d, "w", (struct ddp_array){w, 10, DDP_F32}, err));
    if (n > 1)
        CHECK_FAILS(DDP_EMISMATCH, "all_reduce_parameters",
                    ddp_all_reduce_parameters(d, NULL, refused));
    return 0;
}

static void test_parameters(void **state)
{
    run_all_ranks(3, body_parameters, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_errors),
        cmocka_unit_test(test_outside),    cmocka_unit_test(test_barrier_and_room),
        cmocka_unit_test(test_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
