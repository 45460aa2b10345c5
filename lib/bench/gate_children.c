/* Runs the child processes of the gate. gate_judge.c judges their results. */
#include "bench/gate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "bench/child.h"
#include "record/result_file.h"
#include "stats/summary.h"

#define RERUNS 2
/* Ratio of two ping-pong times above which they belong to different classes. Between cores that
 * share a cache level, the times differ by less. The next level is 2 to 10 times slower
 * (results/notes/bench.md). */
#define CLASS_RATIO 1.5

int ddp_gate_first(uint64_t seed, int pair)
{
    int drawn = (int)(ddp_mix64(seed ^ ddp_mix64((uint64_t)(pair / 2))) >> 63);
    return pair % 2 ? !drawn : drawn;
}

bool ddp_gate_class_differs(double a_ns, double b_ns)
{
    return a_ns > CLASS_RATIO * b_ns || b_ns > CLASS_RATIO * a_ns;
}

/* Sets *argv to a copy of the command's words with the result's path filled in. The caller frees
 * *argv and its words. */
static int make_argv(const struct ddp_argv *words, const char *path, char ***argv,
                     struct ddp_err *err)
{
    bool placed = false;
    int rc;
    char **all = ddp_calloc((size_t)words->count + 3, sizeof *all);
    if (!all)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a child process");
    for (int i = 0; i < words->count; i++) {
        struct ddp_strbuf word = DDP_STRBUF_INIT;
        const char *at = words->word[i], *mark;
        while ((mark = strstr(at, "{json}")) != NULL) {
            ddp_strbuf_add_n(&word, at, (size_t)(mark - at));
            ddp_strbuf_add(&word, path);
            at = mark + strlen("{json}");
            placed = true;
        }
        ddp_strbuf_add(&word, at);
        ddp_strbuf_add(&word, "");
        if (word.failed || !(all[i] = word.text ? word.text : strdup(""))) {
            rc = ddp_fail(err, DDP_ENOMEM, "no memory for a child process");
            goto err_words;
        }
    }
    if (!placed) {
        all[words->count] = strdup("--json");
        all[words->count + 1] = strdup(path);
    }
    *argv = all;
    return 0;

err_words:
    for (int i = 0; i < words->count; i++)
        free(all[i]);
    free(all);
    return rc;
}

static void free_argv(char **argv)
{
    for (char **word = argv; *word; word++)
        free(*word);
    free(argv);
}

/* Maps the exit status of a child process to an error code. Exit codes of ddpbench are kept,
 * because they are more specific than "failed". */
static int code_of(int status)
{
    return status == 11 || status == 13 || (status >= 64 && status <= 78) ? -status : DDP_EUNAVAIL;
}

static int explain_end(const struct ddp_gate_side *side, const struct ddp_child_end *end,
                       struct ddp_err *err)
{
    if (end->signal)
        return ddp_fail(err, -(128 + end->signal), "ended by %s", strsignal(end->signal));
    if (end->timed_out)
        ddp_fail(err, DDP_ELOST, "'%s' did not end within its time (--launch-timeout)", side->text);
    else
        ddp_fail(err, code_of(end->status), "'%s' failed with exit code %d", side->text,
                 end->status);
    ddp_hint(err, "the end of its error output: %s",
             end->last_messages[0] ? end->last_messages : "nothing");
    return err->code;
}

/* Checks the document of a child that exited with 0, because the document may still report a
 * failure. */
static int check_document(const struct ddp_gate_side *side, const struct ddp_result *result,
                          struct ddp_err *err)
{
    if (result->flaw[0])
        return ddp_fail(err, result->wrong_data ? DDP_EDATA : DDP_EUNAVAIL,
                        "the document of '%s' cannot be judged: %s", side->text, result->flaw);
    if (strcmp(result->status, "complete") != 0)
        return ddp_fail(err, DDP_EUNAVAIL, "the document of '%s' has the status '%s': %s",
                        side->text, result->status,
                        result->reason[0] ? result->reason : "no reason is given");
    if (result->count > 0)
        return 0;
    ddp_fail(err, DDP_EINPUT, "'%s' measured no point", side->text);
    if (result->run_count > 0)
        ddp_hint(err, "gate does not judge training runs such as '%s'", result->runs[0]);
    return err->code;
}

static int run_child(const struct ddp_gate_setup *setup, int which, struct ddp_result *result,
                     struct ddp_err *err)
{
    const struct ddp_gate_side *side = &setup->side[which];
    struct ddp_child_end end;
    char path[4200], **argv = NULL;
    int rc;
    snprintf(path, sizeof path, "%s/launch.json", setup->folder);
    unlink(path);
    DDP_TRY(make_argv(&side->words, path, &argv, err));
    const struct ddp_child child = {
        .argv = argv, .env = side->env, .timeout_ns = setup->child_timeout_ns};
    DDP_TRY_GOTO(ddp_child_run(&child, &end, err), out);
    if (end.status != 0 || end.signal || end.timed_out) {
        rc = explain_end(side, &end, err);
        goto out;
    }
    rc = ddp_result_read(path, result, err);
    if (rc == DDP_ENOINPUT)
        ddp_hint(err, "'%s' wrote no result; write {json} where the command line takes its path",
                 side->text);
    else if (rc != 0)
        ddp_hint(err, "'%s' wrote it", side->text);
    if (rc == 0) {
        rc = check_document(side, result, err);
        if (rc != 0)
            ddp_result_release(result);
    }
out:
    unlink(path);
    free_argv(argv);
    return rc;
}

/* Returns the median ping-pong over the points of a child process. NaN if there is none, for
 * example with one rank. */
static double pingpong_of(const struct ddp_result *r)
{
    struct ddp_summary s;
    size_t n = 0;
    double *all = ddp_calloc(2 * r->count, sizeof *all);
    if (!all)
        return NAN;
    for (size_t i = 0; i < r->count; i++)
        for (int k = 0; k < 2; k++)
            if (isfinite(r->points[i].pingpong_ns[k]))
                all[n++] = r->points[i].pingpong_ns[k];
    int rc = ddp_summarize(all, n, &s);
    free(all);
    return rc == 0 ? s.median : NAN;
}

/* Runs both child processes of a pair in the pair's order. Repeats the pair, at most RERUNS times,
 * while the ping-pong classes of the two children differ. */
static int run_pair(const struct ddp_gate_setup *setup, int pair, struct ddp_gate_data *data,
                    struct ddp_result result[2], struct ddp_err *err)
{
    for (int attempt = 0;; attempt++) {
        int first = ddp_gate_first(setup->seed, pair);
        for (int k = 0; k < 2; k++) {
            int which = k == 0 ? first : !first;
            if (setup->on_child)
                setup->on_child(setup->arg, pair, setup->pairs, which);
            int rc = run_child(setup, which, &result[which], err);
            if (rc != 0 && k == 1)
                ddp_result_release(&result[first]);
            DDP_TRY(rc);
        }
        bool differs =
            ddp_gate_class_differs(pingpong_of(&result[DDP_BASE]), pingpong_of(&result[DDP_NEXT]));
        if (!differs || attempt == RERUNS) {
            data->mixed += differs;
            return 0;
        }
        data->rerun++;
        ddp_result_release(&result[DDP_BASE]);
        ddp_result_release(&result[DDP_NEXT]);
    }
}

/* Unless setup->injects, fails if the injected delays of the sides differ, because the gate would
 * then measure the delay. */
static int same_delays(const struct ddp_gate_setup *setup, const struct ddp_result result[2],
                       struct ddp_err *err)
{
    const struct ddp_result *base = &result[DDP_BASE];
    char delays[80];
    for (size_t i = 0; i < base->count && !setup->injects; i++) {
        const struct ddp_result_point *p[2] = {&base->points[i]};
        p[DDP_NEXT] = ddp_result_find(&result[DDP_NEXT], p[DDP_BASE]->id);
        if (!p[DDP_NEXT] || !ddp_result_delays_differ(p[DDP_BASE], p[DDP_NEXT]))
            continue;
        ddp_result_name_delays(p[DDP_BASE], p[DDP_NEXT], delays, sizeof delays);
        ddp_fail(err, DDP_EUNAVAIL, "the delays injected into '%s' differ: %s", p[DDP_BASE]->id,
                 delays);
        return ddp_hint(err, "remove --inject-delay from both commands");
    }
    return 0;
}

/* Allocates the arrays, and copies the cells from base's first child process. */
static int open_data(const struct ddp_gate_setup *setup, const struct ddp_result first[2],
                     struct ddp_gate_data *data, struct ddp_err *err)
{
    const struct ddp_result *base = &first[DDP_BASE];
    size_t pairs = (size_t)setup->pairs;
    data->count = base->count;
    data->id = ddp_calloc(base->count, sizeof *data->id);
    for (int side = 0; side < 2; side++) {
        data->median[side] = ddp_calloc(base->count * pairs, sizeof(double));
        data->pingpong[side] = ddp_calloc(pairs, sizeof(double));
        data->memory[side] = ddp_calloc(pairs, sizeof(double));
    }
    if (!data->id || !data->median[0] || !data->median[1] || !data->pingpong[0] ||
        !data->pingpong[1] || !data->memory[0] || !data->memory[1])
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu cells", base->count);
    for (size_t c = 0; c < base->count; c++)
        memcpy(data->id[c], base->points[c].id, sizeof data->id[c]);
    memcpy(data->fingerprint, base->fingerprint, sizeof data->fingerprint);
    return 0;
}

static bool has_cell(const struct ddp_gate_data *data, const char *id)
{
    for (size_t c = 0; c < data->count; c++)
        if (strcmp(data->id[c], id) == 0)
            return true;
    return false;
}

static int keep_unjudged(int side, const struct ddp_result *result, struct ddp_gate_data *data,
                         struct ddp_err *err)
{
    const bool base = side == DDP_BASE;
    for (size_t i = 0; i < result->count; i++)
        if (!has_cell(data, result->points[i].id))
            DDP_TRY(ddp_unjudged_add(&data->unjudged, result->points[i].id, false, base, err));
    for (size_t i = 0; i < result->run_count; i++)
        DDP_TRY(ddp_unjudged_add(&data->unjudged, result->runs[i], true, base, err));
    return 0;
}

static int keep(const struct ddp_gate_setup *setup, int pair, int side,
                const struct ddp_result *result, struct ddp_gate_data *data, struct ddp_err *err)
{
    if (strcmp(result->fingerprint, data->fingerprint) != 0) {
        ddp_fail(err, DDP_EMISMATCH, "a run had another set-up: '%s' of '%s', not '%s'",
                 result->fingerprint, setup->side[side].text, data->fingerprint);
        return ddp_hint(err, "both commands must run on the same hosts with the same ranks");
    }
    memcpy(data->build[side], result->build, sizeof data->build[side]);
    data->pingpong[side][pair] = pingpong_of(result);
    data->memory[side][pair] = 1 / result->copy_GBps;
    for (size_t c = 0; c < data->count; c++) {
        const struct ddp_result_point *p = ddp_result_find(result, data->id[c]);
        data->median[side][c * (size_t)setup->pairs + (size_t)pair] = p ? p->median_ns : NAN;
    }
    return keep_unjudged(side, result, data, err);
}

int ddp_gate_measure(const struct ddp_gate_setup *setup, struct ddp_gate_data *out,
                     struct ddp_err *err)
{
    struct ddp_gate_data data = {.pairs = setup->pairs};
    int rc = 0;
    for (int pair = 0; pair < setup->pairs && rc == 0; pair++) {
        struct ddp_result result[2] = {{.count = 0}, {.count = 0}};
        rc = run_pair(setup, pair, &data, result, err);
        if (rc == 0)
            rc = same_delays(setup, result, err);
        if (rc == 0 && pair == 0)
            rc = open_data(setup, result, &data, err);
        if (rc == 0 && pair == 0 && setup->check)
            rc = setup->check(&data, err);
        for (int side = 0; side < 2 && rc == 0; side++)
            rc = keep(setup, pair, side, &result[side], &data, err);
        ddp_unjudged_merge(&data.unjudged); /* in every pair, so that the list stays small */
        ddp_result_release(&result[DDP_BASE]);
        ddp_result_release(&result[DDP_NEXT]);
    }
    if (rc != 0)
        ddp_gate_release(&data);
    else
        *out = data;
    return rc;
}

void ddp_gate_release(struct ddp_gate_data *data)
{
    free(data->id);
    free(data->unjudged.items);
    for (int side = 0; side < 2; side++) {
        free(data->median[side]);
        free(data->pingpong[side]);
        free(data->memory[side]);
    }
    *data = (struct ddp_gate_data){.count = 0};
}
