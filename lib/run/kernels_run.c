#include "run/kernels_run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/conf.h"
#include "record/provenance.h"
#include "run/child.h"

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
                         "../lib/ddpbench; do not move one without the other");
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

int ddp_kernels_run(struct ddp_app *app, const struct ddp_size_list *size_list, struct ddp_err *err)
{
    struct ddp_child_end end;
    char path[4300], build[160], sizes[64 * 21 + 16];
    DDP_TRY(ddp_kernels_find(app, path, sizeof path, err));
    char **argv;
    DDP_TRY(DDP_NEW(&argv, (size_t)app->argc + 4, err));
    snprintf(build, sizeof build, "--build=%s", ddp_build_info()->commit);
    put_sizes(size_list, sizes, sizeof sizes);
    int count = 0;
    argv[count++] = path;
    argv[count++] = build;
    argv[count++] = sizes;
    for (int i = 2; i < app->argc; i++)
        if (app->cmd->is_foreign(app->argv[i]))
            argv[count++] = app->argv[i];
    const struct ddp_child child = {
        .argv = argv, .keep_stdout = true, .keep_stderr = true, .log = &app->log};
    int rc = ddp_child_run(&child, &end, err);
    free(argv);
    return rc != 0 ? rc : judge(&end, err);
}
