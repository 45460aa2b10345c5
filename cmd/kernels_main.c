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
#include "plain.h"
#include "record/provenance.h"
#include "run/kernel_benchmarks.h"

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

/* Returns the value of the last argument that begins with `flag`, which ends in "=". Returns NULL
 * if there is no such argument, or if its value is empty. */
static const char *last_value(int argc, char *const *argv, const char *flag)
{
    const char *value = NULL;
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], flag, strlen(flag)) == 0)
            value = argv[i] + strlen(flag);
    return value && value[0] ? value : NULL;
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

/* Checks that the output file ends with `end`, because the library does not check its writes. Does
 * not check pipes and devices. */
static int check_written(const char *file, const char *end, struct ddp_err *err)
{
    struct stat s;
    char last[4] = "";
    const size_t n = strlen(end);
    FILE *f = file && stat(file, &s) == 0 && S_ISREG(s.st_mode) ? fopen(file, "r") : NULL;
    if (!f)
        return 0;
    const bool whole =
        fseek(f, -(long)n, SEEK_END) == 0 && fread(last, 1, n, f) == n && memcmp(last, end, n) == 0;
    fclose(f);
    return whole ? 0 : ddp_fail(err, DDP_EIO, "'%s' was cut short: is the disk full?", file);
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
    struct ddp_kernel_benchmarks b;
    DDP_TRY(ddp_kernel_benchmarks_create(&v->size, &b, err));
    ddp_gbench_context("ddpbench_version", ddp_build_info()->version);
    ddp_gbench_context("ddpbench_commit", ddp_build_info()->commit);
    ddp_gbench_context("ddpbench_simd", b.simd);
    const enum ddp_gbench_end end = ddp_gbench_run(b.cases, b.count);
    ddp_kernel_benchmarks_release(&b);
    return codes[end] == 0 ? 0 : ddp_fail(err, codes[end], "%s", texts[end]);
}

static int run(int argc, char **argv, struct ddp_err *err)
{
    struct helper_values values = {.build = NULL};
    struct ddp_opt_result parsed;
    const char *file = last_value(argc, argv, "--benchmark_out=");
    const char *format = last_value(argc, argv, "--benchmark_out_format=");
    const char *end = !format || strcmp(format, "json") == 0 ? "\n}\n" : "\n";
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
    DDP_TRY(ddp_kernel_benchmarks_check(values.build, &values.size, err));
    DDP_TRY(check_writable(file, err));
    DDP_TRY(run_all(&values, err));
    return check_written(file, end, err);
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
