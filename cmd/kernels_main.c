/* The program ddpbench-kernels, which `ddpbench kernels` starts. It registers every kernel at every
 * size with Google Benchmark. It uses the exit codes of ddpbench and prints its own errors. Google
 * Benchmark may end the process with other codes. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/mem.h"
#include "bench/kernel_cases.h"
#include "comm/handshake.h"
#include "gbench.h"
#include "plain.h"

struct helper_values {
    struct ddp_size_list size;
    const char *build;
};

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Kernels"),
    DDP_KERNELS_SIZE(offsetof(struct helper_values, size)),
    DDP_OPT(STRING, "build", 0, offsetof(struct helper_values, build), "COMMIT", NULL,
            "commit of the binary that started this one"),
    DDP_OPT_END,
};

/* The arrays that all benchmarks share. They are created when the first benchmark runs, because
 * listing the benchmarks needs no arrays. */
struct arrays {
    struct ddp_kernel_data *data;
    uint64_t largest_bytes;
    enum ddp_simd level;
};

/* One kernel at one array size. */
struct bound_case {
    const struct ddp_kernel_case *kernel;
    struct arrays *arrays;
    size_t bytes;
    char name[96];
};

static int begin_case(void *arg)
{
    struct bound_case *b = arg;
    struct ddp_err err = DDP_ERR_INIT;
    struct arrays *a = b->arrays;
    if (!a->data && ddp_kernel_data_create(a->largest_bytes, a->level, &a->data, &err) != 0)
        return -1;
    ddp_kernel_begin(b->kernel, a->data, b->bytes);
    return 0;
}

static void restore_case(void *arg)
{
    const struct bound_case *b = arg;
    ddp_kernel_restore(b->kernel, b->arrays->data);
}

static void run_case(void *arg)
{
    const struct bound_case *b = arg;
    ddp_kernel_run(b->kernel, b->arrays->data);
}

static double bytes_of(void *arg)
{
    const struct bound_case *b = arg;
    return ddp_kernel_bytes(b->kernel, b->arrays->data);
}

static double items_of(void *arg)
{
    const struct bound_case *b = arg;
    return (double)b->arrays->data->n;
}

/* Ends the process with an error. If this function returned, the library would print its usage and
 * exit with 0. */
static void refuse_flag(void)
{
    const struct ddp_log log = {.stream = stderr};
    struct ddp_err err = DDP_ERR_INIT;
    ddp_fail(&err, DDP_EUSAGE, "a flag of Google Benchmark has an illegal value");
    ddp_hint(&err, "--benchmark_format and --benchmark_out_format: console, json or csv; "
                   "`ddpbench kernels -h`");
    ddp_log_err(&log, &err);
    exit(ddp_exit_code(err.code));
}

/* Returns FILE of the last --benchmark_out=FILE, or NULL. */
static const char *out_file(int argc, char *const *argv)
{
    const char *file = NULL;
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--benchmark_out=", 16) == 0)
            file = argv[i] + 16;
    return file && file[0] ? file : NULL;
}

/* Checks that the output file can be opened, because the library exits with 1 if it cannot open the
 * file. */
static int check_writable(const char *file, struct ddp_err *err)
{
    FILE *f = file ? fopen(file, "a") : NULL;
    if (file && !f)
        return ddp_fail_errno(err, DDP_ECREATE, errno, "cannot create '%s'", file);
    if (f)
        fclose(f);
    return 0;
}

/* Checks that the output file ends with a newline, because the library does not check its writes.
 */
static int check_written(const char *file, struct ddp_err *err)
{
    struct stat s;
    char last[2] = "";
    FILE *f = file && stat(file, &s) == 0 && S_ISREG(s.st_mode) ? fopen(file, "r") : NULL;
    if (!f)
        return 0;
    bool whole = s.st_size > 2 && fseek(f, -2, SEEK_END) == 0 && fread(last, 1, 2, f) == 2 &&
                 last[1] == '\n';
    fclose(f);
    return whole ? 0 : ddp_fail(err, DDP_EIO, "'%s' was cut short: is the disk full?", file);
}

static int check_options(const struct helper_values *v, struct ddp_err *err)
{
    if (v->build && strcmp(v->build, ddp_build_commit()) != 0) {
        ddp_fail(err, DDP_EMISMATCH,
                 "'" DDP_KERNELS_HELPER "' is from build '%.60s', ddpbench from '%.60s'",
                 ddp_build_commit(), v->build);
        return ddp_hint(err, "build both together: `make`");
    }
    for (int i = 0; i < v->size.n; i++)
        if (v->size.v[i] % 8 != 0)
            return ddp_fail(err, DDP_EUSAGE, "--size %llu is not a multiple of 8 bytes",
                            (unsigned long long)v->size.v[i]);
    return 0;
}

static int count_kernels(void)
{
    int count = 0;
    while (ddp_kernel_cases()[count].name)
        count++;
    return count;
}

static int run_all(const struct helper_values *v, struct ddp_err *err)
{
    static const int codes[] = {[DDP_GBENCH_DONE] = 0,
                                [DDP_GBENCH_NONE] = DDP_EUSAGE,
                                [DDP_GBENCH_NO_MEMORY] = DDP_ENOMEM,
                                [DDP_GBENCH_NO_OUTPUT] = DDP_EIO};
    static const char *const texts[] = {"", "no kernel matches the filter",
                                        "not enough memory for the kernels' arrays",
                                        "cannot write to stdout"};
    struct arrays arrays = {.level = ddp_conf_simd()};
    const int kernels = count_kernels(), count = kernels * v->size.n;
    struct bound_case *bound = NULL;
    struct ddp_gbench_case *cases = NULL;
    int rc;
    DDP_TRY_GOTO(DDP_NEW(&bound, (size_t)count, err), out);
    DDP_TRY_GOTO(DDP_NEW(&cases, (size_t)count, err), out);
    for (int i = 0; i < count; i++) {
        const struct ddp_kernel_case *kernel = &ddp_kernel_cases()[i / v->size.n];
        const uint64_t bytes = v->size.v[i % v->size.n];
        bound[i] = (struct bound_case){.kernel = kernel, .arrays = &arrays, .bytes = bytes};
        snprintf(bound[i].name, sizeof bound[i].name, "%s/%llu", kernel->name,
                 (unsigned long long)bytes);
        cases[i] = (struct ddp_gbench_case){
            .name = bound[i].name,
            .label = ddp_simd_name(arrays.level),
            .arg = &bound[i],
            .begin = begin_case,
            .restore = kernel->feedback ? restore_case : NULL,
            .run = run_case,
            .bytes = bytes_of,
            .items = items_of,
        };
        arrays.largest_bytes = DDP_MAX(arrays.largest_bytes, bytes);
    }
    ddp_gbench_context("ddpbench_version", ddp_build_version());
    ddp_gbench_context("ddpbench_commit", ddp_build_commit());
    ddp_gbench_context("ddpbench_simd", ddp_simd_name(arrays.level));
    enum ddp_gbench_end end = ddp_gbench_run(cases, (size_t)count);
    rc = codes[end];
    if (rc != 0)
        ddp_fail(err, rc, "%s", texts[end]);
out:
    ddp_kernel_data_destroy(arrays.data);
    free(bound);
    free(cases);
    return rc;
}

static int run(int argc, char **argv, struct ddp_err *err)
{
    struct helper_values values = {.build = NULL};
    struct ddp_opt_result parsed;
    const char *file = out_file(argc, argv);
    DDP_TRY(ddp_conf_check(err));
    ddp_gbench_flags(&argc, argv, refuse_flag);
    DDP_TRY(ddp_opt_defaults(rows, &values, err));
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--benchmark_", 12) == 0) {
            ddp_fail(err, DDP_EUSAGE, "Google Benchmark refuses '%.200s'", argv[i]);
            return ddp_hint(err, "an unknown flag, or an illegal value; `ddpbench kernels -h` has "
                                 "the common ones");
        }
    DDP_TRY(ddp_opt_parse(rows, argc, argv, &values, &parsed, err));
    DDP_TRY(check_options(&values, err));
    DDP_TRY(check_writable(file, err));
    DDP_TRY(run_all(&values, err));
    return check_written(file, err);
}

int main(int argc, char **argv)
{
    const struct ddp_log log = {.stream = stderr};
    struct ddp_err err = DDP_ERR_INIT;
    /* Ignore SIGXFSZ, so that a write beyond the file size limit returns an error instead of ending
     * the process. A write to a closed pipe still ends the process, because nobody would read the
     * results. */
    signal(SIGXFSZ, SIG_IGN);
    /* End when ddpbench is killed, because nobody would read the results. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int rc = run(argc, argv, &err);
    if (err.code != 0)
        ddp_log_err(&log, &err);
    return ddp_exit_code(rc);
}
