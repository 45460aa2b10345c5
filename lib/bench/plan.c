/* The plan: turns options into points. */
#include "bench/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "bench/operands.h"
#include "coll/coll.h"

/* The sizes [n] to measure, in order. */
struct sizes {
    uint64_t *v;
    int n;
};

static int check_twice(const struct ddp_int_list *list, const char *option,
                       const char *(*name)(int value), struct ddp_err *err)
{
    for (int i = 0; i < list->n; i++) {
        for (int j = 0; j < i; j++) {
            if (list->v[i] == list->v[j])
                return ddp_fail(err, DDP_EUSAGE, "--%s '%s' is given twice", option,
                                name((int)list->v[i]));
        }
    }
    return 0;
}

static int check_partial_twice(const struct ddp_int_list *partial, struct ddp_err *err)
{
    for (int i = 0; i < partial->n; i++)
        for (int j = 0; j < i; j++)
            if (partial->v[i] == partial->v[j])
                return ddp_fail(err, DDP_EUSAGE, "--partial %lld is given twice",
                                (long long)partial->v[i]);
    return 0;
}

static const char *dtype_name(int value)
{
    return ddp_dtype_name((enum ddp_dtype)value);
}

static const char *op_name(int value)
{
    return ddp_op_name((enum ddp_op)value);
}

/* Sets *bytes to the next size of a range. Returns false at the end of the range. The last step is
 * shortened if necessary, so that max_bytes is always measured. */
static bool next_size(const struct ddp_bench_options *o, uint64_t *bytes)
{
    uint64_t next;
    if (*bytes >= o->max_bytes)
        return false;
    bool overflow = o->step_bytes > 0
                        ? __builtin_add_overflow(*bytes, o->step_bytes, &next)
                        : __builtin_mul_overflow(*bytes, (uint64_t)o->step_factor, &next);
    *bytes = overflow || next > o->max_bytes ? o->max_bytes : next;
    return true;
}

static int check_range(const struct ddp_bench_options *o, struct ddp_err *err)
{
    char from[24], to[24];
    ddp_format_size(o->min_bytes, from, sizeof from);
    ddp_format_size(o->max_bytes, to, sizeof to);
    if ((o->step_bytes > 0) == (o->step_factor != 0))
        return ddp_fail(err, DDP_EUSAGE,
                        "a range of sizes needs one of --step-factor and --step-bytes");
    if (o->step_bytes == 0 && o->step_factor < 2)
        return ddp_fail(err, DDP_EUSAGE,
                        "with --step-factor %lld the sizes do not grow: use 2 or more",
                        (long long)o->step_factor);
    if (o->min_bytes > o->max_bytes)
        return ddp_fail(err, DDP_EUSAGE, "--min-bytes %s is above --max-bytes %s", from, to);
    if (o->min_bytes == 0 && o->step_bytes == 0 && o->max_bytes > 0) {
        ddp_fail(err, DDP_EUSAGE, "with --min-bytes 0 and --step-factor, all sizes would be 0");
        return ddp_hint(err, "use --step-bytes, or list the sizes: --size 0,8,...");
    }
    uint64_t bytes = o->min_bytes;
    int n = 1;
    while (o->max_bytes > 0 && n <= DDP_PLAN_POINTS_MAX && next_size(o, &bytes))
        n++;
    if (n > DDP_PLAN_POINTS_MAX)
        return ddp_fail(err, DDP_EUSAGE, "--min-bytes %s to --max-bytes %s are more than %d sizes",
                        from, to, DDP_PLAN_POINTS_MAX);
    return 0;
}

/* Rejects options that cannot be combined with --block. The calls of a block have one input and one
 * start in common, but these options need an input and a start for each call. */
static int check_block(const struct ddp_bench_options *o, struct ddp_err *err)
{
    const char *other = o->check == DDP_CHECK_ALL ? "check all"
                        : o->overlap              ? "overlap-compute"
                        : ddp_plan_reduces(o)     ? "compress or --partial"
                                                  : NULL;
    if (o->block <= 1 || !other)
        return 0;
    return ddp_fail(err, DDP_EUSAGE, "--block %lld cannot be combined with --%s",
                    (long long)o->block, other);
}

/* One method of --compress; without --compress the only method is "none". */
struct method {
    const struct ddp_bench_options *options;
    int index;
};

static const char *algorithm_choice(const void *ctx, int i)
{
    const struct method *m = ctx;
    if (i < 2)
        return i == 0 ? "auto" : "all";
    return ddp_plan_algorithm(m->options, m->index, i - 2);
}

static int unknown_algorithm(const struct method *m, const char *name, struct ddp_err *err)
{
    char of[80];
    const char *method = ddp_plan_method(m->options, m->index)->text;
    const bool plain = strcmp(method, "none") == 0;
    snprintf(of, sizeof of, " of %s%s%.32s", ddp_coll_name(m->options->coll),
             plain ? "" : " --compress ", plain ? "" : method);
    return ddp_fail_unknown(err, "algorithm", name, of, algorithm_choice, m);
}

static bool has_algorithm(const struct method *m, const char *name)
{
    const char *choice;
    for (int i = 0; (choice = algorithm_choice(m, i)) != NULL; i++) {
        if (strcmp(choice, name) == 0)
            return true;
    }
    return false;
}

/* Checks that each name of --algorithm is an algorithm of every method of --compress. */
static int check_algorithms(const struct ddp_bench_options *o, struct ddp_err *err)
{
    for (int i = 0; i < o->algorithms.n; i++) {
        const char *name = o->algorithms.v[i];
        if (strcmp(name, "all") == 0 && o->algorithms.n > 1)
            return ddp_fail(err, DDP_EUSAGE,
                            "--algorithm 'all' cannot be combined with other algorithms");
        for (int j = 0; j < i; j++) {
            if (strcmp(name, o->algorithms.v[j]) == 0)
                return ddp_fail(err, DDP_EUSAGE, "--algorithm '%s' is given twice", name);
        }
        for (int m = 0; m < ddp_plan_methods(o); m++) {
            const struct method method = {o, m};
            if (!has_algorithm(&method, name))
                return unknown_algorithm(&method, name, err);
        }
    }
    return 0;
}

/* Lists the algorithms for a method. `all` becomes every algorithm of the collective or of the
 * compressed exchange. */
static int list_method(const struct ddp_bench_options *o, int method, struct ddp_string_list *out,
                       struct ddp_err *err)
{
    memset(out, 0, sizeof *out);
    if (o->algorithms.n == 0) {
        out->n = 1;
        snprintf(out->v[0], sizeof out->v[0], "auto");
        return 0;
    }
    *out = o->algorithms;
    if (strcmp(o->algorithms.v[0], "all") != 0)
        return 0;
    const char *choice;
    for (out->n = 0; (choice = ddp_plan_algorithm(o, method, out->n)) != NULL; out->n++) {
        if (out->n == DDP_OPT_LIST_MAX)
            return ddp_fail(err, DDP_EINTERNAL, "more than %d algorithms", DDP_OPT_LIST_MAX);
        snprintf(out->v[out->n], sizeof out->v[0], "%s", choice);
    }
    return 0;
}

/* Sets *out [methods] to the algorithms of each method, with "all" expanded. Release it with
 * free(). */
static int list_algorithms(const struct ddp_bench_options *o, struct ddp_string_list **out,
                           struct ddp_err *err)
{
    const int methods = ddp_plan_methods(o);
    struct ddp_string_list *lists;
    DDP_TRY(DDP_NEW(&lists, (size_t)methods, err));
    for (int m = 0; m < methods; m++) {
        int rc = list_method(o, m, &lists[m], err);
        if (rc != 0) {
            free(lists);
            return rc;
        }
    }
    *out = lists;
    return 0;
}

int ddp_plan_check(const struct ddp_bench_options *o, struct ddp_err *err)
{
    char text[24];
    if (o->sizes.n == 0)
        DDP_TRY(check_range(o, err));
    for (int i = 0; i < o->sizes.n; i++) {
        for (int j = 0; j < i; j++) {
            if (o->sizes.v[i] != o->sizes.v[j])
                continue;
            ddp_format_size(o->sizes.v[i], text, sizeof text);
            return ddp_fail(err, DDP_EUSAGE, "--size '%s' is given twice", text);
        }
    }
    if (o->iters < 1 || o->iters > DDP_PLAN_ITERS_MAX || o->warmup < 0)
        return ddp_fail(err, DDP_EUSAGE,
                        "--iters must be 1 to %lld, and --warmup at least 0, not %lld and %lld",
                        (long long)DDP_PLAN_ITERS_MAX, (long long)o->iters, (long long)o->warmup);
    DDP_TRY(check_block(o, err));
    if (!ddp_coll_has_in_place(o->coll) && o->placement == DDP_IN_PLACE)
        return ddp_fail(err, DDP_EUSAGE,
                        "--placement in: %s does not work in place; use --placement out",
                        ddp_coll_name(o->coll));
    DDP_TRY(check_twice(&o->dtypes, "dtype", dtype_name, err));
    DDP_TRY(check_twice(&o->ops, "op", op_name, err));
    DDP_TRY(check_partial_twice(&o->partial, err));
    if (o->overlap && ddp_plan_reduces(o)) {
        ddp_fail(err, DDP_EUSAGE,
                 "--overlap-compute cannot be combined with --compress or --partial");
        return ddp_hint(err, "use `ddpbench train --overlap` to measure overlap with compression");
    }
    DDP_TRY(ddp_plan_check_compress(o, err));
    DDP_TRY(ddp_plan_check_groups(o, err));
    return check_algorithms(o, err);
}

static int list_sizes(const struct ddp_bench_options *o, struct sizes *out, struct ddp_err *err)
{
    uint64_t bytes = o->min_bytes;
    int n = o->sizes.n ? o->sizes.n : 1;
    while (o->sizes.n == 0 && o->max_bytes > 0 && next_size(o, &bytes))
        n++;
    DDP_TRY(DDP_NEW(&out->v, (size_t)n, err));
    out->n = n;
    bytes = o->min_bytes;
    for (int i = 0; i < n; i++) {
        out->v[i] = o->sizes.n ? o->sizes.v[i] : bytes;
        next_size(o, &bytes);
    }
    return 0;
}

/* Sets *out to the memory that the user chose. Without a choice, uses registered memory if the
 * backend has it, else private memory. Fails if the backend lacks the chosen memory, because the
 * results would otherwise be labelled wrongly. */
static int choose_memory(int asked, const char *backend, enum ddp_memory *out, struct ddp_err *err)
{
    const struct ddp_backend *b = ddp_backend_find(backend);
    bool has = b && (b->caps & (DDP_CAP_REGISTERED | DDP_CAP_HOSTS));
    if (asked == DDP_MEMORY_REGISTERED && !has) {
        ddp_fail(err, DDP_EUNAVAIL, "backend '%s' has no registered memory", backend);
        return ddp_hint(err, "use --memory private");
    }
    if (asked == DDP_MEMORY_WINDOW && !(b && (b->caps & DDP_CAP_DEVICE))) {
        ddp_fail(err, DDP_EUSAGE, "--memory window: backend '%s' has no windows", backend);
        return ddp_hint(err, "only backend nccl has windows");
    }
    *out = asked >= 0 ? (enum ddp_memory)asked : has ? DDP_MEMORY_REGISTERED : DDP_MEMORY_PRIVATE;
    return 0;
}

/* Returns the number of elements of a message of at most `bytes` bytes. For collectives on chunks
 * it is rounded down, so that the chunks of all ranks have equally many elements. */
static uint64_t whole_count(const struct ddp_bench_options *o, uint64_t bytes, enum ddp_dtype dtype,
                            int ranks)
{
    const uint64_t count = bytes / ddp_dtype_size(dtype);
    return count - count % ddp_plan_chunks(o, ranks);
}

/* The first size that was rounded down, and the number `n` of points whose sizes were rounded
 * down. */
struct rounding {
    uint64_t requested, size;
    enum ddp_dtype dtype;
    int n;
};

/* Returns true if the size is above 0 but holds no element or, if the collective works on chunks,
 * not one element per rank. */
static bool is_small(const struct ddp_bench_options *o, uint64_t bytes, enum ddp_dtype dtype,
                     int ranks)
{
    return bytes > 0 && whole_count(o, bytes, dtype, ranks) == 0;
}

/* Returns the smallest size above 0 that is not too small (is_small). */
static uint64_t least_bytes(const struct ddp_bench_options *o, enum ddp_dtype dtype, int ranks)
{
    return ddp_plan_chunks(o, ranks) * ddp_dtype_size(dtype);
}

/* Refuses a listed size that is too small (is_small), unless such sizes are left out. If all types
 * are measured, such sizes are left out, like other points that cannot run. */
static int check_small(const struct ddp_bench_options *o, int ranks, bool all_dtypes,
                       struct ddp_err *err)
{
    for (int i = 0; i < o->sizes.n && !o->skip_small && !all_dtypes; i++)
        for (int d = 0; d < DDP_MAX(o->dtypes.n, 1); d++) {
            const enum ddp_dtype dtype = o->dtypes.n ? (enum ddp_dtype)o->dtypes.v[d] : DDP_F32;
            if (!is_small(o, o->sizes.v[i], dtype, ranks))
                continue;
            ddp_fail(err, DDP_EUSAGE, "--size %llu is too small for one element of %s%s",
                     (unsigned long long)o->sizes.v[i], ddp_dtype_name(dtype),
                     ddp_plan_chunks(o, ranks) > 1 ? " for every rank" : "");
            return ddp_hint(err, "--size must be 0 or at least %llu bytes here",
                            (unsigned long long)least_bytes(o, dtype, ranks));
        }
    return 0;
}

/* Writes the sizes that are too small (is_small) as "1, 2, 3". Replaces the end of a long list by
 * "...". Returns false if there is no such size. */
static bool list_small(const struct ddp_bench_options *o, enum ddp_dtype dtype, int ranks,
                       const struct sizes *sizes, char *out, size_t out_bytes)
{
    size_t used = 0;
    for (int i = 0; i < sizes->n; i++) {
        char item[32];
        if (!is_small(o, sizes->v[i], dtype, ranks))
            continue;
        snprintf(item, sizeof item, "%s%llu", used ? ", " : "", (unsigned long long)sizes->v[i]);
        const bool fits = used + sizeof item + sizeof ", ..." < out_bytes;
        used += (size_t)snprintf(out + used, out_bytes - used, "%s", fits ? item : ", ...");
        if (!fits)
            break;
    }
    return used > 0;
}

/* Returns the number of ranks in all groups together. ranks: number of ranks in the largest
 * group. */
static int world_ranks(const struct ddp_bench_options *o, int ranks)
{
    return o->group_list.ranks > 0 ? o->group_list.ranks
                                   : ranks * (o->groups > 1 ? (int)o->groups : 1);
}

/* Adds an entry to plan->small if any of the sizes is too small for this type. */
static void add_small(const struct ddp_bench_options *o, enum ddp_dtype dtype, int ranks,
                      const struct sizes *sizes, struct ddp_bench_plan *plan)
{
    struct ddp_left_out *l = &plan->small[plan->small_count];
    char list[128];
    if (!list_small(o, dtype, ranks, sizes, list, sizeof list))
        return;
    *l = (struct ddp_left_out){.ranks = world_ranks(o, ranks)};
    snprintf(l->what, sizeof l->what, "%s: %s of %s bytes", ddp_coll_name(o->coll),
             ddp_dtype_name(dtype), list);
    snprintf(l->reason, sizeof l->reason, "one element%s needs %llu bytes",
             ddp_plan_chunks(o, ranks) > 1 ? " for every rank" : "",
             (unsigned long long)least_bytes(o, dtype, ranks));
    plan->small_count++;
}

static void add_points(const struct ddp_bench_options *o, const struct ddp_point_spec *like,
                       const struct sizes *sizes, struct ddp_bench_plan *plan, struct rounding *r)
{
    for (int i = 0; i < sizes->n; i++) {
        if (is_small(o, sizes->v[i], like->dtype, like->ranks)) {
            plan->small[plan->small_count - 1].points++;
            continue;
        }
        struct ddp_point_spec *s = &plan->points[plan->count++];
        *s = *like;
        s->requested_bytes = sizes->v[i];
        s->count = whole_count(o, sizes->v[i], s->dtype, s->ranks);
        s->size_bytes = s->count * ddp_dtype_size(s->dtype);
        plan->buffer_bytes = DDP_MAX(plan->buffer_bytes, s->size_bytes);
        if (s->size_bytes == s->requested_bytes)
            continue;
        if (r->n++ == 0)
            *r = (struct rounding){s->requested_bytes, s->size_bytes, s->dtype, 1};
    }
}

static void describe_rounding(const struct ddp_bench_options *o, const struct rounding *r,
                              int ranks, struct ddp_bench_plan *plan)
{
    char more[48] = "";
    if (r->n == 0)
        return;
    if (r->n > 1)
        snprintf(more, sizeof more, "; more such points: %d", r->n - 1);
    bool parts = ddp_plan_chunks(o, ranks) > 1;
    snprintf(plan->rounding, sizeof plan->rounding,
             "%llu bytes are not a multiple of %llu, the size of one %s%s; rounded down to %llu%s",
             (unsigned long long)r->requested, (unsigned long long)least_bytes(o, r->dtype, ranks),
             ddp_dtype_name(r->dtype), parts ? " for every rank" : "", (unsigned long long)r->size,
             more);
}

/* Adds the points of every placement for one method, algorithm and number of chunks. */
static void add_placements(const struct ddp_bench_options *o, struct ddp_point_spec *s,
                           const struct sizes *sizes, struct ddp_bench_plan *plan,
                           struct rounding *r)
{
    for (int p = 0; p < DDP_PLACEMENT_COUNT; p++) {
        s->placement = (enum ddp_placement)p;
        if (p == DDP_IN_PLACE && !ddp_coll_has_in_place(o->coll))
            continue;
        if (p == DDP_OUT_OF_PLACE && ddp_point_is_reduced(s))
            continue;
        if (o->placement == 2 || o->placement == p)
            add_points(o, s, sizes, plan, r);
    }
}

/* Adds the points of every number of chunks. */
static void add_partials(const struct ddp_bench_options *o, struct ddp_point_spec *s,
                         const struct sizes *sizes, struct ddp_bench_plan *plan, struct rounding *r)
{
    for (int k = 0; k < DDP_MAX(o->partial.n, 1); k++) {
        s->partial = o->partial.n > 0 ? (int)o->partial.v[k] : 0;
        add_placements(o, s, sizes, plan, r);
    }
}

/* Adds the points of all combinations of the checked options. algorithms [methods]: the names for
 * each method. */
static void expand(const struct ddp_bench_options *o, const char *backend, int ranks,
                   const struct ddp_string_list *algorithms, const struct sizes *sizes,
                   struct ddp_bench_plan *plan)
{
    struct rounding rounding = {0, 0, DDP_F32, 0};
    struct ddp_point like;
    ddp_point_init(&like);
    struct ddp_point_spec *s = &like.spec;
    s->coll = o->coll;
    s->root = (int)o->root;
    s->ranks = ranks;
    s->groups = o->groups > 1 ? (int)o->groups : 1;
    memcpy(s->group_list, o->group_list.text, sizeof s->group_list);
    s->memory = plan->memory;
    s->overlap = o->overlap;
    snprintf(s->backend, sizeof s->backend, "%s", backend);
    if (ddp_coll_has_split(o->coll))
        snprintf(s->split, sizeof s->split, "%s", o->split.name);
    snprintf(s->arrival, sizeof s->arrival, "%s", o->arrival.name);
    for (int d = 0; d < DDP_MAX(o->dtypes.n, 1); d++) {
        s->dtype = o->dtypes.n ? (enum ddp_dtype)o->dtypes.v[d] : DDP_F32;
        add_small(o, s->dtype, ranks, sizes, plan);
        for (int op = 0; op < DDP_MAX(o->ops.n, 1); op++) {
            s->op = o->ops.n ? (enum ddp_op)o->ops.v[op] : DDP_SUM;
            for (int m = 0; m < ddp_plan_methods(o); m++) {
                snprintf(s->compress, sizeof s->compress, "%s", ddp_plan_method(o, m)->text);
                for (int a = 0; a < algorithms[m].n; a++) {
                    snprintf(s->algorithm, sizeof s->algorithm, "%.23s", algorithms[m].v[a]);
                    /* For one rank `auto` chooses `self`, which runs no graph. */
                    s->graph = o->graph && (ranks > 1 || strcmp(s->algorithm, "native") == 0);
                    add_partials(o, s, sizes, plan, &rounding);
                }
            }
        }
    }
    describe_rounding(o, &rounding, ranks, plan);
}

/* Checks that the split, if the collective has one, fits the ranks. least: ranks in the smallest
 * group. */
static int check_split(const struct ddp_bench_options *o, int ranks, int least, struct ddp_err *err)
{
    if (!ddp_coll_has_split(o->coll))
        return 0;
    if (o->split.kind != DDP_SPLIT_EVEN && least != ranks)
        return ddp_fail(err, DDP_EUSAGE,
                        "--split %s cannot be combined with --groups of different sizes",
                        o->split.kind == DDP_SPLIT_FILE ? "FILE" : o->split.name);
    return ddp_split_check_ranks(&o->split, ranks, err);
}

/* If the collective has a split, sets the loads of all points, and the size of the largest
 * array. */
static int add_split_loads(const struct ddp_bench_options *o, int ranks,
                           struct ddp_bench_plan *plan, struct ddp_err *err)
{
    size_t *table;
    if (!ddp_coll_has_split(o->coll))
        return 0;
    DDP_TRY(DDP_NEW(&table, (size_t)ranks * (size_t)ranks, err));
    for (int i = 0; i < plan->count; i++) {
        struct ddp_point_spec *s = &plan->points[i];
        const uint64_t elem = ddp_dtype_size(s->dtype);
        struct ddp_split_load load;
        ddp_split_fill(&o->split, o->coll, (uint64_t)o->seed, ranks, s->count / (size_t)ranks,
                       table);
        ddp_split_loads(o->coll, table, ranks, &load);
        s->busiest_bytes = load.busiest * elem;
        s->imbalance = load.mean > 0 ? (double)load.busiest / load.mean : NAN;
        plan->buffer_bytes = DDP_MAX(plan->buffer_bytes, load.largest * elem);
    }
    free(table);
    return 0;
}

int ddp_plan_fits(const struct ddp_bench_plan *plan, int ranks, int64_t available_bytes,
                  struct ddp_err *err)
{
    char each[24], sum[24], more[24], extra[64] = "";
    uint64_t need, compress = plan->compress_registered + plan->compress_private;
    ddp_format_size(plan->host_bytes, each, sizeof each);
    ddp_format_size(compress, more, sizeof more);
    if (compress > 0)
        snprintf(extra, sizeof extra, " + %s to compress", more);
    if (__builtin_mul_overflow(plan->bytes_per_rank, (uint64_t)ranks, &need) ||
        need > (uint64_t)INT64_MAX) {
        ddp_fail(err, DDP_ENOMEM, "%d ranks x (%d buffers x %s%s) are more than memory can address",
                 ranks, DDP_PLAN_BUFFERS, each, extra);
    } else {
        ddp_format_size(need, sum, sizeof sum);
        if (ddp_memory_check(need, available_bytes, err, "%d rank%s x (%d buffers x %s%s) = %s",
                             ranks, ranks == 1 ? "" : "s", DDP_PLAN_BUFFERS, each, extra, sum) == 0)
            return 0;
    }
    return ddp_hint(err, "use a smaller --size (--max-bytes) or fewer --ranks");
}

int ddp_plan_fits_gpu(const struct ddp_bench_plan *plan, int ranks, int64_t memory_bytes,
                      struct ddp_err *err)
{
    char each[24], have[24];
    uint64_t need;
    if (!__builtin_mul_overflow(plan->buffer_bytes, (uint64_t)ranks * DDP_PLAN_BUFFERS, &need) &&
        need <= (uint64_t)memory_bytes)
        return 0;
    ddp_format_size(plan->buffer_bytes, each, sizeof each);
    ddp_format_size((uint64_t)memory_bytes, have, sizeof have);
    ddp_fail(err, DDP_ENOMEM, "%d rank%s x %d buffers x %s do not fit into the %s of GPU memory",
             ranks, ranks == 1 ? "" : "s", DDP_PLAN_BUFFERS, each, have);
    return ddp_hint(err, "use a smaller --size (--max-bytes)");
}

static int count_points(const struct ddp_bench_options *o, int algorithms, int sizes,
                        struct ddp_err *err)
{
    int64_t n = (int64_t)sizes * algorithms * DDP_MAX(o->dtypes.n, 1) * DDP_MAX(o->ops.n, 1) *
                DDP_MAX(o->partial.n, 1) * (o->placement == 2 ? 2 : 1);
    if (n > DDP_PLAN_POINTS_MAX)
        return ddp_fail(err, DDP_EUSAGE, "the options ask for %lld points; the maximum is %d",
                        (long long)n, DDP_PLAN_POINTS_MAX);
    return (int)n;
}

int ddp_plan_make(const struct ddp_bench_options *o, const char *backend, int ranks,
                  int64_t available_bytes, struct ddp_bench_plan *out, struct ddp_err *err)
{
    struct ddp_bench_plan plan = {0};
    struct ddp_string_list *algorithms = NULL; /* [methods] */
    struct sizes sizes = {0};
    DDP_TRY(ddp_plan_check(o, err));
    const int least = ddp_plan_least_ranks(o, ranks);
    if (o->root < 0 || o->root >= least)
        return ddp_fail(err, DDP_EUSAGE, "--root %lld is out of range: there are %d ranks",
                        (long long)o->root, least);
    DDP_TRY(check_split(o, ranks, least, err));
    DDP_TRY(choose_memory(o->memory, backend, &plan.memory, err));
    plan.all_algorithms = o->algorithms.n > 0 && strcmp(o->algorithms.v[0], "all") == 0;
    plan.all_dtypes = o->dtypes.n == DDP_DTYPE_COUNT; /* check_twice has rejected duplicates */
    plan.all_ops = o->ops.n == DDP_OP_COUNT;
    DDP_TRY(check_small(o, ranks, plan.all_dtypes, err));
    DDP_TRY(list_algorithms(o, &algorithms, err));
    int rc = list_sizes(o, &sizes, err);
    if (rc != 0)
        goto out_algorithms;
    int names = 0;
    for (int m = 0; m < ddp_plan_methods(o); m++)
        names += algorithms[m].n;
    rc = count_points(o, names, sizes.n, err);
    if (rc < 0)
        goto out_sizes;
    DDP_TRY_GOTO(DDP_NEW(&plan.points, (size_t)rc, err), out_sizes);
    expand(o, backend, ranks, algorithms, &sizes, &plan);
    rc = add_split_loads(o, ranks, &plan, err);
    if (rc != 0) {
        ddp_plan_release(&plan);
        goto out_sizes;
    }
    const struct ddp_backend *where = ddp_backend_find(backend);
    const bool on_device = where && (where->caps & DDP_CAP_DEVICE);
    plan.host_bytes = on_device && !ddp_plan_reduces(o)
                          ? DDP_OPERANDS_STAGE_BYTES / DDP_PLAN_BUFFERS
                          : plan.buffer_bytes;
    if (ddp_plan_reduces(o))
        ddp_plan_add_compress_bytes(o, on_device, &plan);
    if (__builtin_mul_overflow(plan.host_bytes, (uint64_t)DDP_PLAN_BUFFERS, &plan.bytes_per_rank) ||
        __builtin_add_overflow(plan.bytes_per_rank,
                               plan.compress_registered + plan.compress_private,
                               &plan.bytes_per_rank))
        plan.bytes_per_rank = UINT64_MAX;
    rc = ddp_plan_fits(&plan, ranks, available_bytes, err);
    if (rc == 0)
        *out = plan;
    else
        ddp_plan_release(&plan);
out_sizes:
    free(sizes.v);
out_algorithms:
    free(algorithms);
    return rc;
}

int ddp_plan_for_ranks(const struct ddp_bench_plan *plan, int asked, const struct ddp_comm *comm,
                       struct ddp_bench_plan *out, struct ddp_err *err)
{
    char why[256];
    const bool has = ddp_comm_has_registered(comm, why, sizeof why);
    if (!has && asked == DDP_MEMORY_REGISTERED) {
        ddp_fail(err, DDP_EUNAVAIL, "backend '%s' has no registered memory here: %s",
                 comm->backend->name, why);
        return ddp_hint(err, "use --memory private");
    }
    struct ddp_point_spec *points;
    DDP_TRY(DDP_NEW(&points, (size_t)plan->count, err));
    *out = *plan;
    out->points = points;
    if (!has)
        out->memory = DDP_MEMORY_PRIVATE;
    for (int i = 0; i < plan->count; i++) {
        points[i] = plan->points[i];
        points[i].memory = out->memory;
    }
    return 0;
}

void ddp_plan_release(struct ddp_bench_plan *plan)
{
    free(plan->points);
    *plan = (struct ddp_bench_plan){0};
}

static int check_offline(const struct ddp_point_spec *s, const struct ddp_backend *backend,
                         bool registered, struct ddp_err *err)
{
    const size_t parts = ddp_coll_message_bytes(s->coll, s->ranks, 1, DDP_U8);
    const struct ddp_coll_shape shape = {
        .coll = s->coll,
        .count = s->count / parts,
        .dtype = s->dtype,
        .op = s->op,
        .root = s->root,
        .in_place = s->placement == DDP_IN_PLACE,
        .registered = registered,
        .hosts = 1,
    };
    const struct ddp_coll_alg *alg = ddp_coll_find(s->coll, s->algorithm);
    return alg ? ddp_coll_check_offline(alg, backend, s->ranks, &shape, err) : 0;
}

/* Checks a point of a backend that finds out only later which ranks share memory. The check
 * therefore finds only algorithms that accept registered memory but refuse the private memory of
 * this point. */
static int check_hosts_offline(const struct ddp_point_spec *s, struct ddp_err *err)
{
    const struct ddp_backend *shm = ddp_backend_find("shm");
    struct ddp_err ignored = DDP_ERR_INIT;
    if (s->memory == DDP_MEMORY_REGISTERED || check_offline(s, shm, true, &ignored) != 0)
        return 0;
    return check_offline(s, shm, false, err);
}

int ddp_plan_check_offline(const struct ddp_bench_plan *plan, const struct ddp_backend *backend,
                           struct ddp_err *err)
{
    const bool finds_hosts = (backend->caps & DDP_CAP_HOSTS) != 0;
    /* Skip this check for `all`, because the sampler skips combinations that cannot run. Skip it if
     * DDPBENCH_SIMULATE_HOSTS simulates several hosts, because the check assumes one host. */
    if (plan->all_algorithms || plan->all_dtypes || plan->all_ops ||
        ddp_conf_get(DDP_CONF_SIMULATE_HOSTS) != NULL)
        return 0;
    for (int i = 0; i < plan->count; i++) {
        const struct ddp_point_spec *s = &plan->points[i];
        struct ddp_err why = DDP_ERR_INIT;
        if (ddp_point_is_reduced(s)) /* compressed exchanges have other algorithms */
            continue;
        if ((finds_hosts
                 ? check_hosts_offline(s, &why)
                 : check_offline(s, backend, s->memory == DDP_MEMORY_REGISTERED, &why)) == 0)
            continue;
        ddp_fail(err, DDP_EUSAGE, "%s", why.text);
        return why.hint[0] ? ddp_hint(err, "%s", why.hint) : DDP_EUSAGE;
    }
    return 0;
}
