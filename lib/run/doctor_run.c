#include "run/doctor_run.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "run/doctor_checks.h"
#include "run/doctor_child.h"
#include "run/rank_error.h"

static int count_verdicts(const struct ddp_doctor *d, enum ddp_doctor_verdict verdict)
{
    int n = 0;
    for (int i = 0; i < d->count; i++)
        n += d->findings[i].verdict == verdict;
    return n;
}

static void print_text(const struct ddp_doctor *d, const char *where, FILE *out)
{
    for (int v = 0; v < DDP_DOCTOR_VERDICTS; v++)
        for (int i = 0; i < d->count; i++)
            if ((int)d->findings[i].verdict == v)
                ddp_doctor_print(&d->findings[i], where, out);
}

/* Prints the failures of a rank that is not local rank 0. The rank claims each failure before it
 * prints the failure (run/rank_error.h). The first rank with a failure prints it, and the next
 * ranks print only that they have the same error. A failure is left out if local rank 0 or
 * DDP_RANK_ERROR_LINES other ranks have claimed it. */
static void print_failures(const struct ddp_doctor *d, const char *where, FILE *out)
{
    for (int i = 0; i < d->count; i++) {
        struct ddp_finding f = d->findings[i];
        const int place = f.verdict == DDP_DOCTOR_FAIL ? ddp_rank_error_claim(f.fact) : 0;
        if (f.verdict != DDP_DOCTOR_FAIL || place == DDP_RANK_ERROR_LINES)
            continue;
        if (place > 0) {
            snprintf(f.fact, sizeof f.fact, "%s", ddp_rank_error_same(place));
            f.advice[0] = '\0';
        }
        ddp_doctor_print(&f, where, out);
    }
}

static void claim_failures(const struct ddp_doctor *d)
{
    for (int i = 0; i < d->count; i++)
        if (d->findings[i].verdict == DDP_DOCTOR_FAIL)
            ddp_rank_error_claim_all(d->findings[i].fact);
}

static int print_json(const struct ddp_doctor *d, FILE *out, struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    ddp_json_str(doc, "host", d->info.host);
    ddp_json_count(doc, "failures", count_verdicts(d, DDP_DOCTOR_FAIL));
    ddp_json_count(doc, "warnings", count_verdicts(d, DDP_DOCTOR_WARN));
    cJSON *list = ddp_json_arr(doc, "findings");
    for (int v = 0; v < DDP_DOCTOR_VERDICTS; v++) {
        for (int i = 0; i < d->count; i++) {
            const struct ddp_finding *f = &d->findings[i];
            if ((int)f->verdict != v)
                continue;
            ddp_doctor_add(list, f);
        }
    }
    return ddp_json_write(doc, out, err);
}

/* Prints the findings of this rank if the ranks of the job could not be connected. Local rank 0 of
 * each host prints all its own findings. The other ranks give local rank 0 time to print, and then
 * print only the failures that local rank 0 does not have. If the launcher could not be detected,
 * rank 0 prints like local rank 0. A launcher ends the job when the first rank fails, so each rank
 * stays until all ranks of its host have printed. A rank with a FAIL stays for
 * ddp_doctor_linger_us, unless it knows that all ranks of the job have printed. */
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
        print_failures(d, where, json ? d->app->log.stream : d->app->out);
    }
    fflush(d->app->out);
    const int64_t linger_us = ddp_doctor_linger_us(d->app);
    const int64_t until_us = ddp_now_ns() / 1000 + linger_us;
    const bool all_printed = ddp_rank_error_wait(d->app, linger_us);
    const int64_t left_us = until_us - ddp_now_ns() / 1000;
    if (count_verdicts(d, DDP_DOCTOR_FAIL) > 0 && !(all_printed && one_host) && left_us > 0)
        usleep((useconds_t)left_us);
    return rc;
}

int ddp_doctor_run(const struct ddp_app *app, bool json, struct ddp_err *err)
{
    struct ddp_doctor *d;
    DDP_TRY(DDP_NEW(&d, 1, err));
    d->app = app;
    ddp_doctor_examine(d);
    int rc = 0;
    const int failures = count_verdicts(d, DDP_DOCTOR_FAIL);
    if (ddp_rank_error_is_shared(app)) {
        pid_t child;
        const bool done = ddp_doctor_job(app, &d->info, d->findings, d->count, json, &child);
        if (!done)
            rc = print_shared(d, json, err);
        ddp_doctor_end_child(app, child, done);
    } else if (json) {
        rc = print_json(d, app->out, err);
    } else {
        print_text(d, "", app->out);
    }
    free(d);
    if (rc == 0 && failures > 0)
        rc = ddp_fail(err, DDP_EUNAVAIL, "%d of the findings must be fixed first", failures);
    return rc;
}
