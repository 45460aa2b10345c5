/* The functions that all collective commands share. */
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "coll/coll_auto.h"
#include "collective_timing.h"
#include "comm/hosts.h"

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
    for (int i = 0; i < v->bench.gradient.n; i++)
        v->world.protected_path[v->world.protected_count++] = v->bench.gradient.v[i];
    if (v->bench.step_bytes > 0)
        v->bench.step_factor = 0;
    if (coll == DDP_BARRIER || !ddp_opt_given(rows, parsed, "memory"))
        v->bench.memory = -1;
    return ddp_plan_check(&v->bench, err);
}

static void print_plan(const struct ddp_app *app, const struct ddp_collective_values *v,
                       const char *backend, int ranks)
{
    struct ddp_sysinfo host;
    const struct ddp_bench_plan *plan = ddp_points_plan(v, ranks);
    char each[24], sum[24], have[24] = "unknown", more[24], extra[64] = "", id[192], timing[128];
    const uint64_t compress = plan->compress_registered + plan->compress_private;
    ddp_format_size(plan->buffer_bytes, each, sizeof each);
    ddp_format_size(plan->bytes_per_rank * (uint64_t)ranks, sum, sizeof sum);
    ddp_sysinfo_read(&host);
    if (host.available_bytes >= 0)
        ddp_format_size((uint64_t)host.available_bytes, have, sizeof have);
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
        uint64_t *of;
        DDP_TRY(DDP_NEW(&of, (size_t)all, err));
        int rc = ddp_hosts_parse(simulated, all, of, err);
        for (int r = 0; rc == 0 && r < ranks; r++)
            *hosts = DDP_MAX(*hosts, (int)of[r] + 1);
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
        .registered = ddp_points_plan(v, count)->memory == DDP_MEMORY_REGISTERED,
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

int ddp_collective_show(struct ddp_app *app, const void *values, const char *backend, int ranks,
                        struct ddp_err *err)
{
    const struct ddp_collective_values *v = values;
    if (!v->explain_auto && !v->bench.dry_run)
        return 0;
    if (ddp_app_is_root(app) && v->explain_auto)
        DDP_TRY(explain_auto(app, v, backend, ranks, err));
    else if (ddp_app_is_root(app))
        print_plan(app, v, backend, ranks);
    return DDP_PREPARE_DONE;
}
