/* The functions that all collective commands share. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "bench/sampler.h"
#include "coll/coll_auto.h"
#include "collective_timing.h"
#include "comm/hosts.h"
#include "rank_baseline.h"

#define HUGE_PAGE (2u << 20) /* alignment of large registered blocks */

static const char *dtype_word(int i)
{
    return i < DDP_DTYPE_COUNT ? ddp_dtype_name((enum ddp_dtype)i) : NULL;
}
static const char *op_word(int i)
{
    return i < DDP_OP_COUNT ? ddp_op_name((enum ddp_op)i) : NULL;
}
static const char *placement_word(int i)
{
    return i < DDP_PLACEMENT_COUNT    ? ddp_placement_name((enum ddp_placement)i)
           : i == DDP_PLACEMENT_COUNT ? "both"
                                      : NULL;
}
static const char *memory_word(int i)
{
    return i < DDP_MEMORY_COUNT ? ddp_memory_name((enum ddp_memory)i) : NULL;
}
static const char *check_word(int i)
{
    return i <= DDP_CHECK_ALL ? ddp_check_name((enum ddp_check)i) : NULL;
}
/* Accepts the number of checked iterations, as nccl-tests' -c does. */
static int check_alias(const char *text)
{
    char *end;
    errno = 0;
    long n = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : -1;
    if (n < 0 || *end != '\0' || errno != 0)
        return -1;
    return n == 0 ? DDP_CHECK_OFF : n == 1 ? DDP_CHECK_ONCE : DDP_CHECK_ALL;
}
const struct ddp_opt_choices ddp_dtype_choices = {dtype_word, ddp_dtype_parse};
const struct ddp_opt_choices ddp_op_choices = {op_word, ddp_op_parse};
const struct ddp_opt_choices ddp_placement_choices = {placement_word, NULL};
const struct ddp_opt_choices ddp_memory_choices = {memory_word, NULL};
const struct ddp_opt_choices ddp_check_choices = {check_word, check_alias};

/* Fails if two options define the sizes in different ways, because neither may be ignored. */
static int check_contradictions(const struct ddp_opt *rows, const struct ddp_opt_result *parsed,
                                struct ddp_err *err)
{
    static const char *const range[] = {"min-bytes", "max-bytes", "step-factor", "step-bytes"};
    for (size_t i = 0; i < DDP_COUNT_OF(range) && ddp_opt_given(rows, parsed, "size"); i++) {
        if (ddp_opt_given(rows, parsed, range[i])) {
            ddp_fail(err, DDP_EUSAGE, "--size and --%s contradict each other", range[i]);
            return ddp_hint(err, "--size lists sizes, --%s belongs to a range: use one of them",
                            range[i]);
        }
    }
    if (ddp_opt_given(rows, parsed, "step-factor") && ddp_opt_given(rows, parsed, "step-bytes"))
        return ddp_fail(err, DDP_EUSAGE, "--step-factor and --step-bytes contradict each other");
    return 0;
}

/* A barrier moves no data. Its plan is therefore one point of size 0 without verification. */
static void choose_no_data(struct ddp_bench_options *o)
{
    o->sizes.n = 1;
    o->sizes.v[0] = 0;
    o->placement = DDP_OUT_OF_PLACE;
    o->check = DDP_CHECK_OFF;
}

int ddp_collective_check(enum ddp_coll coll, struct ddp_app *app, void *values,
                         const struct ddp_opt_result *parsed, struct ddp_err *err)
{
    struct ddp_collective_values *v = values;
    const struct ddp_opt *rows = app->cmd->rows;
    if (parsed->operand_count > 0) {
        ddp_fail(err, DDP_EUSAGE, "'%s' takes no operand: '%s'", app->cmd->name,
                 parsed->operands[0]);
        uint64_t bytes;
        struct ddp_err no_size = DDP_ERR_INIT;
        if (ddp_parse_size(parsed->operands[0], &bytes, &no_size) == 0)
            return ddp_hint(err, "sizes go to --size: --size %s", parsed->operands[0]);
        return ddp_hint(err, "`ddpbench %s -h` lists the options", app->cmd->name);
    }
    if (coll != DDP_BARRIER) /* a barrier does not have these options */
        DDP_TRY(check_contradictions(rows, parsed, err));
    v->bench.coll = coll;
    v->bench.seed = v->world.seed;
    for (int i = 0; i < v->world.ranks.n; i++) {
        int of_a_group;
        DDP_TRY(ddp_plan_group_ranks(&v->bench, (int)v->world.ranks.v[i], &of_a_group, err));
    }
    if (coll == DDP_BARRIER)
        choose_no_data(&v->bench);
    DDP_TRY(ddp_collective_timing(v, rows, parsed, err));
    if (v->bench.step_bytes > 0)
        v->bench.step_factor = 0;
    if (coll == DDP_BARRIER || !ddp_opt_given(rows, parsed, "memory"))
        v->bench.memory = -1;
    return ddp_plan_check(&v->bench, err);
}

/* Returns true in the process that prints notes before the run begins. This is the parent of the
 * ranks or, under an outside launcher, rank 0. */
static bool is_root(const struct ddp_app *app)
{
    return app->launcher.kind == DDP_LAUNCHER_NONE || app->launcher.rank_info.rank == 0;
}

static void print_plan(const struct ddp_app *app, const struct ddp_collective_values *v,
                       const char *backend, int ranks, int64_t available_bytes)
{
    const struct ddp_bench_plan *plan = &v->plan;
    char each[24], sum[24], have[24] = "unknown", more[24], extra[64] = "", id[192], timing[128];
    const uint64_t compress = plan->compress_registered + plan->compress_private;
    ddp_format_size(plan->buffer_bytes, each, sizeof each);
    ddp_format_size(plan->bytes_per_rank * (uint64_t)ranks, sum, sizeof sum);
    if (available_bytes >= 0)
        ddp_format_size((uint64_t)available_bytes, have, sizeof have);
    ddp_format_size(compress, more, sizeof more);
    if (compress > 0)
        snprintf(extra, sizeof extra, " and %s to compress", more);
    ddp_collective_describe_timing(&v->bench, timing, sizeof timing);
    fprintf(app->out, "# dry run: %d point%s, %s after %lld each, backend %s\n", plan->count,
            plan->count == 1 ? "" : "s", timing, (long long)v->bench.warmup, backend);
    fprintf(app->out, "# %s memory: %d rank%s x %d buffers x %s%s = %s; available: %s\n",
            ddp_memory_name(plan->memory), ranks, ranks == 1 ? "" : "s", DDP_PLAN_BUFFERS, each,
            extra, sum, have);
    for (int i = 0; i < plan->count; i++) {
        ddp_point_id(&plan->points[i], id, sizeof id);
        fprintf(app->out, "%s\n", id);
    }
}

/* Counts the hosts of the first `ranks` of `all` ranks. If DDPBENCH_HOSTS simulates several hosts,
 * its value decides. Otherwise an outside launcher's number of ranks per host decides, and without
 * a launcher there is one host. */
static int count_hosts(const struct ddp_app *app, int ranks, int all, int *hosts,
                       struct ddp_err *err)
{
    const struct ddp_rank_info *rank_info = &app->launcher.rank_info;
    const bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    const char *simulated = ddp_conf_get(DDP_CONF_HOSTS);
    *hosts = 1;
    if (simulated != NULL && all > 1) {
        int *of = ddp_calloc((size_t)all, sizeof *of);
        if (of == NULL)
            return ddp_fail(err, DDP_ENOMEM, "no memory for %d ranks", all);
        int rc = ddp_hosts_parse(simulated, all, of, err);
        for (int r = 0; rc == 0 && r < ranks; r++)
            *hosts = DDP_MAX(*hosts, of[r] + 1);
        free(of);
        DDP_TRY(rc);
    } else if (!own && rank_info->local_size > 0) {
        *hosts = (ranks + rank_info->local_size - 1) / rank_info->local_size;
    }
    return 0;
}

/* Predicts whether the ranks will find more threads than cores (`oversubscribed` in struct
 * ddp_comm_shm). With --overlap-compute the answer is always true, because coll/async.c sets this
 * member for the progress thread. */
static bool is_oversubscribed(const struct ddp_app *app, const struct ddp_collective_values *v,
                              int all)
{
    const bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    return v->bench.overlap ||
           (own ? all > ddp_cpu_usable_cores() : app->launcher.rank_info.oversubscribed);
}

/* Appends the table for `count` ranks to `text`. */
static int explain_count(const struct ddp_app *app, const struct ddp_collective_values *v,
                         const char *backend, int count, struct ddp_strbuf *text,
                         struct ddp_err *err)
{
    const bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    const int all = own ? count : app->launcher.rank_info.size;
    const char *flavour = app->launcher.flavour;
    struct ddp_auto_query query = {
        .coll = v->bench.coll,
        .backend = ddp_backend_find(backend),
        .registered = v->plan.memory == DDP_MEMORY_REGISTERED,
        .open_mpi = flavour != NULL && strcmp(flavour, "openmpi") == 0,
    };
    DDP_TRY(ddp_plan_group_ranks(&v->bench, count, &query.ranks, err));
    DDP_TRY(count_hosts(app, query.ranks, all, &query.hosts, err));
    DDP_TRY(count_hosts(app, all, all, &query.world_hosts, err));
    query.oversubscribed = is_oversubscribed(app, v, all);
    ddp_coll_auto_explain(&query, text);
    return 0;
}

/* Prints the tables for each rank count of --ranks, or for `ranks` if the option was not given. */
static int explain_auto(const struct ddp_app *app, const struct ddp_collective_values *v,
                        const char *backend, int ranks, struct ddp_err *err)
{
    const struct ddp_int_list *asked = &v->world.ranks;
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    int rc = 0;
    for (int i = 0; rc == 0 && i < DDP_MAX(asked->n, 1); i++)
        rc = explain_count(app, v, backend, asked->n > 0 ? (int)asked->v[i] : ranks, &text, err);
    if (rc == 0 && text.failed)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory to explain 'auto'");
    else if (rc == 0)
        fputs(text.text, app->out);
    ddp_strbuf_release(&text);
    return rc;
}

/* Makes the plan of every rank count, so that an error in any plan is reported before ranks start.
 * The plan of the largest count (`ranks`) remains in v. */
static int make_plans(struct ddp_collective_values *v, const char *backend, int ranks,
                      struct ddp_err *err)
{
    for (int i = 0; i <= v->world.ranks.n; i++) {
        const int count = i < v->world.ranks.n ? (int)v->world.ranks.v[i] : ranks;
        int of_a_group;
        ddp_plan_release(&v->plan);
        DDP_TRY(ddp_plan_group_ranks(&v->bench, count, &of_a_group, err));
        DDP_TRY(ddp_plan_make(&v->bench, backend, of_a_group, -1, &v->plan, err));
        DDP_TRY(ddp_plan_check_offline(&v->plan, ddp_backend_find(backend), err));
    }
    return 0;
}

int ddp_collective_prepare(struct ddp_app *app, void *values, const char *backend, int ranks,
                           struct ddp_err *err)
{
    struct ddp_collective_values *v = values;
    struct ddp_sysinfo host;
    bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    int local = own ? ranks : DDP_MIN(ranks, app->launcher.rank_info.local_size);
    ddp_sysinfo_read(&host);
    DDP_TRY(make_plans(v, backend, ranks, err));
    DDP_TRY(ddp_plan_fits(&v->plan, local, host.available_bytes, err));
    DDP_TRY(ddp_collective_check_inject(v, backend, ranks, err));
    if (v->plan.rounding[0] && is_root(app))
        ddp_logf(&app->log, DDP_LOG_NOTE, "%s", v->plan.rounding);
    if (v->explain_auto) {
        if (is_root(app))
            DDP_TRY(explain_auto(app, v, backend, ranks, err));
        return DDP_PREPARE_DONE;
    }
    if (!v->bench.dry_run)
        return 0;
    if (is_root(app))
        print_plan(app, v, backend, ranks, host.available_bytes);
    return DDP_PREPARE_DONE;
}

int ddp_collective_gpu(const void *values, struct ddp_gpu_options *out, struct ddp_err *err)
{
    const struct ddp_collective_values *v = values;
    if (v->bench.overlap)
        return ddp_fail(err, DDP_EUNAVAIL, "--overlap-compute does not run on GPUs yet");
    out->graph = v->bench.graph;
    out->window = v->bench.memory == DDP_MEMORY_WINDOW;
    return 0;
}

bool ddp_collective_threads(const void *values)
{
    const struct ddp_collective_values *v = values;
    return v->bench.overlap;
}

uint64_t ddp_collective_heap_bytes(const void *values, int ranks)
{
    const struct ddp_collective_values *v = values;
    uint64_t bytes = 0;
    (void)ranks;
    if (v->plan.points && v->plan.memory == DDP_MEMORY_REGISTERED)
        bytes = DDP_PLAN_BUFFERS * (v->plan.buffer_bytes + 2 * (uint64_t)HUGE_PAGE);
    if (v->plan.compress_registered > 0) /* each block begins on a huge page of its own */
        bytes += v->plan.compress_registered +
                 (DDP_MAX((uint64_t)v->bench.partial, 1) + 2) * 8 * HUGE_PAGE;
    return bytes;
}

/* Returns true if the note on an earlier skipped point also covers this point. This is so if both
 * have the same reason. It is also so if both have the same algorithm and, unless the user wrote
 * `--algorithm all`, the same element type and operation. */
static bool was_reported(const struct ddp_bench_plan *plan, const struct ddp_sampler *sampler,
                         int index, const char *why)
{
    const struct ddp_point_spec *p = &plan->points[index];
    const char *before;
    for (int i = 0; i < index; i++) {
        const struct ddp_point_spec *q = &plan->points[i];
        if (!ddp_sampler_skips(sampler, i, &before))
            continue;
        if (strcmp(before, why) == 0 ||
            (strcmp(q->algorithm, p->algorithm) == 0 &&
             (plan->all_algorithms || (q->dtype == p->dtype && q->op == p->op))))
            return true;
    }
    return false;
}

/* Reports why points are left out, but not twice for points that one note covers. */
static void report_skips(struct ddp_rank *rank, const struct ddp_bench_plan *plan,
                         const struct ddp_sampler *sampler)
{
    const char *why;
    for (int i = 0; i < plan->count; i++) {
        if (ddp_sampler_skips(sampler, i, &why) && !was_reported(plan, sampler, i, why))
            ddp_emit_note(rank, "left out: %s", why);
    }
}

static int run_points(struct ddp_rank *rank, const struct ddp_bench_plan *plan,
                      struct ddp_sampler *sampler, struct ddp_err *err)
{
    int count;
    const int *order = ddp_sampler_order(sampler, &count);
    report_skips(rank, plan, sampler);
    for (int i = 0; i < count; i++) {
        const struct ddp_point_spec *spec = &plan->points[order[i]];
        struct ddp_point point;
        const double *samples;
        char size[24], id[192];
        ddp_point_id(spec, id, sizeof id);
        if (rank->has && rank->has(rank->has_arg, id))
            continue;
        ddp_format_size(spec->size_bytes, size, sizeof size);
        ddp_emit_progress(rank, "%s %s%s%s %s, %s (%d of %d)", ddp_coll_name(spec->coll),
                          ddp_dtype_name(spec->dtype), ddp_coll_reduces(spec->coll) ? " " : "",
                          ddp_coll_reduces(spec->coll) ? ddp_op_name(spec->op) : "", size,
                          spec->algorithm, i + 1, count);
        DDP_TRY(ddp_sampler_point(sampler, order[i], &point, &samples, err));
        DDP_TRY(ddp_emit_point(rank, &point, samples, err));
    }
    return 0;
}

/* Chooses private memory instead of the default if the backend cannot provide registered memory.
 * Fails with DDP_EUNAVAIL if the user asked for registered memory. */
static int choose_memory(const struct ddp_comm *comm, int *memory, struct ddp_err *err)
{
    char why[256];
    if (ddp_comm_has_registered(comm, why, sizeof why))
        return 0;
    if (*memory == DDP_MEMORY_REGISTERED) {
        ddp_fail(err, DDP_EUNAVAIL, "backend '%s' has no registered memory here: %s",
                 comm->backend->name, why);
        return ddp_hint(err, "use --memory private");
    }
    *memory = DDP_MEMORY_PRIVATE;
    return 0;
}

int ddp_collective_rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err)
{
    const struct ddp_collective_values *v = values;
    struct ddp_comm *comm = rank->comm;
    struct ddp_sampler *sampler = NULL;
    struct ddp_bench_options bench = v->bench;
    struct ddp_bench_plan plan;
    int of_a_group;
    int rc = choose_memory(comm, &bench.memory, err);
    if (rc == 0)
        rc = ddp_plan_group_ranks(&bench, comm->size, &of_a_group, err);
    if (rc == 0)
        rc = ddp_plan_make(&bench, comm->backend->name, of_a_group, -1, &plan, err);
    DDP_TRY(ddp_comm_agree(comm, rc, err));
    rc = ddp_sampler_create(comm, &bench, &plan, &sampler, err);
    if (rc == 0)
        rc = ddp_rank_baseline(rank, err);
    if (rc == 0)
        rc = run_points(rank, &plan, sampler, err);
    ddp_sampler_destroy(sampler);
    ddp_plan_release(&plan);
    return rc;
}

void ddp_collective_release(void *values)
{
    struct ddp_collective_values *v = values;
    ddp_plan_release(&v->plan);
}
