/* `ddpbench doctor` reports problems of this machine or job: one line per finding, worst first. */
#include <stdlib.h>

#include "base/mem.h"
#include "doctor.h"
#include "plain.h"

struct doctor_values {
    bool json, help;
};

static const struct ddp_opt rows[] = {
    {"json", 0, DDP_OPT_FLAG, offsetof(struct doctor_values, json), NULL, NULL, "Output", "as JSON",
     0, 0, NULL, NULL, NULL},
    {"help", 'h', DDP_OPT_FLAG, offsetof(struct doctor_values, help), NULL, NULL, "Output",
     "this text", 0, 0, NULL, NULL, NULL},
    DDP_OPT_END};

static const char *const verdict_words[DDP_VERDICT_COUNT] = {"FAIL", "WARN", "OK"};

void ddp_doctor_find(struct ddp_doctor *d, enum ddp_verdict verdict, const char *subject,
                     const char *advice, const char *fmt, ...)
{
    struct ddp_finding f = {.verdict = verdict};
    char fact[sizeof f.fact];
    va_list args;
    if (d->count == DDP_FINDINGS_MAX)
        return;
    va_start(args, fmt);
    vsnprintf(fact, sizeof fact, fmt, args);
    va_end(args);
    /* Facts quote the environment: remove control characters that could drive the terminal. */
    ddp_printable(subject, f.subject, sizeof f.subject);
    ddp_printable(fact, f.fact, sizeof f.fact);
    ddp_printable(advice, f.advice, sizeof f.advice);
    d->findings[d->count++] = f;
}

static int count_verdicts(const struct ddp_doctor *d, enum ddp_verdict verdict)
{
    int n = 0;
    for (int i = 0; i < d->count; i++)
        n += d->findings[i].verdict == verdict;
    return n;
}

static void print_text(const struct ddp_doctor *d, FILE *out)
{
    for (int v = 0; v < DDP_VERDICT_COUNT; v++) {
        for (int i = 0; i < d->count; i++) {
            const struct ddp_finding *f = &d->findings[i];
            if ((int)f->verdict == v)
                fprintf(out, "%-4s  %s: %s%s%s\n", verdict_words[v], f->subject, f->fact,
                        f->advice[0] ? "; " : "", f->advice);
        }
    }
}

static int print_json(const struct ddp_doctor *d, FILE *out, struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    ddp_json_count(doc, "failures", count_verdicts(d, DDP_FAIL));
    ddp_json_count(doc, "warnings", count_verdicts(d, DDP_WARN));
    cJSON *list = ddp_json_arr(doc, "findings");
    for (int v = 0; v < DDP_VERDICT_COUNT; v++) {
        for (int i = 0; i < d->count; i++) {
            const struct ddp_finding *f = &d->findings[i];
            if ((int)f->verdict != v)
                continue;
            cJSON *item = ddp_json_append(list);
            ddp_json_str(item, "verdict", verdict_words[v]);
            ddp_json_str(item, "subject", f->subject);
            ddp_json_str(item, "fact", f->fact);
            ddp_json_str(item, "advice", f->advice);
        }
    }
    return ddp_print_json(doc, out, err);
}

static void examine(struct ddp_doctor *d)
{
    ddp_sysinfo_read(&d->info);
    ddp_doctor_launcher(d);
    ddp_doctor_backends(d);
    ddp_doctor_mpi(d);
    ddp_doctor_gpus(d);
    ddp_doctor_cores(d);
    ddp_doctor_noise(d);
    ddp_doctor_shared_memory(d);
    ddp_doctor_memory(d);
    ddp_doctor_training(d);
    ddp_doctor_kernels(d);
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct doctor_values *v = values;
    if (parsed->operand_count)
        return ddp_fail(err, DDP_EUSAGE, "doctor takes no operand '%.64s'", parsed->operands[0]);
    struct ddp_doctor *d = ddp_calloc(1, sizeof *d);
    if (!d)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the findings");
    d->app = app;
    examine(d);
    int rc = 0, failures = count_verdicts(d, DDP_FAIL);
    if (v->json)
        rc = print_json(d, app->out, err);
    else
        print_text(d, app->out);
    free(d);
    if (rc == 0 && failures > 0)
        rc = ddp_fail(err, DDP_EUNAVAIL, "%d of the findings must be mended first", failures);
    return rc;
}

const struct ddp_cmd ddp_cmd_doctor = {
    .name = "doctor",
    .summary = "what is wrong with this machine or job, worst first",
    .operands = "",
    .details =
        "One line a finding: FAIL (cannot work here), WARN (works, but figures or features\n"
        "suffer) or OK, then what it is about, the fact, and what to do. Exits with 69 when\n"
        "there is a FAIL, else with 0. `mpiexec -n N ddpbench doctor` looks at that job.\n",
    .rows = rows,
    .values_bytes = sizeof(struct doctor_values),
    .help_offset = offsetof(struct doctor_values, help),
    .run = run,
};
