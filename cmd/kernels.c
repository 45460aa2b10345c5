/* `ddpbench kernels` runs micro-benchmarks of the CPU kernels with Google Benchmark. Google
 * Benchmark is a C++ library, so the benchmarks are in a separate binary (kernels_main.c and
 * gbench.cc), which this command starts. */
#include <string.h>

#include "base/mem.h"
#include "plain.h"
#include "run/kernels_run.h"

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

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct kernels_values *v = values;
    if (ddp_check_operands(app, parsed, 0, "no operands", err) != 0)
        return ddp_hint(err, "flags of Google Benchmark need '=': --benchmark_filter=REGEX");
    return ddp_kernels_run(app, &v->size, err);
}

const struct ddp_cmd ddp_cmd_kernels = {
    .name = "kernels",
    .group = DDP_CMD_MEASURE,
    .summary = "micro-benchmarks of the CPU kernels, by Google Benchmark",
    .operands = "[--benchmark_FLAG=VALUE...]",
    .details = "Kernels: copy, reduce, convert, quantize, threshold and top-k selection with\n"
               "error feedback, scatter-add and merge of sparse lists, optimiser steps. They run\n"
               "on one core with the SIMD level that DDPBENCH_SIMD allows. The bytes per second\n"
               "are those that a kernel must move. This is, for example, 3n elements to reduce\n"
               "two arrays, 6n bytes to convert, 10n bytes to convert and add, and\n"
               "12n + 8k bytes to select k of n elements with error feedback.\n\n"
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
