/* `ddpbench kernels` runs micro-benchmarks of the CPU kernels with Google Benchmark. Google
 * Benchmark is a C++ library, so the benchmarks are in a separate binary (kernels_main.c), which
 * this command starts. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/mem.h"
#include "comm/handshake.h"
#include "plain.h"
#include "run/child.h"

struct kernels_values {
    struct ddp_size_list size;
    bool help;
};

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Kernels"),
    DDP_KERNELS_SIZE(offsetof(struct kernels_values, size)),
    DDP_OPT_HEADING("Output"),
    DDP_OPT_INCLUDE(ddp_help_rows, offsetof(struct kernels_values, help)),
    DDP_OPT_END,
};

/* Returns true for a flag of Google Benchmark, such as --benchmark_filter=REGEX. */
static bool is_gbench_flag(const char *arg)
{
    return strncmp(arg, "--benchmark_", 12) == 0 || strncmp(arg, "--v=", 4) == 0;
}

/* Returns the i-th of the common flags of Google Benchmark, for shell completion. */
const char *ddp_kernels_flag(const void *ctx, int i)
{
    static const char *const flags[] = {"--benchmark_list_tests=true", "--benchmark_filter=",
                                        "--benchmark_format=",         "--benchmark_out=",
                                        "--benchmark_out_format=",     "--benchmark_min_time=",
                                        "--benchmark_repetitions="};
    return i < (int)DDP_COUNT_OF(flags) ? flags[i] : NULL;
}

int ddp_kernels_find(const struct ddp_app *app, char *path, size_t path_bytes, struct ddp_err *err)
{
    char dir[4200];
    ddp_conf_module_dir(app->binary_dir, dir, sizeof dir);
    snprintf(path, path_bytes, "%s/" DDP_KERNELS_HELPER, dir);
    if (access(path, X_OK) == 0)
        return 0;
    if (!DDP_GBENCH) {
        ddp_fail(err, DDP_EUNAVAIL,
                 "kernel benchmarks are not built: no Google Benchmark was "
                 "found when this binary was built");
        return ddp_hint(err, "install it (Debian: libbenchmark-dev, g++), then `make GBENCH=1` in "
                             "ddpbench's sources (and `make install` if it was installed)");
    }
    ddp_fail(err, DDP_EUNAVAIL, "no '" DDP_KERNELS_HELPER "' in '%.300s'", dir);
    return ddp_hint(err, "`make`, or `make install`, puts it beside the binary or in "
                         "../lib/ddpbench; keep them together");
}

/* Writes "--size=262144,16777216". */
static void put_sizes(const struct ddp_size_list *sizes, char *out, size_t out_bytes)
{
    size_t used = (size_t)snprintf(out, out_bytes, "--size=");
    for (int i = 0; i < sizes->n && used < out_bytes; i++)
        used += (size_t)snprintf(out + used, out_bytes - used, "%s%llu", i ? "," : "",
                                 (unsigned long long)sizes->v[i]);
}

/* Turns the helper's exit status into an error code of ddpbench. The helper has already printed its
 * own errors. */
static int judge(const struct ddp_child_end *end, struct ddp_err *err)
{
    if (end->signal)
        return ddp_child_signal(end, err);
    if (end->status > 128)
        return ddp_fail(err, -end->status, "'" DDP_KERNELS_HELPER "' was killed by signal %d (%s)",
                        end->status - 128, strsignal(end->status - 128));
    if (end->status > 0 && end->status < 10)
        return ddp_fail(err, DDP_EINTERNAL, "Google Benchmark ended the kernels with status %d",
                        end->status);
    return -end->status;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct kernels_values *v = values;
    struct ddp_child_end end;
    char path[4300], build[160], sizes[64 * 21 + 16];
    if (ddp_check_operands(app, parsed, 0, "no operands", err) != 0)
        return ddp_hint(err, "flags of Google Benchmark need '=': --benchmark_filter=REGEX");
    DDP_TRY(ddp_kernels_find(app, path, sizeof path, err));
    char **argv;
    DDP_TRY(DDP_NEW(&argv, (size_t)app->argc + 4, err));
    snprintf(build, sizeof build, "--build=%s", ddp_build_commit());
    put_sizes(&v->size, sizes, sizeof sizes);
    int count = 0;
    argv[count++] = path;
    argv[count++] = build;
    argv[count++] = sizes;
    for (int i = 2; i < app->argc; i++)
        if (is_gbench_flag(app->argv[i]))
            argv[count++] = app->argv[i];
    const struct ddp_child child = {
        .argv = argv, .keep_stdout = true, .keep_stderr = true, .log = &app->log};
    int rc = ddp_child_run(&child, &end, err);
    free(argv);
    return rc != 0 ? rc : judge(&end, err);
}

const struct ddp_cmd ddp_cmd_kernels = {
    .name = "kernels",
    .group = DDP_CMD_MEASURE,
    .summary = "micro-benchmarks of the CPU kernels, by Google Benchmark",
    .operands = "[--benchmark_FLAG=VALUE...]",
    .details = "Kernels: copy, reduce, convert, quantize, threshold and top-k selection with\n"
               "error feedback, scatter-add and merge of sparse lists, optimiser steps. They run\n"
               "on one core with the SIMD level that DDPBENCH_SIMD allows. Bytes per second\n"
               "count what a kernel must move: 3n elements to reduce two arrays, 6n bytes to\n"
               "convert, and 12n + 8k bytes to select k of n elements with error feedback.\n\n"
               "Flags of Google Benchmark are passed on. They need '=':\n"
               "  --benchmark_list_tests=true         the names\n"
               "  --benchmark_filter=REGEX            only these\n"
               "  --benchmark_format=console|json|csv on stdout\n"
               "  --benchmark_out=FILE                to a file too; --benchmark_out_format=\n"
               "  --benchmark_min_time=S, --benchmark_repetitions=N,\n"
               "  --benchmark_enable_random_interleaving=true, ...\n",
    .examples = "  ddpbench kernels --size 1M --benchmark_filter=topk --benchmark_format=json\n",
    .rows = rows,
    .values_bytes = sizeof(struct kernels_values),
    .help_offset = offsetof(struct kernels_values, help),
    .is_foreign = is_gbench_flag,
    .run = run,
};
