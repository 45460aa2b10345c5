/* `ddpbench doctor` reports problems of this machine or job: one line per finding, worst first. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "doctor.h"
#include "plain.h"
#include "run/rank_error.h"

/* A rank waits at most this long for the other ranks. */
#define LINGER_US 6000000

struct doctor_values {
    bool json, help;
};

static const struct ddp_opt rows[] = {
    {"json", 0, DDP_OPT_FLAG, offsetof(struct doctor_values, json), NULL, NULL, "Output",
     "print JSON", 0, 0, NULL, NULL, NULL},
    {"help", 'h', DDP_OPT_FLAG, offsetof(struct doctor_values, help), NULL, NULL, "Output",
     "this text", 0, 0, NULL, NULL, NULL},
    DDP_OPT_END};

static const char *const verdict_words[DDP_SEVERITY_COUNT] = {"FAIL", "WARN", "OK"};

void ddp_doctor_find(struct ddp_doctor *d, enum ddp_severity verdict, const char *subject,
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
    /* Facts quote environment variables. Remove control characters, because a terminal would
     * execute them. */
    ddp_printable(subject, f.subject, sizeof f.subject);
    ddp_printable(fact, f.fact, sizeof f.fact);
    ddp_printable(advice, f.advice, sizeof f.advice);
    d->findings[d->count++] = f;
}

static int count_verdicts(const struct ddp_doctor *d, enum ddp_severity verdict)
{
    int n = 0;
    for (int i = 0; i < d->count; i++)
        n += d->findings[i].verdict == verdict;
    return n;
}

/* `where` is printed before each subject: "" or "HOST: ". */
static void print_finding(const struct ddp_finding *f, const char *where, FILE *out)
{
    fprintf(out, "%-4s  %s%s: %s%s%s\n", verdict_words[f->verdict], where, f->subject, f->fact,
            f->advice[0] ? "; " : "", f->advice);
}

static void print_text(const struct ddp_doctor *d, const char *where, FILE *out)
{
    for (int v = 0; v < DDP_SEVERITY_COUNT; v++)
        for (int i = 0; i < d->count; i++)
            if ((int)d->findings[i].verdict == v)
                print_finding(&d->findings[i], where, out);
}

/* Prints the failures that neither local rank 0 nor DDP_RANK_ERROR_LINES other ranks have claimed.
 */
static void print_failures(const struct ddp_doctor *d, const char *where, FILE *out)
{
    for (int i = 0; i < d->count; i++) {
        struct ddp_finding f = d->findings[i];
        const int place = f.verdict == DDP_FAIL ? ddp_rank_error_claim(f.fact) : 0;
        if (f.verdict != DDP_FAIL || place == DDP_RANK_ERROR_LINES)
            continue;
        if (place > 0) {
            snprintf(f.fact, sizeof f.fact, "%s", ddp_rank_error_same(place));
            f.advice[0] = '\0';
        }
        print_finding(&f, where, out);
    }
}

static void claim_failures(const struct ddp_doctor *d)
{
    for (int i = 0; i < d->count; i++)
        if (d->findings[i].verdict == DDP_FAIL)
            ddp_rank_error_claim_all(d->findings[i].fact);
}

static int print_json(const struct ddp_doctor *d, FILE *out, struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    ddp_json_str(doc, "host", d->info.host);
    ddp_json_count(doc, "failures", count_verdicts(d, DDP_FAIL));
    ddp_json_count(doc, "warnings", count_verdicts(d, DDP_WARN));
    cJSON *list = ddp_json_arr(doc, "findings");
    for (int v = 0; v < DDP_SEVERITY_COUNT; v++) {
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

/* Local rank 0 of each host prints all findings of the host. The other ranks give local rank 0
 * time to print, and then print only the failures that local rank 0 does not have. If the launcher
 * could not be detected, rank 0 takes the part of local rank 0. A launcher ends the job when the
 * first rank fails, so each rank stays until all ranks of its host have printed. A failing rank
 * that cannot see all ranks of the job stays for LINGER_US. */
static int print_shared(const struct ddp_doctor *d, bool json, struct ddp_err *err)
{
    const struct ddp_rank_info *rank_info = &d->app->launcher.rank_info;
    char who[256], where[288];
    const bool knows_place = d->app->launcher_error.code == 0;
    const bool one_host = rank_info->local_size == rank_info->size;
    int rc = 0;
    ddp_rank_error_origin(d->app, who, sizeof who);
    if (knows_place ? rank_info->local_rank == 0 : rank_info->rank == 0) {
        snprintf(where, sizeof where, "%s%s", one_host ? "" : d->info.host, one_host ? "" : ": ");
        claim_failures(d);
        if (json)
            rc = print_json(d, d->app->out, err);
        else
            print_text(d, where, d->app->out);
    } else {
        snprintf(where, sizeof where, "%s: ", who);
        usleep(2 * DDP_RANK_ERROR_DELAY_US);
        print_failures(d, where, json ? stderr : d->app->out);
    }
    fflush(d->app->out);
    const int64_t until_us = ddp_now_ns() / 1000 + LINGER_US;
    const bool all_printed = ddp_rank_error_wait(d->app, LINGER_US);
    const int64_t left_us = until_us - ddp_now_ns() / 1000;
    if (count_verdicts(d, DDP_FAIL) > 0 && !(all_printed && one_host) && left_us > 0)
        usleep((useconds_t)left_us);
    return rc;
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
    if (ddp_rank_error_is_shared(app))
        rc = print_shared(d, v->json, err);
    else if (v->json)
        rc = print_json(d, app->out, err);
    else
        print_text(d, "", app->out);
    free(d);
    if (rc == 0 && failures > 0)
        rc = ddp_fail(err, DDP_EUNAVAIL, "%d of the findings must be fixed first", failures);
    return rc;
}

const struct ddp_cmd ddp_cmd_doctor = {
    .name = "doctor",
    .flags = DDP_CMD_EVERY_RANK,
    .summary = "what is wrong with this machine or job, worst first",
    .operands = "",
    .details =
        "Prints one line per finding: FAIL (cannot work here), WARN (works, but measurements\n"
        "or features suffer) or OK, then the subject, the fact, and what to do. Exits with 69\n"
        "if there is a FAIL, else with 0. `mpiexec -n N ddpbench doctor` checks each host of\n"
        "the job. With several hosts every line names its host, and a FAIL that the first\n"
        "rank of the host lacks names its rank. With --json each host prints a document,\n"
        "and such a FAIL goes to stderr. A launcher ends the job when the first rank\n"
        "fails, so a rank with a FAIL waits up to 6 s for the other ranks.\n",
    .rows = rows,
    .values_bytes = sizeof(struct doctor_values),
    .help_offset = offsetof(struct doctor_values, help),
    .run = run,
};
